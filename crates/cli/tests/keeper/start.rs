//! A keeper that is killed while it starts, and what stands in its way.

use std::path::Path;

use tenure_testkit::{Signal, poll};

use crate::machine::{Machine, SOON, kept, kill9, parent_of, skewed_clock};

/// Where a start is cut off.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// As soon as a process of this stage is there.
    At(&'static str),
    /// As soon as the socket is there, the process of this stage.
    Bound(&'static str),
}

const CUTS: [Cut; 5] = [
    Cut::At("start"),
    Cut::At("parent"),
    Cut::At("keep"),
    Cut::Bound("parent"),
    Cut::Bound("keep"),
];

#[test]
#[ignore = "needs PostgreSQL"]
fn a_start_that_is_cut_off_anywhere_leaves_the_way_free_for_the_next() {
    let (_server, env) = kept(&[]);
    let Some(a) = Machine::host(&env, "a") else {
        return;
    };
    let claude = a.session("claude");
    let socket = a.file(".sock");
    for cut in CUTS.into_iter().cycle().take(CUTS.len() * 3) {
        a.person(0, "keeper stop");
        poll(SOON, "the last one has ended", || {
            a.stages("").is_empty().then_some(())
        });
        let starts = claude.start(a.command("renew"));
        poll(SOON, "there is something to kill", || {
            let stage = match cut {
                Cut::At(stage) => stage,
                Cut::Bound(stage) => {
                    is_bound(&socket)?;
                    stage
                }
            };
            let found = a.stages(stage);
            for process in &found {
                process.signal(Signal::KILL);
            }
            // A stage that has already passed is as good.
            (!found.is_empty() || !starts.is_alive()).then_some(())
        });
        let shown = starts.wait();
        assert_eq!(shown.code, 0, "{cut:?}: {shown}");
        a.run(&claude, 0, "claim wp:1");
        poll(SOON, "a keeper works", || {
            // What a killed one left behind is started again by the next command.
            a.run(&claude, 0, "renew");
            (a.watched() == Some(1)).then_some(())
        });
        let keepers = a.stages("keep").len();
        assert_eq!(keepers, 1, "{cut:?}");
        assert!(a.stages("parent").len() <= 1, "{cut:?}");
        a.run(&claude, 0, "release wp:1");
    }
}

fn is_bound(socket: &Path) -> Option<()> {
    socket.exists().then_some(())
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s20_no_other_program_is_signalled_in_place_of_a_keeper_that_is_gone() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    let innocent = env.agent("innocent");
    let keeper = a.keeper_pid();
    kill9(parent_of(keeper));
    kill9(keeper);
    // Whatever a file of it says about pids, it is another program's now.
    for entry in fs_err::read_dir(a.files()).unwrap().flatten() {
        let path = entry.path();
        if let Ok(text) = fs_err::read_to_string(&path) {
            let pid = innocent.pid().to_string();
            fs_err::write(&path, text.replace(&keeper.to_string(), &pid)).unwrap();
        }
    }
    fs_err::write(a.files().join("keeper.pid"), innocent.pid().to_string()).unwrap();
    a.person(0, "keeper stop");
    a.run(&claude, 0, "claim wp:1");
    poll(SOON, "a keeper runs", || {
        (a.watched() == Some(1)).then_some(())
    });
    a.person(0, "keeper stop");
    assert!(innocent.is_alive() && claude.is_alive());
    assert!(innocent.stat().is_some_and(|stat| stat.state != 'T'));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s28_a_keeper_that_does_not_start_says_why_and_a_running_one_is_not_called_failed() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let _claude = a.session("claude");
    let second = a.person(1, "keeper");
    assert_eq!(second["error"]["kind"], "keeper_running", "{second}");
    let socket = a.file(".sock");
    a.person(0, "keeper stop");
    fs_err::write(&socket, "text").unwrap();
    let failed = a.person(1, "keeper");
    assert_eq!(failed["error"]["kind"], "keeper_failed", "{failed}");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("did not start") && message.contains("is not a socket"),
        "{message}"
    );
    fs_err::remove_file(&socket).unwrap();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_clock_that_jumps_changes_no_answer_from_memory() {
    const TEN_YEARS: i64 = 10 * 365 * 86_400;
    let (mut server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.run(&claude, 0, "claim wp:2");
    a.lists(2);
    let library = skewed_clock(env.dir());
    let skewed = |line: &str, skew: i64| {
        let line = a.command(line).env("LD_PRELOAD", library.clone());
        claude.run(line.env("TENURE_TEST_SKEW", skew.to_string()))
    };
    server.stop(true);
    for skew in [TEN_YEARS, -TEN_YEARS] {
        let yes = skewed("guard wp:1", skew);
        assert_eq!(yes.code, 0, "{skew}: {yes}");
        let shown = skewed("ps", skew);
        assert!(shown.json()["remembered"].is_object(), "{skew}: {shown}");
    }
    let given_up = skewed("release wp:1", TEN_YEARS);
    assert_eq!(given_up.code, 0, "{given_up}");
    let no = skewed("guard wp:1", -TEN_YEARS);
    assert_eq!(no.code, 9, "{no}");
    a.run(&claude, 0, "guard wp:2");
    server.start();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_keeper_that_a_hook_starts_can_open_the_store() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.env_agent("claude");
    let event = serde_json::json!({
        "hook_event_name": "UserPromptSubmit",
        "session_id": "7f3c-1",
        "cwd": "/tmp",
        "prompt": "go",
    });
    // Nothing else of this machine has asked the store before. The first event may be too early for it.
    poll(
        SOON,
        "the keeper that a hook started watches the session",
        || {
            let said = claude.run(a.hook("claude").stdin(event.to_string()));
            assert_eq!(said.code, 0, "{said}");
            let running = a.files().read_dir().ok()?.flatten();
            let is_bound = running
                .into_iter()
                .any(|file| file.path().extension().is_some_and(|end| end == "sock"));
            (is_bound && a.watched() == Some(1)).then_some(())
        },
    );
}

//! A store that is removed, moved away or replaced while it is in use: nothing more is granted in it.

use std::path::Path;

use tenure_testkit::{Agent, Background, Cmd, Env, Output, Signal, poll};

use crate::env;
use crate::support::line::{SOON, handle, session, take, text};
use crate::support::waiter::{ends, waits};

fn remove(state: &Path) {
    std::fs::remove_dir_all(state).expect("it is there");
}

fn move_away(state: &Path) {
    std::fs::rename(state, state.with_extension("away")).expect("it is there");
}

/// Another database under the same name, as a restored copy is.
fn replace(state: &Path) {
    let (old, new) = (state.join("tenure.db"), state.join("copy"));
    std::fs::copy(&old, &new).expect("it is there");
    std::fs::rename(new, old).expect("they are on one disk");
}

#[track_caller]
fn says_so(said: &Output) {
    let error = said.json()["error"].clone();
    assert_eq!(
        (said.code, &error["kind"]),
        (8, &"store_replaced".into()),
        "{said}"
    );
    assert!(
        text(&error["message"]).contains("removed or replaced"),
        "{said}"
    );
}

const WAYS: [fn(&Path); 3] = [remove, move_away, replace];

#[test]
fn a_waiter_does_not_go_on_in_a_store_that_is_gone() {
    for way in WAYS {
        let env = env();
        let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
        take(&ann, "wp:1");
        let waiter = waits(&env, &bob, "wp:1", "claim wp:1 --wait 5m");
        way(&env.state());
        says_so(&ends(waiter).fails(8));
    }
}

/// A worker that has gone to sleep over a verb.
fn sleeps_over(env: &Env, agent: &Agent, line: &str) -> Background {
    let words = line.split_whitespace().chain(["--json"]);
    let watcher = agent.start(Cmd::new("tenure").args(words));
    let open = |pid: u32| -> bool {
        let fds = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten();
        let names = fds
            .flatten()
            .filter_map(|fd| std::fs::read_link(fd.path()).ok());
        let names: Vec<_> = names.collect();
        names.iter().any(|name| name.starts_with(env.state()))
            && names
                .iter()
                .any(|name| name.to_string_lossy().contains("inotify"))
    };
    poll(SOON, "it watches", || {
        assert!(
            watcher.is_alive(),
            "{}{}",
            watcher.stdout(),
            watcher.stderr()
        );
        let stat = tenure_testkit::pinned::Stat::read(watcher.pid);
        (open(watcher.pid) && stat.is_some_and(|stat| stat.state == 'S')).then_some(())
    });
    watcher
}

#[test]
fn no_watcher_goes_on_in_a_store_that_is_gone() {
    for way in WAYS {
        let env = env();
        let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
        crate::support::line::run(&ann, 0, "mission join m --role r");
        let name = handle(&ann);
        let verbs = [
            "ps --watch".to_owned(),
            "log -f".to_owned(),
            format!("wait {name}"),
            "mission status --mission m --watch".to_owned(),
        ];
        let watchers = verbs.map(|verb| sleeps_over(&env, &bob, &verb));
        way(&env.state());
        for watcher in watchers {
            let said = ends(watcher);
            let last = said.stdout.lines().last().unwrap_or_default();
            assert_eq!(said.code, 8, "{said}");
            assert!(last.contains("store_replaced"), "{said}");
        }
    }
}

#[test]
fn a_command_whose_claim_is_in_a_store_that_is_gone_has_lost_it() {
    for (more, ended) in [("", true), ("--on-lost warn", false)] {
        let env = env();
        let bob = session(&env, "bob");
        let line = format!("exec tenure claim wp:1 {more} -- sh -c 'echo runs; exec sleep 1000'");
        let command = bob.start(Cmd::shell(&line));
        poll(SOON, "it runs", || {
            command.stdout().contains("runs").then_some(())
        });
        replace(&env.state());
        poll(SOON, "it is told", || {
            command
                .stderr()
                .contains("removed or replaced")
                .then_some(())
        });
        if ended {
            let said = ends(command);
            assert_eq!(said.code, 143, "{said}");
        } else {
            assert!(command.is_alive(), "{}", command.stderr());
            // It passes the signal on, or else what it runs would outlive the test.
            assert!(command.signal(Signal::TERM));
            ends(command);
        }
    }
}

/// The state directory is reached through a link that is made to point elsewhere.
#[test]
fn a_waiter_behind_a_link_that_points_elsewhere_now_is_granted_nothing() {
    let mut env = env();
    let (first, second) = (env.dir().join("one"), env.dir().join("two"));
    let link = env.dir().join("link");
    for dir in [&first, &second] {
        std::fs::create_dir_all(dir.join("state")).expect("it is new");
        private(&dir.join("state"));
    }
    std::os::unix::fs::symlink(&first, &link).expect("it is new");
    env.set("TENURE_HOME", link.join("state").to_string_lossy());
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    take(&ann, "wp:1");
    let waiter = waits(&env, &bob, "wp:1", "claim wp:1 --wait 5m");
    std::fs::remove_file(&link).expect("it is there");
    std::os::unix::fs::symlink(&second, &link).expect("it was removed");
    // What would free the item where the waiter looks.
    ann.kill9();
    says_so(&ends(waiter).fails(8));
}

fn private(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
}

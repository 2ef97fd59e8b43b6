//! What is noted of things that are given up, and what a spool that is damaged, foreign or full costs.

use tenure_testkit::{Agent, Cmd, Signal, poll};

use crate::machine::{Machine, SOON, kept, signal};

/// Runs a line while the keeper stands still, so that its list stays as it is.
fn beside_a_still_keeper(a: &Machine<'_>, act: impl FnOnce()) {
    let keeper = a.keeper_pid();
    signal(keeper, Signal::STOP);
    act();
    signal(keeper, Signal::CONT);
}

fn spooled(a: &Machine<'_>) -> String {
    fs_err::read_to_string(a.file(".spool")).unwrap()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_line_about_a_session_that_the_store_does_not_have_holds_nobody_up() {
    let (mut server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    a.lists(0);
    server.stop(true);
    let ended = a.run(&claude, 0, "end");
    let id = ended["spooled"]["session"].as_str().unwrap();
    let mut other: Vec<char> = id.chars().collect();
    let last = other.last_mut().unwrap();
    *last = if *last == '1' { '2' } else { '1' };
    let other: String = other.into_iter().collect();
    let text = spooled(&a).replace(id, &other);
    // Beside it one that no version can read.
    fs_err::write(a.file(".spool"), format!("{text}not a line\n")).unwrap();
    server.start();
    poll(SOON, "the store is back", || {
        let shown = a.ask(&claude, "ps");
        let away = shown.code == 0 && shown.json()["remembered"].is_object();
        assert_eq!(shown.code, 0, "{shown}");
        (!away).then_some(())
    });
    let codex = a.session("codex");
    a.run(&codex, 0, "claim wp:1");
    poll(SOON, "the keeper brings the line", || {
        (!spooled(&a).contains(&other)).then_some(())
    });
    let left = spooled(&a);
    assert!(left.contains("not a line"), "{left}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn what_was_handed_over_is_not_permitted_from_an_older_list() {
    let (mut server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let (claude, codex) = (a.session("claude"), a.session("codex"));
    a.run(&claude, 0, "claim wp:1");
    a.run(&claude, 0, "claim wp:2");
    a.lists(2);
    let to = a.run(&codex, 0, "whoami");
    let to = to["session"]["handle"].as_str().unwrap().to_owned();
    beside_a_still_keeper(&a, || {
        a.run(&claude, 0, &format!("handoff wp:1 --to {to}"));
        server.stop(true);
        a.run(&claude, 9, "guard wp:1");
        // Only what was handed over is in doubt.
        a.run(&claude, 0, "guard wp:2");
    });
    server.start();
}

/// Whether a session that has ended is still permitted something, while another one of the machine is.
fn ended_is_not_permitted(end: impl FnOnce(&Machine<'_>, &Agent, &str)) {
    let (mut server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let (claude, codex) = (a.session("claude"), a.session("codex"));
    a.run(&claude, 0, "claim wp:1");
    a.run(&codex, 0, "claim wp:2");
    a.lists(2);
    let id = a.run(&claude, 0, "whoami");
    let id = id["session"]["id"].as_str().unwrap().to_owned();
    beside_a_still_keeper(&a, || {
        end(&a, &claude, &id);
        server.stop(true);
        if claude.is_alive() {
            a.run(&claude, 9, "guard wp:1");
        }
        a.run(&codex, 0, "guard wp:2");
    });
    server.start();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_end_takes_no_permission_from_the_other_sessions() {
    ended_is_not_permitted(|a, claude, _| {
        a.run(claude, 0, "end");
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_end_on_behalf_of_a_session_is_noted_too() {
    ended_is_not_permitted(|a, _, id| {
        a.person(0, &format!("end {id} --reason stuck"));
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn commands_remove_what_the_store_has_when_no_keeper_runs() {
    let (_server, env) = kept(&[("TENURE_HOST_LEASE", "5s"), ("TENURE_LOCK_DELAY", "100ms")]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    a.person(0, "keeper stop");
    let release = a
        .command("release wp:1")
        .env("TENURE_KEEPER_START", "false");
    let released = claude.run(release);
    assert_eq!(released.code, 0, "{released}");
    assert!(spooled(&a).contains("wp:1"), "the list may still be used");
    poll(SOON, "a command removes the line", || {
        a.person(0, "ps");
        spooled(&a).is_empty().then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_keeper_that_cannot_write_its_list_still_sees_deaths() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    let memory = a.file(".memory");
    a.person(0, "keeper stop");
    fs_err::remove_file(&memory).unwrap();
    fs_err::create_dir(&memory).unwrap();
    a.run(&claude, 0, "claim wp:1");
    poll(SOON, "it is watched", || {
        (a.watched() == Some(1)).then_some(())
    });
    claude.kill9();
    poll(SOON, "its death is recorded", || {
        (a.watched() == Some(0)).then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_spool_of_another_host_changes_nothing() {
    let (mut server, env) = kept(&[]);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let (claude, codex) = (a.session("claude"), b.session("codex"));
    a.run(&claude, 0, "claim wp:1");
    b.run(&codex, 0, "claim wp:2");
    a.lists(1);
    b.lists(1);
    server.stop(true);
    a.run(&claude, 0, "release wp:1");
    let spool = a.file(".spool");
    let copy = b.files().join(spool.file_name().unwrap());
    fs_err::copy(&spool, &copy).unwrap();
    // What another host gave up is none of this one's claims.
    b.run(&codex, 0, "guard wp:2");
    server.start();
    poll(SOON, "the store is back", || {
        (b.ask(&codex, "claim wp:1").code == 0).then_some(())
    });
    // It was brought once; the same line from the other directory is too late.
    a.person(0, "ps");
    let held = b.run(&codex, 0, "guard wp:1");
    assert_eq!(held["claim"]["epoch"], 2, "{held}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_full_disk_gives_nothing_up() {
    let (mut server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    server.stop(true);
    // No file may grow, as on a full disk.
    let home = env.dir().join("a").display().to_string();
    let full = |line: &str| {
        let limited = "ulimit -f 0; trap '' XFSZ; exec tenure";
        let line = format!("({limited} {line} --json 2>/dev/null) | cat");
        let shell = Cmd::new("bash").args(["-o", "pipefail", "-c", &line]);
        claude.run(shell.env("TENURE_HOME", home.clone()))
    };
    let failed = full("release wp:1");
    assert_eq!(failed.code, 8, "{failed}");
    let problem = &failed.json()["error"];
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains("nothing was given up"), "{problem}");
    a.run(&claude, 0, "guard wp:1");
    // With room again it is.
    a.run(&claude, 0, "release wp:1");
    a.run(&claude, 9, "guard wp:1");
    server.start();
}

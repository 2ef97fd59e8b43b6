//! There is one keeper, and it comes back.

use std::collections::BTreeSet;

use tenure_testkit::poll;

use crate::machine::{Machine, SOON, kept, kill9, parent_of};

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s19_fifty_commands_at_once_start_one_keeper() {
    let (server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let agent = env.agent("claude");
    let pid = agent.pid();
    let register = format!("register --agent claude --pid {pid}");
    let all: Vec<_> = (0..50).map(|_| agent.start(a.command(&register))).collect();
    for one in all {
        let shown = one.wait();
        assert_eq!(shown.code, 0, "{shown}");
    }
    poll(SOON, "it renewed", || {
        a.keeper()["renewed_at"].as_str().map(drop)
    });
    assert_eq!(server.ask("SELECT count(*) FROM tenure.keepers"), ["1"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_keeper_that_is_killed_is_started_again_by_its_parent() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    let first = a.keeper_pid();
    kill9(first);
    let next = poll(SOON, "another keeper", || {
        let pid = a.keeper()["pid"].as_u64()?;
        (pid != u64::from(first) && a.watched() == Some(1)).then_some(pid)
    });
    assert_ne!(next, u64::from(first));
    a.run(&claude, 0, "guard wp:1");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_new_life_records_the_deaths_that_nobody_saw() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let (claude, codex) = (a.session("claude"), a.session("codex"));
    a.run(&claude, 0, "claim wp:1");
    let keeper = a.keeper_pid();
    kill9(parent_of(keeper));
    kill9(keeper);
    claude.kill9();
    let b = Machine::new(&env, "b");
    let gemini = b.session("gemini");
    b.run(&gemini, 3, "claim wp:1");
    // Any command of that machine starts the next keeper.
    a.run(&codex, 0, "renew");
    poll(SOON, "the claim is free", || {
        (b.ask(&gemini, "claim wp:1").code == 0).then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_keeper_is_nobodys_part() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    let keeper = a.keeper_pid();
    let parent = parent_of(keeper);
    for pid in [keeper, parent] {
        assert_eq!(
            fs_err::read_link(format!("/proc/{pid}/cwd"))
                .unwrap()
                .to_str(),
            Some("/")
        );
        let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let session = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .nth(3)
            .unwrap()
            .to_owned();
        assert_ne!(session, claude.pid().to_string());
        let open: BTreeSet<String> = fs_err::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .flatten()
            .filter_map(|entry| fs_err::read_link(entry.path()).ok())
            .map(|path| path.display().to_string())
            .collect();
        let work = env.work().display().to_string();
        assert!(!open.iter().any(|path| path.starts_with(&work)), "{open:?}");
    }
    claude.kill9();
    poll(SOON, "its death is recorded", || {
        (a.watched() == Some(0)).then_some(())
    });
    assert_eq!(a.keeper_pid(), keeper);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s21_a_store_is_not_migrated_while_an_older_version_uses_it() {
    let (server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let _claude = a.session("claude");
    let older = |version: &str| {
        server.run(&format!(
            "UPDATE tenure.store SET schema = 0; UPDATE tenure.keepers SET version = '{version}'"
        ));
    };
    let schema = || server.ask("SELECT schema FROM tenure.store");
    older("0.0.1");
    let refused = a.person(8, "store migrate");
    assert_eq!(refused["error"]["kind"], "store_in_use", "{refused}");
    assert_eq!(schema(), ["0"]);
    server.run("UPDATE tenure.store SET schema = 1");
}

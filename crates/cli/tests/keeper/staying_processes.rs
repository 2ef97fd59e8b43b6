//! Processes that stay, and the keeper of their machine.

use tenure_testkit::poll;

use crate::machine::{Machine, SOON, kept, kill9, parent_of};

#[test]
#[ignore = "needs PostgreSQL"]
fn a_command_that_stays_starts_the_keeper_again() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    let work = a.command("claim wp:1").args(["--", "sleep", "600"]);
    let staying = claude.start(work);
    a.lists(1);
    let keeper = a.keeper_pid();
    let parent = parent_of(keeper);
    kill9(parent);
    kill9(keeper);
    // Nothing else that writes runs here.
    poll(SOON, "it is started again", || {
        let found = a.keeper()["pid"].as_u64();
        found.filter(|pid| *pid != u64::from(keeper))
    });
    assert!(staying.signal(rustix::process::Signal::TERM));
    assert_eq!(staying.wait().code, 143);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_command_that_stays_brings_to_the_store_what_others_gave_up_while_it_was_away() {
    let (mut server, env) = kept(&[]);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let (claude, codex) = (a.session("claude"), a.session("codex"));
    a.run(&claude, 0, "claim wp:1");
    let work = a.command("claim wp:2").args(["--", "sleep", "600"]);
    let staying = codex.start(work.env("TENURE_KEEPER_START", "false"));
    a.lists(2);
    let gemini = b.session("gemini");
    let keeper = a.keeper_pid();
    kill9(parent_of(keeper));
    kill9(keeper);
    server.stop(true);
    let release = a.command("release wp:1");
    let released = claude.run(release.env("TENURE_KEEPER_START", "false"));
    assert_eq!(released.code, 0, "{released}");
    assert_eq!(released.json()["spooled"]["epoch"], 1, "{released}");
    server.start();
    // No other command runs there, and no keeper.
    poll(SOON, "the claim is free", || {
        (b.ask(&gemini, "claim wp:1").code == 0).then_some(())
    });
    assert!(staying.signal(rustix::process::Signal::TERM));
    assert_eq!(staying.wait().code, 143);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_dispatcher_outlasts_the_store_and_brings_to_it_what_others_gave_up_meanwhile() {
    let (mut server, env) = kept(&[]);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let (claude, codex) = (a.session("claude"), a.session("codex"));
    a.run(&claude, 0, "claim wp:1");
    a.run(&codex, 0, "claim wp:2");
    a.lists(2);
    let gemini = b.session("gemini");
    let without_keeper = |line: &str| a.command(line).env("TENURE_KEEPER_START", "false");
    let person = a.env_agent("ann");
    let dispatcher = person.start(without_keeper("dispatch"));
    let says = |what: &str| {
        poll(SOON, what, || {
            assert!(dispatcher.is_alive(), "{}", dispatcher.stderr());
            dispatcher.stdout().contains(what).then_some(())
        });
    };
    says("working");
    let keeper = a.keeper_pid();
    kill9(parent_of(keeper));
    kill9(keeper);
    server.stop(true);
    says("store.away");
    let released = claude.run(without_keeper("release wp:1"));
    assert_eq!(released.code, 0, "{released}");
    assert_eq!(released.json()["spooled"]["epoch"], 1, "{released}");
    let ended = codex.run(without_keeper("end"));
    assert_eq!(ended.code, 0, "{ended}");
    assert!(ended.json()["spooled"].is_object(), "{ended}");
    server.start();
    // No other command runs there, and no keeper.
    for key in ["wp:1", "wp:2"] {
        poll(SOON, "the claim is free", || {
            (b.ask(&gemini, &format!("claim {key}")).code == 0).then_some(())
        });
    }
    says("store.back");
    assert!(dispatcher.signal(rustix::process::Signal::TERM));
    assert_eq!(dispatcher.wait().code, 0);
}

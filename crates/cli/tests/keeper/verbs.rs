//! What commands do on a store that a team uses: which of them start a keeper, and what they refuse to do to the store.

use tenure_testkit::postgres::PostgresServer;
use tenure_testkit::{Env, poll};

use crate::machine::{Machine, SOON, kept, kept_at};

/// Ends the keeper, and waits until it is gone.
fn without_keeper(machine: &Machine<'_>) {
    machine.person(0, "keeper stop");
    poll(SOON, "the keeper has ended", || {
        machine.keeper().is_null().then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_command_that_reads_starts_a_keeper_that_is_gone() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    for line in ["ps", "why wp:1"] {
        without_keeper(&a);
        a.run(&claude, 0, line);
        poll(SOON, line, || (a.watched() == Some(1)).then_some(()));
    }
    // Listing keepers starts none.
    without_keeper(&a);
    for line in ["keeper status", "keeper unit", "keeper status"] {
        a.person(0, line);
    }
    assert!(a.keeper().is_null(), "{}", a.keeper());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_command_in_a_sandbox_starts_no_keeper() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.env_agent("claude");
    let pid = claude.pid();
    let registered = a.run(&claude, 0, &format!("register --agent claude --pid {pid}"));
    let token = registered["token"].as_str().unwrap().to_owned();
    without_keeper(&a);
    // The session is named, and its agent is not above the command.
    let boxed = env.agent("human");
    let command = a.command("ps").env("TENURE_SESSION", token);
    let shown = boxed.run(command);
    assert_eq!(shown.code, 0, "{shown}");
    assert!(a.keeper().is_null(), "{}", a.keeper());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_error_of_a_store_that_is_away_says_since_when() {
    let (mut server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    server.stop(true);
    poll(SOON, "the keeper has noticed", || {
        a.keeper()["away_since"].is_string().then_some(())
    });
    let since = a.keeper()["away_since"].clone();
    let refused = a.run(&claude, 8, "claim wp:1");
    assert_eq!(refused["error"]["since"], since, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("has had no answer since"), "{message}");
    server.start();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_database_of_another_encoding_is_refused() {
    let server = PostgresServer::own(&[]);
    server.run("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    let url = server.url("tenure").replace("@/tenure?", "@/latin?");
    let mut env = Env::new(std::path::Path::new(env!("CARGO_BIN_EXE_tenure")));
    env.set("TENURE_STORE", &url);
    let refused = env.tenure(&["store", "migrate"]).fails(8);
    assert!(refused.stderr.contains("LATIN1"), "{refused}");
    assert!(refused.stderr.contains("ENCODING 'UTF8'"), "{refused}");
    let used = env.tenure(&["ps"]).fails(8);
    assert!(
        used.stderr.contains("store migrate"),
        "nothing was created: {used}"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_copy_of_a_teams_store_asks_first() {
    let server = PostgresServer::own(&[]);
    let url = server.url("tenure");
    let env = kept_at(&url, &[]);
    let a = Machine::new(&env, "a");
    let to = env.dir().join("copy.db").display().to_string();
    let copy = format!("store copy {url} {to}");
    // Nobody can answer here.
    let refused = a.person(1, &copy);
    assert_eq!(refused["error"]["kind"], "not_confirmed", "{refused}");
    assert!(!std::path::Path::new(&to).exists());
    a.person(0, "store status");
    a.person(0, &format!("{copy} --yes"));
    let moved = a.said("ps").fails(8);
    assert!(moved.stderr.contains("copy.db"), "{moved}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_store_that_is_too_new_names_the_version_it_needs() {
    let (server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    server.run("UPDATE tenure.store SET schema = 9, min_writer = 9, needs = '7.0'");
    let refused = a.person(8, "ps");
    assert_eq!(refused["error"]["kind"], "store_too_new", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("needs tenure 7.0 or later"), "{message}");
}

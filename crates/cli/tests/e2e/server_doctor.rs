//! What `tenure doctor` finds about a server.

use tenure_testkit::Env;

use crate::support::doctor::{codes, finding};
use crate::support::server::own;

/// A server that confirms nothing before it is stored; those of other tests are faster.
const SAFE: &[&str] = &[
    "full_page_writes = on",
    "synchronous_commit = on",
    "fsync = on",
];

/// The finding with this code; a keeper is missing in every test, because none is started.
#[track_caller]
fn finds(env: &Env, code: &str) -> String {
    let report = env.tenure(&["doctor", "--json"]).fails(6).json();
    let found = finding(&report, code);
    assert!(found["advice"].is_string(), "{found}");
    found.to_string()
}

#[track_caller]
fn is_sound(env: &Env) {
    let found = codes(&env.tenure(&["doctor", "--json"]).json());
    let found: Vec<String> = found.into_iter().collect();
    assert_eq!(found, ["keeper_missing"]);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_schema_that_is_older() {
    let (server, env) = own(SAFE);
    is_sound(&env);
    server.run("UPDATE tenure.store SET schema = schema - 1");
    finds(&env, "server_schema");
    server.run("UPDATE tenure.store SET schema = schema + 1");
    is_sound(&env);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_server_that_can_lose_what_it_confirmed() {
    let (server, env) = own(SAFE);
    is_sound(&env);
    server.run("ALTER SYSTEM SET synchronous_commit = off");
    server.run("SELECT pg_reload_conf()");
    let found = finds(&env, "server_unsafe");
    assert!(found.contains("synchronous_commit"), "{found}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_database_with_another_encoding() {
    let (server, env) = own(&[]);
    server.run("UPDATE pg_database SET encoding = pg_char_to_encoding('LATIN1')");
    let found = finds(&env, "server_encoding");
    assert!(found.contains("LATIN1"), "{found}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_role_that_lacks_rights() {
    let (server, env) = own(SAFE);
    for sql in [
        "CREATE ROLE agents LOGIN PASSWORD 'agents'",
        "GRANT USAGE ON SCHEMA tenure TO agents",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tenure TO agents",
        "REVOKE UPDATE, DELETE ON tenure.events FROM agents",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA tenure TO agents",
    ] {
        server.run(sql);
    }
    let mut theirs = env;
    theirs.set("TENURE_STORE", server.url_as("agents", "tenure"));
    is_sound(&theirs);
    server.run("REVOKE INSERT ON tenure.jobs FROM agents");
    let found = finds(&theirs, "server_grants");
    assert!(found.contains("INSERT on jobs"), "{found}");
}

//! A role per person: who may change which rows, and what everyone still sees and gets.

use tenure_testkit::poll;
use tenure_testkit::postgres::PostgresServer;

use crate::machine::{Machine, SOON, kept_at};

/// A server with the documented rights for two people.
fn with_people(server: &PostgresServer) {
    for role in ["ann", "bob"] {
        server.run(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA tenure TO {role}; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tenure TO {role}; \
             REVOKE UPDATE, DELETE ON tenure.events FROM {role}; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA tenure TO {role}"
        ));
    }
}

/// Fails unless a role is refused these statements.
#[track_caller]
fn refused(server: &PostgresServer, role: &str, sql: &str) {
    server.run(&format!(
        "SET SESSION AUTHORIZATION {role}; \
         DO $$ BEGIN {sql}; RAISE EXCEPTION 'it was allowed'; \
         EXCEPTION WHEN insufficient_privilege THEN NULL; END $$"
    ));
}

/// The same for statements that are allowed.
#[track_caller]
fn allowed(server: &PostgresServer, role: &str, sql: &str) {
    server.run(&format!("SET SESSION AUTHORIZATION {role}; {sql}"));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn only_its_own_role_changes_a_session_or_the_row_of_a_keeper() {
    let server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[]);
    with_people(&server);
    let a = Machine::new(&env, "a").through(server.url_as("ann", "tenure"));
    let b = Machine::new(&env, "b").through(server.url_as("bob", "tenure"));
    let (claude, codex) = (a.session("claude"), b.session("codex"));
    a.run(&claude, 0, "claim wp:1");
    let shown = a.run(&claude, 0, "whoami");
    let id = shown["session"]["id"].as_str().unwrap();
    let handle = shown["session"]["handle"].as_str().unwrap();
    let refused_end = b.run(&codex, 1, &format!("end {id} --reason rival"));
    let error = &refused_end["error"];
    assert_eq!(error["kind"], "not_owner", "{refused_end}");
    let whose = format!(
        "{handle} belongs to the database role ann, and only that role can change it; nothing was changed"
    );
    assert_eq!(error["message"], whose, "{refused_end}");
    let hints = error["hints"].to_string();
    assert!(
        hints.contains("ask the person who uses that role"),
        "{hints}"
    );
    assert!(hints.contains(r#""verb":"why","args":["KEY"]"#), "{hints}");
    assert_eq!(a.run(&claude, 0, "whoami")["session"]["state"], "live");
    let own = |role: &str| format!("WHERE by_role = '{role}'");
    for sql in [
        format!(
            "UPDATE tenure.sessions SET closed_at = 1, closed_by = 'death' {}",
            own("ann")
        ),
        format!("UPDATE tenure.sessions SET by_role = 'bob' {}", own("ann")),
        format!("DELETE FROM tenure.sessions {}", own("ann")),
        format!("UPDATE tenure.keepers SET renewed = 0 {}", own("ann")),
        format!("UPDATE tenure.keepers SET by_role = NULL {}", own("ann")),
        format!("UPDATE tenure.sessions SET by_role = 'ann' {}", own("bob")),
        format!("DELETE FROM tenure.keepers {}", own("ann")),
        "UPDATE tenure.events SET evidence = 'forged'".to_owned(),
        "DELETE FROM tenure.events".to_owned(),
        "INSERT INTO tenure.events (at, kind, mechanism, evidence, by_role) VALUES (1, 'x', 'x', 'x', 'ann')".to_owned(),
        "INSERT INTO tenure.events (at, kind, mechanism, evidence, id) VALUES (1, 'x', 'x', 'x', 99999)".to_owned(),
        "CREATE TEMP TABLE events (id bigint); \
         CREATE TRIGGER own AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION tenure.number_event()".to_owned(),
        "UPDATE tenure.clock SET last = last + 10000000".to_owned(),
        "UPDATE tenure.clock SET last = last - 1".to_owned(),
        "UPDATE tenure.clock SET off = off + 60000".to_owned(),
        "DELETE FROM tenure.clock".to_owned(),
        format!(
            "DELETE FROM tenure.watched WHERE keeper IN (SELECT id FROM tenure.keepers {})",
            own("ann")
        ),
        format!(
            "UPDATE tenure.watched SET keeper = (SELECT min(id) FROM tenure.keepers {}) \
             WHERE keeper IN (SELECT id FROM tenure.keepers {})",
            own("bob"),
            own("ann")
        ),
    ] {
        refused(&server, "bob", &sql);
    }
    // A row of one's own cannot be made in another's name.
    let made = "INSERT INTO tenure.keepers SELECT 'k-forged', host_id, boot_id, boot_private, pid_ns, uid, pid, version, \
                host_name, started_at, seen_at, renewed, acknowledged, lease, lock_delay, 'ann' \
                FROM tenure.keepers LIMIT 1";
    allowed(&server, "bob", made);
    let whose = server.ask("SELECT by_role FROM tenure.keepers WHERE id = 'k-forged'");
    assert_eq!(whose, ["bob"]);
    a.run(&claude, 0, "guard wp:1");
    a.run(&claude, 0, "release wp:1");
    b.run(&codex, 0, "claim wp:1");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_death_a_silent_host_and_a_takeover_work_between_roles() {
    let server = PostgresServer::own(&[]);
    let quick = [("TENURE_HOST_LEASE", "6s"), ("TENURE_LOCK_DELAY", "500ms")];
    let env = kept_at(&server.url("tenure"), &quick);
    with_people(&server);
    let Some((a, b)) = crate::machine::two_hosts(&env) else {
        return;
    };
    let a = a.through(server.url_as("ann", "tenure"));
    let b = b.through(server.url_as("bob", "tenure"));
    let (claude, gemini) = (a.session("claude"), a.session("gemini"));
    for key in ["wp:1", "wp:2"] {
        a.run(&claude, 0, &format!("claim {key}"));
    }
    a.run(&gemini, 0, "claim wp:3");
    let codex = b.session("codex");
    b.run(&codex, 0, "takeover wp:1 --reason urgent");
    let to = b.run(&codex, 0, "whoami");
    let to = to["session"]["handle"].as_str().unwrap();
    a.run(&gemini, 0, "claim wp:4");
    a.run(&gemini, 0, &format!("handoff wp:4 --to {to}"));
    claude.kill9();
    let granted = codex.start(b.command("claim wp:2 --wait 60s")).wait();
    assert_eq!(granted.code, 0, "{granted}");
    a.vanish();
    let granted = codex.start(b.command("claim wp:3 --wait 60s")).wait();
    assert_eq!(granted.code, 0, "{granted}");
    // Rows that have long been silent are removed by any keeper that starts.
    server.run("UPDATE tenure.keepers SET seen_at = 0 WHERE by_role = 'ann'");
    server.run("DELETE FROM tenure.watched WHERE keeper IN (SELECT id FROM tenure.keepers WHERE by_role = 'ann')");
    b.person(0, "keeper stop");
    b.run(&codex, 0, "renew");
    poll(SOON, "the row is removed", || {
        let left = server.ask("SELECT id FROM tenure.keepers WHERE by_role = 'ann'");
        left.is_empty().then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_session_of_another_role_is_not_killed_and_keeps_its_claims() {
    let server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[]);
    with_people(&server);
    // One machine, so that the process can be seen, and two people.
    let a = Machine::new(&env, "a").through(server.url_as("ann", "tenure"));
    let b = Machine::new(&env, "a").through(server.url_as("bob", "tenure"));
    let (claude, codex) = (a.session("claude"), b.env_agent("codex"));
    a.run(&claude, 0, "claim wp:1");
    let shown = a.run(&claude, 0, "whoami");
    let id = shown["session"]["id"].as_str().unwrap();
    let register = format!("register --agent codex --pid {}", codex.pid());
    b.run(&codex, 0, &register);
    let to = b.run(&codex, 0, "whoami");
    let to = to["session"]["handle"].as_str().unwrap();
    let state = || {
        let holds = "SELECT epoch, ended_at FROM tenure.holds";
        let sessions = "SELECT id, closed_at, revision FROM tenure.sessions";
        [holds, sessions].map(|sql| server.ask(sql))
    };
    let before = state();
    for line in [
        format!("end {id} --kill --reason rival"),
        format!("release wp:1 --session {id} --reason rival"),
        format!("handoff wp:1 --to {to} --session {id} --reason rival"),
    ] {
        let refused = b.person(1, &line);
        assert_eq!(refused["error"]["kind"], "not_owner", "{line}: {refused}");
        assert!(claude.is_alive(), "{line}");
        assert_eq!(state(), before, "{line}");
    }
    a.run(&claude, 0, "guard wp:1");
    let ended = a.person(0, &format!("end {id} --kill --reason stuck"));
    assert_eq!(ended["killed"]["pid"], claude.pid(), "{ended}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn with_one_shared_role_everyone_may_act_for_everyone() {
    let server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[]);
    with_people(&server);
    for role in ["ann", "tenure"] {
        let url = server.url_as(role, "tenure");
        let a = Machine::new(&env, &format!("a-{role}")).through(url.clone());
        let b = Machine::new(&env, &format!("b-{role}")).through(url);
        let (claude, codex) = (a.session("claude"), b.session("codex"));
        let shown = a.run(&claude, 0, "whoami");
        let id = shown["session"]["id"].as_str().unwrap();
        b.run(&codex, 0, &format!("end {id} --reason stuck"));
    }
}

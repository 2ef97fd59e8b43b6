//! What another machine learns of a silence and a takeover.

use std::time::{Duration, Instant};

use tenure_testkit::poll;
use tenure_testkit::postgres::PostgresServer;

use crate::machine::{Machine, SOON, kept, kept_at, proxied};

#[test]
#[ignore = "needs PostgreSQL"]
fn a_silent_agent_keeps_its_claim_while_its_machine_reports() {
    let (_server, env) = kept(&[("TENURE_HOST_LEASE", "3s"), ("TENURE_LOCK_DELAY", "100ms")]);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    let codex = b.session("codex");
    let began = Instant::now();
    // Twice the lease of the session itself.
    while began.elapsed() < Duration::from_secs(7) {
        b.run(&codex, 3, "claim wp:1");
    }
    a.run(&claude, 0, "guard wp:1");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn who_claims_after_a_takeover_waits_until_the_first_holders_machine_knows() {
    let (_server, env) = kept(&[("TENURE_LOCK_DELAY", "2s")]);
    let (a, b) = (Machine::new(&env, "a"), Machine::new(&env, "b"));
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    let (codex, gemini) = (b.session("codex"), b.session("gemini"));
    let refused = b.run(&gemini, 3, "claim wp:1");
    assert!(refused["error"]["holder"]["host"].is_string(), "{refused}");
    let handle = refused["error"]["holder"]["handle"].as_str().unwrap();
    // Its machine says that it runs; ps and alive say the same.
    let alive = b.run(&gemini, 0, &format!("alive {handle}"));
    assert_eq!(alive["alive"], true, "{alive}");
    let machine = refused["error"]["holder"]["host"].as_str().unwrap();
    let listed = b.run(&gemini, 0, "ps");
    let sessions = listed["sessions"].as_array().unwrap();
    let host_of = |handle: &str| {
        let one = sessions.iter().find(|one| one["handle"] == handle);
        one.unwrap_or_else(|| panic!("{handle} in {listed}"))["host"].clone()
    };
    assert_eq!(host_of(handle), machine, "{listed}");
    let own = b.run(&gemini, 0, "whoami");
    let own = own["session"]["handle"].as_str().unwrap();
    assert!(host_of(own).is_null(), "{listed}");
    let shown = b.said("ps");
    let line = shown.stdout.lines().find(|line| line.contains(handle));
    let line = line.unwrap_or_else(|| panic!("{handle} in {shown}"));
    assert!(line.contains(&format!("{machine}:")), "{line}");
    let taken = b.run(&codex, 0, "takeover wp:1 --reason urgent");
    assert!(
        taken["claim"]["may_write_until"].is_i64() || taken["claim"]["may_write_until"].is_string(),
        "{taken}"
    );
    b.run(&codex, 0, "release wp:1");
    let early = b.run(&gemini, 3, "claim wp:1");
    assert_eq!(early["error"]["kind"], "suspect", "{early}");
    let granted = gemini.start(b.command("claim wp:1 --wait 60s")).wait();
    assert_eq!(granted.code, 0, "{granted}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_session_of_a_copied_machine_is_not_taken_for_a_dead_one() {
    let (server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    // The copy has the same host id and another boot: its sessions name a boot that is not this one.
    let sql = "UPDATE tenure.sessions SET boot_id = 'another'; UPDATE tenure.lives SET boot_id = 'another'";
    server.run(sql);
    let codex = a.env_agent("codex");
    let pid = codex.pid();
    a.run(&codex, 0, &format!("register --agent codex --pid {pid}"));
    a.run(&codex, 3, "claim wp:1");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn f_s09_after_a_cut_and_a_takeover_the_first_holder_is_told_and_refused() {
    let server = PostgresServer::own(&[]);
    let env = kept_at(&server.url("tenure"), &[]);
    let (proxy, through) = proxied(&server);
    let (a, b) = (
        Machine::new(&env, "a").through(through),
        Machine::new(&env, "b"),
    );
    let claude = a.session("claude");
    a.run(&claude, 0, "claim wp:1");
    a.lists(1);
    let codex = b.session("codex");
    proxy.freeze(true);
    proxy.cut();
    b.run(&codex, 0, "takeover wp:1 --reason urgent");
    proxy.freeze(false);
    let told = poll(SOON, "the link is back", || {
        let said = a.ask(&claude, "guard wp:1");
        (said.code == 5).then_some(said)
    });
    let notices = told.json()["notices"].to_string();
    assert!(notices.contains("urgent"), "{told}");
    assert!(claude.is_alive());
}

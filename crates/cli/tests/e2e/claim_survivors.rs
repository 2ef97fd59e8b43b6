//! What a dead agent left running: the next holder is told, and can require that nothing runs.

use serde_json::{Value, json};
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Cmd, Env, poll};

use crate::env;
use crate::support::line::{SOON, crew, handle, refused, register, run, session, take, text};
use crate::support::waiter::{ends, waits};

/// Something that goes on.
fn busy() -> Cmd {
    Cmd::new("sleep").arg("1000")
}

/// A conversation of this test alone: survivors are looked for among all processes, other tests' too.
fn native(env: &Env) -> String {
    let name = env.dir().file_name().expect("a directory has a name");
    name.to_string_lossy().into_owned()
}

/// An agent that is a session, holds wp:1, and leads no session of processes: only variables tell what
/// it leaves behind. With the agent that it runs in, and what TENURE_SESSION must be.
fn inner(env: &Env, name: &str) -> (Agent, Agent, String) {
    let outer = env.agent("outer");
    let agent = outer.nest(name);
    let born = register(&agent, name, &format!("--native-id {}", native(env)));
    take(&agent, "wp:1");
    (outer, agent, text(&born["token"]))
}

/// Claims wp:1 and returns what its previous holder left behind.
#[track_caller]
fn left_behind(taker: &Agent) -> Value {
    let claim = run(taker, 0, "claim wp:1")["claim"].clone();
    assert_eq!(claim["taken_from"]["by"], "death", "{claim}");
    claim["taken_from"]["survivors"].clone()
}

fn pids(survivors: &Value) -> Vec<u64> {
    let all = survivors.as_array().expect("a list").iter();
    all.map(|one| one["pid"].as_u64().expect("a pid")).collect()
}

fn kill(agent: &Agent, pid: u32) {
    let kill = ["-9".to_owned(), pid.to_string()];
    agent.run(Cmd::new("kill").args(kill)).ok();
}

#[test]
fn f_h14_a_takeover_tells_what_the_dead_agents_tool_still_runs() {
    let env = env();
    for sign in ["TENURE_SESSION", "CLAUDE_CODE_SESSION_ID"] {
        let bob = session(&env, "bob");
        let (_outer, claude, token) = inner(&env, "claude");
        let value = match sign {
            "TENURE_SESSION" => token,
            _ => native(&env),
        };
        let orphan = claude.orphan(busy().env(sign, value));
        claude.kill9();
        let survivors = left_behind(&bob);
        assert_eq!(pids(&survivors), [u64::from(orphan)], "{sign}");
        assert!(text(&survivors[0]["command"]).contains("sleep 1000"));
        kill(&bob, orphan);
        run(&bob, 0, "release wp:1");
    }
}

#[test]
fn f_h14_a_child_without_variables_is_known_by_its_session_of_processes() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let orphan = ann.orphan(busy());
    ann.kill9();
    assert_eq!(pids(&left_behind(&bob)), [u64::from(orphan)]);
}

#[test]
fn f_h14_people_are_told_too() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let orphan = ann.orphan(busy());
    ann.kill9();
    let said = bob.tenure(&["claim", "wp:1"]).ok();
    assert!(said.stdout.contains(&orphan.to_string()), "{said}");
    assert!(said.stdout.contains("sleep 1000"), "{said}");
}

#[test]
fn f_h14_a_takeover_that_insists_on_quiet_waits_for_it() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let gone = handle(&ann);
    take(&ann, "wp:1");
    let orphan = ann.orphan(busy());
    ann.kill9();
    let quiet = "claim wp:1 --require-quiet";
    let error = refused(&bob, 3, "survivors", quiet);
    let said = text(&error["message"]);
    assert!(
        said.contains(&orphan.to_string()) && said.contains(&gone),
        "{error}"
    );
    refused(&bob, 7, "timed_out", &format!("{quiet} --wait 50ms"));
    let waiter = waits(&env, &bob, "wp:1", &format!("{quiet} --wait 5m"));
    kill(&bob, orphan);
    let claim = ends(waiter).ok().json()["claim"].clone();
    assert_eq!(claim["taken_from"]["handle"], gone.as_str());
    assert_eq!(claim["taken_from"]["survivors"], json!([]));
}

#[test]
fn the_children_of_a_living_twin_are_not_counted() {
    let (env, [bob]) = crew(["bob"]);
    let (_outer, claude, _) = inner(&env, "claude");
    let twin = env.agent("claude");
    let born = register(&twin, "claude", &format!("--native-id {}", native(&env)));
    assert_eq!(born["session"]["registered"], "twin");
    let tool = busy().env("CLAUDE_CODE_SESSION_ID", native(&env));
    let working = twin.start(tool);
    claude.kill9();
    assert_eq!(left_behind(&bob), json!([]));
    assert!(working.is_alive());
}

#[test]
fn what_is_older_than_the_session_is_not_counted() {
    let (env, [bob]) = crew(["bob"]);
    let older = bob.start(busy().env("CLAUDE_CODE_SESSION_ID", native(&env)));
    // Starts are told apart by clock ticks: the next one must have begun.
    let ticks = |pid| Stat::read(pid).map(|stat| stat.start);
    poll(SOON, "the next tick", || {
        let later = bob.start(Cmd::new("sleep").arg("1000"));
        (ticks(later.pid) > ticks(older.pid)).then_some(())
    });
    let (_outer, claude, _) = inner(&env, "claude");
    claude.kill9();
    assert_eq!(left_behind(&bob), json!([]));
    assert!(older.is_alive());
}

#[test]
fn another_sessions_processes_are_not_counted() {
    let (env, [bob]) = crew(["bob"]);
    let (outer, claude, token) = inner(&env, "claude");
    let other = token.replace(|c: char| c.is_ascii_digit(), "1");
    let _others = [
        outer.start(busy().env("CLAUDE_CODE_SESSION_ID", native(&env) + "2")),
        outer.start(busy().env("CODEX_THREAD_ID", native(&env))),
        outer.start(busy().env("TENURE_SESSION", other)),
        outer.start(busy().env("TENURE_SESSION", format!("{token}1"))),
    ];
    claude.kill9();
    assert_eq!(left_behind(&bob), json!([]));
}

/// A worker inside the dead agent's session of processes is none of what it left, if it is a session.
#[test]
fn the_taker_is_not_told_of_itself() {
    let (_env, [ann]) = crew(["ann"]);
    let kid = ann.nest("kid");
    register(&kid, "kid", "");
    take(&ann, "wp:1");
    ann.kill9();
    run(&kid, 0, "claim wp:1 --require-quiet");
}

#[test]
fn what_was_left_behind_is_gone_when_it_is_gone() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    let orphan = ann.orphan(busy());
    ann.kill9();
    // Its death is recorded before anyone claims.
    run(&bob, 0, "ps -a");
    refused(&bob, 3, "survivors", "claim wp:1 --require-quiet");
    kill(&bob, orphan);
    poll(SOON, "it is quiet", || {
        let said = bob.tenure(&["claim", "wp:1", "--require-quiet"]);
        (said.code == 0).then_some(())
    });
}

//! Events whose process is unknown: one session per conversation, kept alive by its lease.

use serde_json::{Value, json};
use tenure_testkit::Cmd;

use crate::env;
use crate::support::answer::{ask, assert_is, held};
use crate::support::hook::{captured, claude, only, send, session_of, sessions};
use crate::support::lease::{await_expiry, impatient};

#[test]
fn without_an_agent_above_it_a_conversation_is_one_session_that_lives_by_its_lease() {
    let env = impatient();
    let (plain, other) = (env.agent("helper"), env.agent("helper"));
    let file = env.dir().join("variables");
    let start = captured(&env, "claude-2.1.325/SessionStart.startup", "u1");
    plain
        .run(
            Cmd::shell("tenure hook claude; exit $?")
                .env("CLAUDE_ENV_FILE", file.display().to_string())
                .stdin(start.to_string()),
        )
        .ok();
    // Whichever process reports it: none of them is the agent.
    for (from, event) in [
        (&plain, "UserPromptSubmit"),
        (&other, "PreToolUse.Bash"),
        (&other, "SessionStart.resume"),
        (&plain, "Stop"),
    ] {
        claude(&env, from, event, "u1");
    }
    let me = only(&env);
    assert_eq!(me["process"]["verified"], false);
    assert_eq!(me["process"]["pid"], Value::Null);
    assert_eq!(me["twin_of"], Value::Null);
    assert_eq!(me["state"], "unknown");
    let variables = std::fs::read_to_string(file).expect("it was written");
    let token = variables.trim().split_once('=').expect("one variable").1;
    plain
        .tenure_env(&[("TENURE_SESSION", Some(token))], &["claim", "wp:1"])
        .ok();
    // Its lease is over at once here, and so is its hold.
    let b = env.agent("codex");
    send(
        &b,
        "codex",
        &captured(&env, "codex-0.166.0/SessionStart.startup", "b1"),
    );
    await_expiry(&b, "wp:1");
    ask(&b, &["claim", "wp:1"]);
    // An agent that is found takes the conversation up.
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.resume", "u1");
    assert_is(&ask(&a, &["whoami"]), a.pid());
    assert_eq!(session_of(&a)["id"], me["id"]);
}

#[test]
fn events_from_nowhere_make_at_most_one_twin_of_a_living_session() {
    let env = env();
    let (a, plain) = (env.agent("claude"), env.agent("helper"));
    claude(&env, &a, "SessionStart.startup", "a1");
    ask(&a, &["claim", "wp:1"]);
    for event in [
        "PreToolUse.Bash",
        "Stop",
        "SessionStart.resume",
        "UserPromptSubmit",
    ] {
        claude(&env, &plain, event, "a1");
    }
    let all = sessions(&env);
    assert_eq!(all.len(), 2, "{all:#?}");
    claude(&env, &plain, "SessionEnd.other", "a1");
    let me = session_of(&a);
    assert_eq!(
        (&me["state"], &me["native_id"]),
        (&json!("live"), &json!("a1"))
    );
    assert_eq!(held(&me, "/claims"), ["wp:1@1"]);
}

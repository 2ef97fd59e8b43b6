//! Which session an agent's event belongs to: captured events, sent by real processes with an agent's name
//! through the shell that agents put between themselves and a hook.

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, poll};

use crate::env;
use crate::support::answer::{
    PATIENCE, ask, asked_by_nobody, assert_is, count, events, held, refused, text,
};
use crate::support::hook::{captured, claude, only, send, session_of, sessions, told};
use crate::support::transcript::file_of;

#[test]
fn f_h02_the_event_on_stdin_says_who_it_is_whatever_variables_say() {
    let mut env = env();
    for name in ["CLAUDE_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "SESSION_ID"] {
        env.set(name, "wrong");
    }
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    assert_eq!(only(&env)["native_id"], "a1");
}

#[test]
fn f_i03_the_agent_is_the_process_and_never_the_shell_that_ran_the_hook() {
    let env = env();
    for (adapter, fixture) in [
        ("claude", "claude-2.1.325/SessionStart.startup"),
        ("claude", "claude-2.1.197/SessionStart.startup"),
        ("codex", "codex-0.166.0/SessionStart.startup"),
        ("gemini", "gemini-0.61.0/SessionStart.startup"),
    ] {
        let a = env.agent(adapter);
        let id = fixture.replace(['/', '.'], "-");
        send(&a, adapter, &captured(&env, fixture, &id));
        let me = ask(&a, &["whoami"]);
        assert_is(&me, a.pid());
        assert_eq!(me["session"]["agent"], adapter);
        assert_eq!(me["session"]["native_id"], id.as_str());
        assert_eq!(
            me["session"]["dir"],
            env.work().display().to_string().as_str()
        );
        a.kill9();
        env.tenure(&["alive", text(&me, "/session/id")]).fails(1);
    }
}

#[test]
fn f_h05_any_event_but_an_end_registers_a_process_whose_start_was_lost() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionEnd.other", "a1");
    assert_eq!(sessions(&env).len(), 0, "an end registers nobody");
    claude(&env, &a, "PreToolUse.Bash", "a1");
    let me = ask(&a, &["whoami"]);
    assert_is(&me, a.pid());
    assert_eq!(me["session"]["native_id"], "a1");
    let registered = events(&env, "session.registered");
    assert_eq!(registered.len(), 1);
    assert_eq!(registered[0]["mechanism"], "healed");
    // The start that was only late changes nothing.
    claude(&env, &a, "SessionStart.startup", "a1");
    assert_eq!(only(&env)["id"], me["session"]["id"]);
    claude(&env, &a, "SessionEnd.other", "a1");
    assert_eq!(only(&env)["state"], "ended");
}

#[test]
fn f_h10_an_end_that_another_process_reports_ends_nothing() {
    let env = env();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    claude(&env, &a, "SessionStart.startup", "a1");
    ask(&a, &["claim", "wp:1"]);
    // Resuming what is open elsewhere, or does not exist, ends without a start.
    claude(&env, &b, "SessionEnd.other", "a1");
    claude(&env, &b, "SessionEnd.other", "unheard-of");
    claude(&env, &b, "SessionEnd.prompt_input_exit", "a1");
    let me = only(&env);
    assert_eq!(me["state"], "live");
    assert_eq!(held(&me, "/claims"), ["wp:1@1"]);
    // Its own end is one.
    claude(&env, &a, "SessionEnd.prompt_input_exit", "a1");
    let me = only(&env);
    assert_eq!(me["state"], "ended");
    assert!(text(&me, "/end_reason").contains("the user exited"));
    assert_eq!(count(&me, "/claims"), 0);
}

#[test]
fn f_h11_clear_is_one_session_with_another_conversation_and_the_same_claims() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    let first = session_of(&a);
    ask(&a, &["claim", "wp:1"]);
    claude(&env, &a, "SessionEnd.clear", "a1");
    assert_eq!(only(&env)["state"], "live", "the worker goes on");
    claude(&env, &a, "SessionStart.clear", "a2");
    let me = session_of(&a);
    assert_eq!(me["id"], first["id"]);
    assert_eq!(me["native_id"], "a2");
    assert_eq!(held(&me, "/claims"), ["wp:1@1"]);
    assert_eq!(sessions(&env).len(), 1);
    assert_eq!(events(&env, "session.conversation").len(), 1);
    assert_eq!(events(&env, "session.ended").len(), 0);
}

#[test]
fn f_h12_a_fork_whose_start_names_its_parent_is_never_the_parent() {
    let env = env();
    let a = env.agent("claude");
    let old = |agent: &Agent, event: &str, id: &str| {
        let event = captured(&env, &format!("claude-2.1.197/{event}"), id);
        send(agent, "claude", &event)
    };
    old(&a, "SessionStart.startup", "a1");
    ask(&a, &["claim", "wp:1"]);
    let parent = session_of(&a);
    let b = env.agent_with("claude", &["--resume", "a1", "--fork-session"]);
    old(&b, "SessionStart.resume", "a1");
    let fork = session_of(&b);
    assert_ne!(fork["id"], parent["id"]);
    assert_eq!(fork["native_id"], Value::Null);
    assert_eq!(fork["twin_of"], Value::Null);
    old(&b, "UserPromptSubmit", "a1");
    old(&b, "PreToolUse.Bash", "a1");
    assert_eq!(session_of(&b)["native_id"], Value::Null);
    refused(&b, 3, &["claim", "wp:1"]);
    // Only its end names it.
    old(&b, "SessionEnd.other", "f1");
    let all = sessions(&env);
    let state = |id: &Value| &all.iter().find(|one| one["id"] == *id).expect("it is")["state"];
    assert_eq!(all.len(), 2);
    assert_eq!(
        (state(&parent["id"]), state(&fork["id"])),
        (&json!("live"), &json!("ended"))
    );
    assert_eq!(held(&session_of(&a), "/claims"), ["wp:1@1"]);
}

#[test]
fn f_h12_what_says_that_it_is_a_fork_is_one() {
    let env = env();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    claude(&env, &a, "SessionStart.startup", "a1");
    claude(&env, &b, "SessionStart.fork", "f1");
    let fork = session_of(&b);
    assert_ne!(fork["id"], session_of(&a)["id"]);
    assert_eq!(fork["native_id"], "f1");
    let registered = events(&env, "session.registered");
    assert!(
        registered.iter().any(|one| one["mechanism"] == "forked"),
        "{registered:#?}"
    );
}

#[test]
fn f_h13_a_tool_without_any_variable_finds_its_session() {
    let env = env();
    let a = env.agent("claude");
    let lost = env.dir().join("thrown-away");
    let event = captured(&env, "claude-2.1.325/SessionStart.resume", "a1");
    a.run(
        Cmd::shell("tenure hook claude")
            .env("CLAUDE_ENV_FILE", lost.display().to_string())
            .stdin(event.to_string()),
    )
    .ok();
    std::fs::remove_file(lost).expect("it was written");
    let me = a
        .run(Cmd::shell(
            "unset TENURE_SESSION; tenure whoami --json; true",
        ))
        .ok()
        .json();
    assert_eq!(me["resolved"]["by"], "ancestry");
    assert_eq!(me["session"]["native_id"], "a1");
}

#[test]
fn f_i06_compaction_and_new_ids_leave_a_session_its_claims() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    ask(&a, &["claim", "wp:1"]);
    let first = session_of(&a);
    for (event, id) in [
        ("PreCompact.manual", "a1"),
        ("SessionStart.compact", "a1"),
        ("PostCompact.manual", "a1"),
        ("SessionEnd.clear", "a1"),
        ("SessionStart.clear", "a2"),
        ("UserPromptSubmit", "a2"),
        ("SessionStart.resume", "a3"),
    ] {
        claude(&env, &a, event, id);
        let me = session_of(&a);
        assert_eq!(
            (&me["id"], &me["state"]),
            (&first["id"], &json!("live")),
            "{event}"
        );
        assert_eq!(held(&me, "/claims"), ["wp:1@1"], "{event}");
        ask(&a, &["guard", "wp:1", "--epoch", "1"]);
    }
    assert_eq!(sessions(&env).len(), 1);
}

#[test]
fn f_i07_a_nested_agent_with_the_outer_ones_variables_is_itself() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    let outer = ask(&a, &["whoami"]);
    let b = a.nest("claude");
    let event = captured(&env, "claude-2.1.325/SessionStart.startup", "b1");
    b.run(
        Cmd::shell("tenure hook claude; exit $?")
            .env("TENURE_SESSION", text(&outer, "/resolved/token"))
            .env("CLAUDE_CODE_SESSION_ID", "a1")
            // Inherited from the outer one; the nearer agent counts.
            .env("CLAUDE_PID", a.pid().to_string())
            .stdin(event.to_string()),
    )
    .ok();
    let inner = ask(&b, &["whoami"]);
    assert_is(&inner, b.pid());
    assert_eq!(inner["session"]["native_id"], "b1");
    assert_eq!(inner["session"]["parent"], outer["session"]["id"]);
    claude(&env, &b, "SessionEnd.other", "b1");
    assert_is(&ask(&a, &["whoami"]), a.pid());
    assert_eq!(session_of(&a)["native_id"], "a1");
}

#[test]
fn f_i08_two_live_processes_of_one_conversation_are_twins_and_each_model_is_told_once() {
    let env = env();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    claude(&env, &a, "SessionStart.startup", "a1");
    ask(&a, &["claim", "wp:1"]);
    let first = session_of(&a);
    let twin = told(&claude(&env, &b, "SessionStart.resume", "a1")).expect("it is told");
    assert_eq!(twin.matches("tenure notice (twin)").count(), 1, "{twin}");
    let said = claude(&env, &a, "Stop", "a1");
    assert_eq!(
        said.stdout, "",
        "its model does not read the answer to this"
    );
    let heard = told(&claude(&env, &a, "UserPromptSubmit", "a1")).expect("it is told");
    assert_eq!(heard.matches("tenure notice (twin)").count(), 1, "{heard}");
    assert!(heard.contains(&b.pid().to_string()), "{heard}");
    for agent in [&a, &b] {
        for event in ["UserPromptSubmit", "PreToolUse.Bash", "PostToolUse.Bash"] {
            assert_eq!(told(&claude(&env, agent, event, "a1")), None, "{event}");
        }
    }
    let second = ask(&b, &["whoami"]);
    assert_is(&second, b.pid());
    assert_eq!(second["session"]["twin_of"], first["id"]);
    refused(&b, 3, &["claim", "wp:1"]);
    assert_eq!(sessions(&env).len(), 2, "events make no more of them");
}

#[test]
fn f_i16_a_hook_that_another_agent_ran_is_ignored() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    let first = session_of(&a);
    let b = a.nest("codex");
    // The outer one's hooks, inherited by an agent that nobody registered.
    for event in [
        "PreToolUse.Bash",
        "SessionStart.startup",
        "SessionEnd.other",
    ] {
        let said = claude(&env, &b, event, "x1");
        assert_eq!(
            (said.stdout.as_str(), said.stderr.as_str()),
            ("", ""),
            "{said}"
        );
    }
    refused(&b, 4, &["whoami"]);
    let me = only(&env);
    assert_eq!((&me["id"], &me["state"]), (&first["id"], &json!("live")));
    assert_eq!(me["native_id"], "a1");
}

#[test]
fn f_i22_a_lost_or_late_clear_is_a_rotation() {
    let mut env = env();
    // On a server, a busy machine may answer later than an agent is held up.
    env.set("TENURE_HOOK_WAIT", "1s");
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    ask(&a, &["claim", "wp:1"]);
    let first = session_of(&a);
    // Both of /clear's events were lost; then its start comes late.
    for event in ["PreToolUse.Bash", "SessionStart.clear"] {
        claude(&env, &a, event, "a2");
        let me = session_of(&a);
        assert_eq!(
            (&me["id"], &me["native_id"]),
            (&first["id"], &json!("a2")),
            "{event}"
        );
        assert_eq!(held(&me, "/claims"), ["wp:1@1"]);
    }
    // And the old one's end comes last.
    claude(&env, &a, "SessionEnd.clear", "a1");
    let me = only(&env);
    assert_eq!(
        (&me["state"], &me["native_id"]),
        (&json!("live"), &json!("a2"))
    );
    ask(&a, &["guard", "wp:1", "--epoch", "1"]);
}

#[test]
fn f_h09_every_session_has_its_own_heartbeat() {
    let mut env = env();
    env.set("TENURE_LEASE", "2s");
    let agents = [(); 3].map(|()| env.agent("claude"));
    let id = |at: usize| format!("a{at}");
    for (at, agent) in agents.iter().enumerate() {
        claude(&env, agent, "SessionStart.startup", &id(at));
        claude(&env, agent, "PreToolUse.Bash", &id(at));
    }
    let seen = |at: usize| {
        let all = sessions(&env);
        let mine = all.iter().find(|one| one["native_id"] == id(at).as_str());
        text(mine.expect("it is registered"), "/last_seen_at").to_owned()
    };
    let before = [seen(0), seen(1), seen(2)];
    poll(PATIENCE, "all of them are seen again", || {
        for (at, agent) in agents.iter().enumerate() {
            claude(&env, agent, "PreToolUse.Bash", &id(at));
        }
        (0..3).all(|at| seen(at) > before[at]).then_some(())
    });
}

#[test]
fn events_of_subagents_are_the_sessions_heartbeats_and_never_end_or_rotate_it() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    claude(&env, &a, "UserPromptSubmit", "a1");
    ask(&a, &["claim", "wp:1"]);
    let first = session_of(&a);
    let mut own = captured(&env, "claude-2.1.325/PreToolUse.Bash", "a1");
    own["agent_id"] = json!("a2a886891f3b82396");
    // The session's own id, or another that nobody knows.
    let mut odd = own.clone();
    odd["session_id"] = json!("sub-conversation");
    let mut end = captured(&env, "claude-2.1.325/SessionEnd.other", "a1");
    end["agent_id"] = json!("a2a886891f3b82396");
    let mut stop = captured(&env, "claude-2.1.325/Stop", "a1");
    stop["agent_id"] = json!("a2a886891f3b82396");
    claude(&env, &a, "SubagentStart", "a1");
    for event in [&own, &odd, &stop, &end] {
        send(&a, "claude", event);
    }
    // The one without a type is of a compaction.
    let mut done = captured(&env, "claude-2.1.325/SubagentStop", "a1");
    send(&a, "claude", &done);
    done["agent_type"] = json!("general-purpose");
    send(&a, "claude", &done);
    let me = only(&env);
    assert_eq!(me["id"], first["id"]);
    assert_eq!(me["native_id"], "a1");
    assert_eq!(
        (&me["state"], &me["activity"]),
        (&json!("live"), &json!("busy"))
    );
    assert_eq!(held(&me, "/claims"), ["wp:1@1"]);
    let log = events(&env, "session.subagent");
    let kept: Vec<(&str, &str)> = log
        .iter()
        .map(|one| (text(one, "/mechanism"), text(one, "/evidence")))
        .collect();
    assert!(
        kept.contains(&("started", "subagent a2a886891f3b82396 (general-purpose)")),
        "{kept:?}"
    );
    assert!(
        kept.contains(&("stopped", "subagent a1117b9569d5a3817 (general-purpose)")),
        "{kept:?}"
    );
    assert_eq!(kept.len(), 2);
}

#[test]
fn what_an_agent_does_is_shown() {
    let env = env();
    let shown = |id: &str| {
        let all = asked_by_nobody(&env, &["ps"]);
        let mine = all["sessions"].as_array().expect("a list").iter();
        let mine: Vec<_> = mine.filter(|one| one["native_id"] == id).collect();
        mine[0]["activity"].clone()
    };
    let a = env.agent("claude");
    for (event, activity) in [
        ("SessionStart.startup", "idle"),
        ("UserPromptSubmit", "busy"),
        ("PermissionRequest", "waiting"),
        ("PostToolUse.Bash", "busy"),
        ("MessageDisplay", "busy"),
        ("Stop", "idle"),
    ] {
        claude(&env, &a, event, "a1");
        assert_eq!(shown("a1"), activity, "{event}");
    }
    let b = env.agent("codex");
    for (event, activity) in [
        ("SessionStart.startup", "idle"),
        ("UserPromptSubmit", "busy"),
        ("PreModelRequest", "busy"),
        ("Stop", "idle"),
    ] {
        send(
            &b,
            "codex",
            &captured(&env, &format!("codex-0.166.0/{event}"), "b1"),
        );
        assert_eq!(shown("b1"), activity, "{event}");
    }
    let c = env.agent("gemini");
    for (event, activity) in [
        ("SessionStart.startup", "idle"),
        ("BeforeAgent", "busy"),
        ("AfterAgent", "idle"),
    ] {
        send(
            &c,
            "gemini",
            &captured(&env, &format!("gemini-0.61.0/{event}"), "c1234567"),
        );
        assert_eq!(shown("c1234567"), activity, "{event}");
    }
}

#[test]
fn a_transcript_of_another_conversation_is_recorded_and_the_event_counts() {
    let env = env();
    let a = env.agent("claude");
    let mut start = captured(&env, "claude-2.1.325/SessionStart.startup", "a1");
    start["transcript_path"] = json!(file_of(&env, "b2").display().to_string());
    send(&a, "claude", &start);
    let me = session_of(&a);
    assert_eq!(me["native_id"], "a1");
    assert_eq!(me["activity"], "idle");
    let recorded = events(&env, "contamination");
    assert_eq!(recorded.len(), 1, "{recorded:#?}");
    assert!(text(&recorded[0], "/evidence").contains("b2.jsonl"));
    // The next event of the same session names the right one, and still counts.
    claude(&env, &a, "UserPromptSubmit", "a1");
    assert_eq!(session_of(&a)["activity"], "busy");
    let shown = ask(&a, &["transcript", "show", text(&me, "/handle")]);
    assert!(shown.to_string().contains("a1.jsonl"), "{shown:#}");
    assert!(!shown.to_string().contains("b2.jsonl"), "{shown:#}");
}

#[test]
fn any_program_can_report_what_it_does() {
    let env = env();
    let a = env.agent("nightly-build");
    let say = |event: Value| send(&a, "generic", &event);
    let began = say(json!({"event": "start", "agent": "nightly", "session_id": "7f3c"}));
    let me = ask(&a, &["whoami"]);
    assert_is(&me, a.pid());
    assert_eq!(me["session"]["agent"], "nightly");
    assert_eq!(me["session"]["native_id"], "7f3c");
    let answer = began.json();
    assert!(text(&answer, "/context").contains(text(&me, "/session/handle")));
    assert_eq!(answer["env"]["TENURE_SESSION"], me["resolved"]["token"]);
    ask(&a, &["claim", "wp:1"]);
    for doing in ["busy", "waiting", "idle", "beat"] {
        let said = say(json!({"event": doing, "agent": "nightly", "session_id": "7f3c"}));
        assert_eq!(said.stdout, "", "{doing}: there is nothing to say");
        let shown = if doing == "beat" { "idle" } else { doing };
        assert_eq!(only(&env)["activity"], shown);
    }
    let nobody = env.agent("codex");
    nobody.tenure(&["tell", "nightly", "stop, please"]).ok();
    let heard = say(json!({"event": "beat", "session_id": "7f3c"})).json();
    assert!(text(&heard, "/context").contains("stop, please"), "{heard}");
    say(json!({"event": "end", "session_id": "7f3c", "reason": "done for today"}));
    let me = only(&env);
    assert_eq!(me["state"], "ended");
    assert!(text(&me, "/end_reason").contains("done for today"));
    assert_eq!(count(&me, "/claims"), 0);
}

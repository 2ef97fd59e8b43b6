//! What a hook tells the model and the person: who it is, what happened to it, and an outage, each once.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Output};

use crate::env;
use crate::support::answer::{ask, held, text};
use crate::support::hook::{captured, claude, only, outages, send, sessions, told};

/// How the model is told of a thing that happened.
fn notice(kind: &str) -> String {
    format!("tenure notice ({kind}): ")
}

#[test]
fn notices_are_told_once_and_only_where_the_model_reads_them() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    let handle = text(&only(&env), "/handle").to_owned();
    env.agent("codex")
        .tenure(&["tell", &handle, "two lines\nof advice"])
        .ok();
    let mut of_subagent = captured(&env, "claude-2.1.325/PostToolUse.Bash", "a1");
    of_subagent["agent_id"] = json!("a2a886891f3b82396");
    for event in [
        "Stop",
        "PermissionRequest",
        "PostToolBatch",
        "MessageDisplay",
    ] {
        let said = claude(&env, &a, event, "a1");
        assert_eq!(said.stdout, "", "{event}\n{said}");
    }
    assert_eq!(send(&a, "claude", &of_subagent).stdout, "");
    let heard = told(&claude(&env, &a, "PostToolUse.Bash", "a1")).expect("it is told");
    assert_eq!(
        heard,
        format!(
            "{}message from someone outside any session: \"two lines\\nof advice\"",
            notice("told")
        )
    );
    for event in ["PostToolUse.Bash", "PreToolUse.Bash", "UserPromptSubmit"] {
        let said = claude(&env, &a, event, "a1");
        assert_eq!(said.stdout, "", "{event}\n{said}");
    }
}

#[test]
fn each_agent_is_told_in_its_own_channel() {
    let env = env();
    let told_to = |agent: &Agent, adapter: &str, events: [Value; 3], at: &str| {
        let [start, silent, heard] = events;
        send(agent, adapter, &start);
        let me = ask(agent, &["whoami"]);
        env.tenure(&["tell", text(&me, "/session/handle"), "hello"])
            .ok();
        assert_eq!(send(agent, adapter, &silent).stdout, "", "{adapter}");
        let said = send(agent, adapter, &heard).json();
        assert!(text(&said, at).contains("hello"), "{adapter}: {said}");
        assert_eq!(send(agent, adapter, &heard).stdout, "", "{adapter}");
    };
    let context = "/hookSpecificOutput/additionalContext";
    let codex = ["SessionStart.startup", "Stop", "UserPromptSubmit"]
        .map(|event| captured(&env, &format!("codex-0.166.0/{event}"), "c1"));
    told_to(&env.agent("codex"), "codex", codex, context);
    let gemini = ["SessionStart.startup", "AfterAgent", "BeforeAgent"]
        .map(|event| captured(&env, &format!("gemini-0.61.0/{event}"), "g1234567"));
    told_to(&env.agent("gemini"), "gemini", gemini, context);
    let opencode = ["SessionStart", "PreToolUse", "PostToolUse"]
        .map(|event| json!({"hook_event_name": event, "session_id": "ses_1", "cwd": env.work()}));
    told_to(&env.agent("opencode"), "opencode", opencode, "/context");
}

#[test]
fn a_lost_claim_is_told_once() {
    let env = env();
    let (a, b) = (env.agent("claude"), env.agent("codex"));
    claude(&env, &a, "SessionStart.startup", "a1");
    ask(&a, &["claim", "wp:1"]);
    send(
        &b,
        "codex",
        &captured(&env, "codex-0.166.0/SessionStart.startup", "b1"),
    );
    ask(&b, &["takeover", "wp:1", "--reason", "it is urgent"]);
    assert_eq!(claude(&env, &a, "Stop", "a1").stdout, "");
    let heard = told(&claude(&env, &a, "PreToolUse.Bash", "a1")).expect("it is told");
    assert!(heard.starts_with(&notice("lost")), "{heard}");
    assert!(
        heard.contains("wp:1") && heard.contains("it is urgent"),
        "{heard}"
    );
    assert_eq!(heard.lines().count(), 1);
    assert_eq!(claude(&env, &a, "PreToolUse.Bash", "a1").stdout, "");
    assert_eq!(claude(&env, &a, "UserPromptSubmit", "a1").stdout, "");
}

#[test]
fn after_kill9_and_resume_the_model_is_told_what_it_has_again_and_what_it_lost() {
    let env = env();
    let (a, b) = (env.agent("claude"), env.agent("codex"));
    claude(&env, &a, "SessionStart.startup", "a1");
    send(
        &b,
        "codex",
        &captured(&env, "codex-0.166.0/SessionStart.startup", "b1"),
    );
    ask(&a, &["claim", "wp:kept"]);
    ask(&a, &["claim", "wp:taken"]);
    a.kill9();
    ask(&b, &["claim", "wp:taken"]);
    let c = env.agent("claude");
    let brief = told(&claude(&env, &c, "SessionStart.resume", "a1")).expect("a brief");
    assert!(
        brief.contains("Claims given back to you: wp:kept (epoch 2)."),
        "{brief}"
    );
    assert!(brief.contains("You hold wp:kept (epoch 2)."), "{brief}");
    assert!(brief.contains("you lost wp:taken:"), "{brief}");
    assert_eq!(sessions(&env).len(), 2);
    assert_eq!(
        held(&ask(&c, &["whoami"]), "/session/claims"),
        ["wp:kept@2"]
    );
    ask(&c, &["guard", "wp:kept", "--epoch", "2"]);
    // A start that says nothing new says nothing of it again.
    let again = told(&claude(&env, &c, "SessionStart.compact", "a1")).expect("a brief");
    assert!(
        !again.contains("Given back") && !again.contains("You lost"),
        "{again}"
    );
}

#[test]
fn a_brief_is_short_however_much_there_is_to_say() {
    let env = env();
    let others: Vec<Agent> = (0..7).map(|_| env.agent("codex")).collect();
    for (at, other) in others.iter().enumerate() {
        let event = captured(
            &env,
            "codex-0.166.0/SessionStart.startup",
            &format!("o{at}"),
        );
        send(other, "codex", &event);
        for item in 0..6 {
            ask(other, &["claim", &format!("wp:{at}-{item}")]);
        }
    }
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    for item in 0..8 {
        ask(&a, &["claim", &format!("wp:mine-{item}")]);
    }
    let me = ask(&a, &["whoami"]);
    a.kill9();
    for item in 5..8 {
        ask(&others[0], &["claim", &format!("wp:mine-{item}")]);
    }
    let b = env.agent("claude");
    let brief = told(&claude(&env, &b, "SessionStart.resume", "a1")).expect("a brief");
    let lines: Vec<&str> = brief.lines().collect();
    assert!(lines.len() <= 15, "{} lines\n{brief}", lines.len());
    assert!(lines[0].contains(text(&me, "/session/handle")), "{brief}");
    assert!(
        brief.contains("wp:mine-0 (epoch 2)") && brief.contains("1 more"),
        "{brief}"
    );
    assert!(
        brief.contains("and 3 more; run `tenure ps` to see them"),
        "{brief}"
    );
    assert!(brief.contains("tenure claim KEY"), "{brief}");
    for other in &others {
        let theirs = ask(other, &["whoami"]);
        assert_eq!(theirs["session"]["state"], "live");
    }
}

#[test]
fn the_users_settings_turn_the_brief_off() {
    let env = env();
    let settings = env.home().join(".config/tenure");
    std::fs::create_dir_all(&settings).expect("the home is ours");
    std::fs::write(settings.join("config.toml"), "[agent]\nbrief = false\n").expect("it is ours");
    let a = env.agent("claude");
    let said = claude(&env, &a, "SessionStart.startup", "a1");
    assert_eq!(said.stdout, "");
    // What happens to it is still reported.
    let handle = text(&only(&env), "/handle").to_owned();
    env.tenure(&["tell", &handle, "hello"]).ok();
    let heard = told(&claude(&env, &a, "SessionStart.compact", "a1")).expect("it is told");
    assert_eq!(
        heard,
        format!(
            "{}message from someone outside any session: \"hello\"",
            notice("told")
        )
    );
}

#[test]
fn the_agents_tools_get_the_variable_once_and_other_lines_stay() {
    let env = env();
    let a = env.agent("claude");
    let file = env.dir().join("variables");
    std::fs::write(&file, b"export OTHER=1\n# \xff\nexport LAST=2\n").expect("it is ours");
    let start = |event: &str, id: &str| {
        let event = captured(&env, &format!("claude-2.1.325/{event}"), id);
        a.run(
            Cmd::shell("tenure hook claude; exit $?")
                .env("CLAUDE_ENV_FILE", file.display().to_string())
                .stdin(event.to_string()),
        )
        .ok();
    };
    start("SessionStart.startup", "a1");
    start("SessionStart.startup", "a1");
    start("PreToolUse.Bash", "a1");
    start("SessionStart.clear", "a2");
    let token = ask(&a, &["whoami"])["resolved"]["token"].clone();
    let kept = std::fs::read(&file).expect("it is there");
    let token = token.as_str().expect("a token");
    let mut expected = b"export OTHER=1\n# \xff\nexport LAST=2\n".to_vec();
    expected.extend(format!("export TENURE_SESSION={token}\n").bytes());
    assert_eq!(
        String::from_utf8_lossy(&kept),
        String::from_utf8_lossy(&expected)
    );
    // Another session's line in it is overruled by ours: a shell takes the last one. Nothing that other hooks
    // may have added is written again.
    std::fs::write(&file, "export TENURE_SESSION=old.1\nexport OTHER=1").expect("it is ours");
    start("SessionStart.compact", "a2");
    assert_eq!(
        std::fs::read_to_string(&file).expect("it is there"),
        format!("export TENURE_SESSION=old.1\nexport OTHER=1\nexport TENURE_SESSION={token}\n")
    );
}

/// Asserts that person and model were told that nothing is recorded.
#[track_caller]
fn says_outage(said: &Output) {
    let answer = said.json();
    let words = "tenure cannot record this session";
    assert!(text(&answer, "/systemMessage").contains(words), "{said}");
    let context = text(&answer, "/hookSpecificOutput/additionalContext");
    assert!(context.contains(words), "{said}");
    assert!(context.contains("Nothing is blocked"), "{said}");
}

#[test]
fn settings_that_cannot_be_read_are_said_once_and_shown_in_the_status_line() {
    let env = env();
    let a = env.agent("claude");
    let _born = claude(&env, &a, "SessionStart.startup", "a1");
    let settings = env.home().join(".config/tenure");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("config.toml"), "lease = = 3\n").unwrap();
    says_outage(&claude(&env, &a, "PreToolUse.Bash", "a1"));
    let again = claude(&env, &a, "PreToolUse.Bash", "a1");
    assert_eq!(again.stdout, "", "{again}");
    let input = serde_json::json!({"session_id": "a1", "cwd": "/x", "version": "2.1.325"});
    let line = a.tenure_stdin(&["statusline", "claude"], &input.to_string());
    let line = line.ok().stdout;
    assert!(line.contains("settings cannot be read"), "{line}");
    let listed = env.tenure(&["ps"]).fails(2).stderr;
    assert!(listed.contains("config.toml is not valid"), "{listed}");
    // Once they are right again, the events that were missed are still counted.
    std::fs::remove_file(settings.join("config.toml")).unwrap();
    let status = env.tenure(&["status"]).ok().stdout;
    assert!(
        status.contains("2 agent events were not recorded"),
        "{status}"
    );
}

#[test]
fn f_h15_an_outage_is_said_once_to_each_process_and_counted() {
    let env = env();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    claude(&env, &a, "SessionStart.startup", "a1");
    let store = env.state().join("tenure.db");
    let whole = std::fs::read(&store).expect("it was made");
    std::fs::write(&store, "nothing of ours").expect("the state is ours");
    let silent = claude(&env, &a, "Stop", "a1");
    assert_eq!(silent.stdout, "", "nobody would read it");
    assert!(silent.stderr.contains("tenure: "), "{silent}");
    says_outage(&claude(&env, &a, "PreToolUse.Bash", "a1"));
    for event in [
        "PreToolUse.Bash",
        "PostToolUse.Bash",
        "UserPromptSubmit",
        "SessionEnd.other",
    ] {
        let said = claude(&env, &a, event, "a1");
        assert_eq!(said.stdout, "", "{event}\n{said}");
        assert!(said.stderr.contains("tenure: "), "{event}\n{said}");
    }
    says_outage(&claude(&env, &b, "SessionStart.startup", "b1"));
    let counted = outages(&env);
    assert_eq!(counted.len(), 7, "{counted:#?}");
    let said = counted.iter().filter(|one| one["said"] == true).count();
    assert_eq!(said, 2);
    assert!(
        counted
            .iter()
            .all(|one| text(one, "/why").contains("tenure.db"))
    );
    assert_eq!(counted[0]["pid"], a.pid());
    // Once it is mended, everything goes on as if nothing had been.
    std::fs::write(&store, whole).expect("the state is ours");
    assert_eq!(claude(&env, &a, "PreToolUse.Bash", "a1").stderr, "");
    assert_eq!(outages(&env).len(), 7);
}

#[test]
fn f_h15_a_directory_that_is_refused_is_said_once_to_each_conversation() {
    let env = env();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    claude(&env, &a, "SessionStart.startup", "a1");
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(env.state(), mode).expect("the state is ours");
    };
    mode(0o777);
    says_outage(&claude(&env, &a, "PreToolUse.Bash", "a1"));
    assert_eq!(claude(&env, &a, "PreToolUse.Bash", "a1").stdout, "");
    says_outage(&claude(&env, &b, "SessionStart.startup", "b1"));
    assert_eq!(claude(&env, &b, "PreToolUse.Bash", "b1").stdout, "");
    assert_eq!(outages(&env).len(), 4);
    mode(0o700);
    assert_eq!(claude(&env, &a, "PreToolUse.Bash", "a1").stderr, "");
}

#[test]
fn f_h15_where_not_even_the_count_can_be_kept_starts_say_it() {
    let mut env = env();
    let file = env.dir().join("a-file");
    std::fs::write(&file, "").expect("it is ours");
    env.set("TENURE_HOME", file.join("state").display().to_string());
    let a = env.agent("claude");
    says_outage(&claude(&env, &a, "SessionStart.startup", "a1"));
    let said = claude(&env, &a, "PreToolUse.Bash", "a1");
    assert_eq!(said.stdout, "", "not at every tool call");
    assert!(said.stderr.contains("tenure: "), "{said}");
}

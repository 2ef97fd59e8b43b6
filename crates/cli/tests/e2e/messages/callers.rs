//! How a caller is found, what a registration refuses, and what is said of sessions in rare states.

use serde_json::json;
use tenure_testkit::{Cmd, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::forge::{forge, forge_process};
use crate::support::line::{register, run, session, text};
use crate::support::transcript::{claude as with_transcript, file_of};

/// A session that no store has.
const UNKNOWN: &str = "01890a5d-ac96-774b-bcce-b302099a8057.1";

#[test]
fn callers() {
    let env = env();
    let mut page = Page::new("17-callers", &env);
    let claude = env.agent("claude");
    let born = register(&claude, "claude", "--native-id 7f3c");
    let (id, token) = (text(&born["session"]["id"]), text(&born["token"]));
    let out = env.agent("outsider");
    page.title("By the processes above it");
    page.run(&claude, "tenure whoami -v");
    let below = claude.nest("tool");
    let said = below.tenure(&["whoami", "-v"]);
    page.show(
        claude.pid(),
        "./tool  # which runs `tenure whoami -v`",
        said,
        None,
    );
    let line = "tenure register --agent nightly --pid $$ --quiet; exec tenure whoami -v";
    let said = out.run(Cmd::shell(line));
    page.show(out.pid(), line, said, None);
    page.run(&out, "tenure show claude -v");
    page.title("A variable that names another conversation");
    page.run(&claude, "CLAUDE_CODE_SESSION_ID=8a1b tenure whoami -v");
    page.run(&claude, "CLAUDE_CODE_SESSION_ID=8a1b tenure status");
    page.title("A process with several sessions");
    let qwen = env.agent_with("qwen", &["--acp"]);
    for conversation in ["9c2d", "2b3c"] {
        let line = format!("tenure register --native-id {conversation}");
        page.run(&qwen, &line);
    }
    page.run(&qwen, "tenure whoami");
    page.run(&qwen, "QWEN_CODE_SESSION_ID=9c2d tenure whoami -v");
    let human = session(&env, "human");
    let all = env.tenure(&["ps", "--json"]).ok().json();
    let all = all["sessions"].as_array().expect("a list").clone();
    let one = all.iter().find(|one| one["native_id"] == "2b3c");
    let one = text(&one.expect("it is there")["handle"]);
    page.run(
        &human,
        &format!("tenure end {one} --kill --reason 'its window is closed'"),
    );
    page.title("By TENURE_SESSION");
    page.run(&out, &format!("TENURE_SESSION={token} tenure whoami -v"));
    page.run(&out, "TENURE_SESSION=7f3c tenure whoami");
    page.run(&out, &format!("TENURE_SESSION={UNKNOWN} tenure whoami"));
    let codex = env.agent("codex");
    let ended = text(&register(&codex, "codex", "")["token"]);
    run(&codex, 0, "end");
    page.run(&out, &format!("TENURE_SESSION={ended} tenure whoami"));
    page.title("From a sandbox, which hides the processes above it");
    forge_process(&env, &id, "pid_ns = pid_ns + 1");
    page.run(&out, &format!("TENURE_SESSION={token} tenure whoami -v"));
    page.run(&out, "CLAUDE_CODE_SESSION_ID=7f3c tenure whoami -v");
    forge_process(&env, &id, "pid_ns = pid_ns - 1");
    page.check(&env);
}

#[test]
fn registrations() {
    let env = env();
    let mut page = Page::new("18-register-refused", &env);
    let claude = with_transcript(&env, "7f3c");
    page.title("Another agent");
    page.run(&claude, "tenure register --agent codex");
    page.title("Parents");
    let codex = claude.nest("codex");
    page.run(&codex, "tenure register");
    page.run(&claude, "tenure register --parent claude --reason test");
    page.run(&claude, "tenure register --parent codex --reason test");
    page.title("Metadata");
    page.run(&claude, "tenure meta set tenure.team blue");
    for number in 1..=64 {
        run(&claude, 0, &format!("meta set k{number} v"));
    }
    page.run(&claude, "tenure meta set team blue");
    page.run(&claude, "tenure register --meta team=blue");
    page.title("Messages");
    page.run(&codex, "tenure tell claude ' '");
    page.title("Transcripts");
    let line = r#"{"sessionId":"7f3c","type":"note"}"#;
    let human = session(&env, "human");
    page.feed(
        &human,
        line,
        "tenure transcript append claude --reason 'a note for later'",
    );
    let hook = "tenure hook claude";
    for path in [file_of(&env, "8a1b"), "missing/7f3c.jsonl".into()] {
        let event = json!({
            "hook_event_name": "UserPromptSubmit", "session_id": "7f3c", "transcript_path": path, "prompt": "go on",
        });
        page.hook(&claude, &event, hook);
    }
    page.run_once(
        &claude,
        "tenure register --native-id 7f3c --transcript missing/7f3c.jsonl",
        Some("invalid"),
    );
    page.title("A session that continued in another one");
    let (first, heir) = (env.agent("gemini"), env.agent("gemini"));
    let born = register(&first, "gemini", "--native-id 9c2d");
    register(&heir, "gemini", "--native-id 2b3c");
    page.learn(&env);
    first.kill9();
    page.run(&heir, "tenure register --native-id 9c2d");
    let first = text(&born["session"]["handle"]);
    page.run(&human, &format!("tenure dismiss {first}"));
    page.title("Log");
    page.run(&human, "tenure log --limit 10");
    page.check(&env);
}

#[test]
fn states() {
    let env = env();
    let mut page = Page::new("19-states", &env);
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    page.cd(&repo);
    let human = session(&env, "human");
    let earlier = |name: &str, minutes: i64| {
        let span = minutes * 60_000 + 5_000;
        forge(
            &env,
            &format!(
                "UPDATE sessions SET seen_at = seen_at - {span}, activity_since = activity_since - {span} \
                 WHERE agent = '{name}'"
            ),
        );
    };
    page.title("A turn without events");
    let nightly = env.agent("nightly");
    let busy = json!({"event": "busy", "agent": "nightly", "pid": nightly.pid()});
    page.hook(&nightly, &busy, "tenure hook generic");
    earlier("nightly", 20);
    page.run(&human, "tenure alive nightly");
    page.title("A question that may have been answered");
    let gemini = env.agent("gemini");
    let asks =
        json!({"event": "waiting", "agent": "gemini", "pid": gemini.pid(), "asks": "deploy?"});
    page.hook(&gemini, &asks, "tenure hook generic");
    earlier("gemini", 5);
    page.run(&human, "tenure show gemini -v");
    page.title("A lease of another machine's clock");
    let qwen = env.agent("qwen");
    let born = register(&qwen, "qwen", "");
    let away = "pid_ns = pid_ns + 1";
    forge_process(&env, &text(&born["session"]["id"]), away);
    forge(
        &env,
        "UPDATE sessions SET lease_era = 'elsewhere', lease_era_private = 1 WHERE agent = 'qwen'",
    );
    page.run(&human, "tenure show qwen");
    page.title("A session that died and left a process running");
    let opencode = env.agent("opencode");
    register(&opencode, "opencode", &format!("--dir {}", repo.display()));
    let orphan = opencode.orphan(Cmd::new("sleep").arg("1000"));
    page.learn(&env);
    opencode.kill9();
    page.run(&human, "tenure status");
    human
        .run(Cmd::new("kill").args(["-9".to_owned(), orphan.to_string()]))
        .ok();
    page.check(&env);
}

//! Where one stands: `status`, `who`, and the line beside a conversation.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, Output, add_worktree, scratch_git};

use crate::env;
use crate::support::hook::event;
use crate::support::line::{crew, handle, register, run, session, take, text};
use crate::support::person::seeing;

/// A repository with two worktrees.
fn worktrees(env: &Env) -> (PathBuf, PathBuf) {
    let (main, fix) = (env.dir().join("web"), env.dir().join("web-fix"));
    scratch_git(&main, Some("https://github.com/acme/web"));
    add_worktree(&main, &fix, "fix");
    (main, fix)
}

/// A Claude Code session in a directory.
fn claude(env: &Env, dir: &Path) -> Agent {
    let claude = env.agent("claude");
    event(
        &claude,
        "SessionStart",
        &json!({"source": "startup", "cwd": dir}),
    );
    claude
}

fn writes(agent: &Agent, file: &Path) {
    let tool =
        json!({"tool_name": "Write", "tool_input": {"file_path": file}, "cwd": file.parent()});
    event(agent, "PreToolUse", &tool);
    std::fs::write(file, "written").expect("a scratch directory is writable");
    event(agent, "PostToolUse", &tool);
}

fn status(agent: &Agent, dir: &Path) -> (Value, Output) {
    let json = agent.tenure_in(dir, &["status", "--json"]).ok().json();
    (
        json["status"].clone(),
        agent.tenure_in(dir, &["status"]).ok(),
    )
}

#[test]
fn a_status_says_who_else_is_here_on_which_branch_and_files_and_who_waits() {
    let env = env();
    let (main, fix) = worktrees(&env);
    let (me, other, asks) = (claude(&env, &main), claude(&env, &fix), claude(&env, &main));
    take(&me, "wp:1");
    writes(&other, &fix.join("src.rs"));
    event(&asks, "PermissionRequest", &json!({"tool_name": "Bash"}));
    let [mine, writer, asker] = [&me, &other, &asks].map(handle);
    let (json, text) = status(&me, &main);
    assert_eq!(json["me"]["handle"], mine.as_str());
    assert_eq!(json["claims"][0]["key"], "wp:1");
    assert_eq!(json["waiting"], json!([asker]));
    let others = json["others"].as_array().expect("a list");
    assert_eq!(others.len(), 2, "{json}");
    assert_eq!(others[0]["handle"], asker.as_str());
    let seen = &others[1];
    assert_eq!(
        (&seen["handle"], &seen["branch"]),
        (&json!(writer), &json!("fix"))
    );
    assert_eq!(
        seen["wrote"][0]["path"],
        fix.join("src.rs").to_str().unwrap()
    );
    for words in [
        format!("you are {mine}"),
        "you hold wp:1".to_owned(),
        format!("waiting for a person: {asker}"),
        format!("{writer} is busy in acme/web (fix), wrote src.rs"),
    ] {
        assert!(text.stdout.contains(&words), "{words:?}\n{text}");
    }
    assert_eq!(json["warnings"], json!([]));
}

#[test]
fn a_status_warns_of_what_was_lost_of_twins_and_of_what_the_dead_left_running() {
    let env = env();
    let (main, _) = worktrees(&env);
    let (me, taker, dies) = (env.agent("claude"), session(&env, "bob"), env.agent("eve"));
    let dir = format!("--dir {}", main.display());
    register(&me, "claude", &format!("{dir} --native-id c-1"));
    register(&dies, "eve", &dir);
    take(&me, "wp:1");
    run(&taker, 0, "takeover wp:1 --reason stuck");
    let twin = env.agent("claude");
    register(&twin, "claude", &format!("{dir} --native-id c-1"));
    let [second, thief, dead] = [&twin, &taker, &dies].map(handle);
    let orphan = dies.orphan(Cmd::new("sleep").arg("1000"));
    dies.kill9();
    let (json, told) = status(&me, &main);
    let warnings = json["warnings"].to_string();
    for words in [
        format!("this session lost wp:1: {thief} holds it now"),
        format!("this conversation is also open in {second}"),
        format!("{dead} died but left pid {orphan} running"),
    ] {
        assert!(warnings.contains(&words), "{words:?}\n{warnings}");
        assert!(told.stdout.contains(&format!("warning: {words}")), "{told}");
    }
    // The twin is warned too, and once it is gone there is nothing to warn of.
    let (json, _) = status(&twin, &main);
    assert!(
        json["warnings"].to_string().contains(&handle(&me)),
        "{json}"
    );
    twin.kill9();
    let (json, _) = status(&me, &main);
    assert!(!json["warnings"].to_string().contains("as well"), "{json}");
    me.run(Cmd::new("kill").args(["-9".to_owned(), orphan.to_string()]))
        .ok();
}

#[test]
fn a_status_says_that_events_were_not_recorded() {
    let (env, [me]) = crew(["me"]);
    let log = env.state().join("outages.log");
    let now = me.tenure_shell("date +%s%3N").ok().stdout;
    let now: i64 = now.trim().parse().expect("milliseconds");
    let line = |at: i64| {
        format!(
            "{}\n",
            json!({"at": at, "agent": "claude", "why": "the disk is full"})
        )
    };
    let two_days = 2 * 24 * 3_600_000;
    std::fs::write(&log, line(now - two_days)).unwrap();
    let (json, _) = status(&me, &env.work());
    assert_eq!(json["warnings"], json!([]));
    std::fs::write(
        &log,
        format!("{}{}broken\n{}", line(now - two_days), line(now), line(now)),
    )
    .unwrap();
    let (json, told) = status(&me, &env.work());
    let warning = text(&json["warnings"][0]);
    assert!(
        warning.contains("2 agent events") && warning.contains("the disk is full"),
        "{warning}"
    );
    assert!(told.stdout.contains("warning: 2 agent events"), "{told}");
}

#[test]
fn a_status_has_at_most_twenty_lines() {
    let (env, [me]) = crew(["me"]);
    for number in 0..9 {
        take(&me, &format!("wp:{number}"));
    }
    let _others: Vec<Agent> = (0..9).map(|_| claude(&env, &env.work())).collect();
    for other in &_others {
        event(other, "PermissionRequest", &json!({"tool_name": "Bash"}));
    }
    let thief = session(&env, "thief");
    for number in 0..8 {
        take(&me, &format!("item:{number}"));
        run(&thief, 0, &format!("takeover item:{number} --reason test"));
    }
    let (json, told) = status(&me, &env.work());
    assert_eq!(json["others"].as_array().map(Vec::len), Some(10));
    assert_eq!(json["warnings"].as_array().map(Vec::len), Some(8));
    assert_eq!(told.stdout.lines().count(), 20, "{told}");
}

#[test]
fn who_sees_every_worktree_and_agents_without_hooks() {
    let env = seeing();
    // Agents of other tests, and of the machine, may work in clones of a repository with a common name.
    let (main, fix) = (env.dir().join("web"), env.dir().join("web-fix"));
    scratch_git(&main, Some(&env.own_remote("web")));
    add_worktree(&main, &fix, "fix");
    let me = env.agent("me");
    register(&me, "me", &format!("--dir {}", main.display()));
    let who = |code: i32, dir: &Path, more: &[&str]| {
        let words = [
            &["who", dir.to_str().unwrap(), "--exit-code", "--json"],
            more,
        ]
        .concat();
        me.tenure_in(&main, &words).fails(code).json()
    };
    // The caller is not listed among the others.
    who(0, &main, &[]);
    let other = env.agent("bob");
    register(&other, "bob", &format!("--dir {}", fix.display()));
    for dir in [&main, &fix] {
        let seen = who(3, dir, &[]);
        assert_eq!(seen["sessions"][0]["handle"], handle(&other).as_str());
    }
    who(0, &main, &["--here"]);
    who(3, &fix, &["--here"]);
    other.kill9();
    who(0, &fix, &[]);
    // An agent that nobody registered is somebody.
    let line = format!("cd '{}' && exec \"$0\"", fix.display());
    let agents = env.dir().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    let gemini = agents.join("gemini");
    std::fs::copy("/bin/sleep", &gemini).unwrap();
    let script = Cmd::new("sh").args(["-c", &format!("{line} 1000"), gemini.to_str().unwrap()]);
    let stranger = me.start(script);
    tenure_testkit::poll(crate::support::line::SOON, "it works there", || {
        let exe = std::fs::read_link(format!("/proc/{}/exe", stranger.pid)).ok()?;
        exe.ends_with("gemini").then_some(())
    });
    for (dir, more) in [(&main, &[][..]), (&fix, &[]), (&fix, &["--here"])] {
        let seen = who(3, dir, more);
        assert_eq!(seen["unmanaged"][0]["pid"], stranger.pid, "{seen}");
        assert_eq!(seen["sessions"], json!([]));
    }
    who(0, &main, &["--here"]);
    stranger.kill9();
    who(0, &fix, &[]);
    // If the state is unknown, the answer says so.
    let dir = fix.to_str().unwrap();
    env.tenure(&["register", "--unverified", "--agent", "cron", "--dir", dir])
        .ok();
    who(9, &main, &[]);
}

#[test]
fn who_tells_what_it_must_tell() {
    let env = seeing();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    run(&ann, 0, &format!("tell {} hello", handle(&bob)));
    let told = run(&bob, 0, "who")["notices"].clone();
    assert_eq!(told.as_array().map(Vec::len), Some(1), "{told}");
}

/// The line that Claude Code shows.
fn line(agent: &Agent) -> String {
    let input =
        json!({"session_id": format!("c-{}", agent.pid()), "cwd": "/x", "version": "2.1.325"});
    let said = agent
        .tenure_stdin(&["statusline", "claude"], &input.to_string())
        .ok();
    assert_eq!(said.stderr, "", "{said}");
    assert!(said.stdout.lines().count() <= 1, "{said}");
    said.stdout.trim_end().to_owned()
}

#[test]
fn the_status_line_says_session_claims_and_warnings_and_takes_no_notice_away() {
    let mut env = env();
    env.set("NO_COLOR", "1");
    let (main, _) = worktrees(&env);
    let me = claude(&env, &main);
    let name = handle(&me);
    assert_eq!(line(&me), name);
    take(&me, "issue:acme/web#42");
    take(&me, "wp:7");
    assert_eq!(line(&me), format!("{name} | #42, wp:7"));
    let asks = claude(&env, &main);
    event(&asks, "PermissionRequest", &json!({"tool_name": "Bash"}));
    let asker = handle(&asks);
    assert_eq!(
        line(&me),
        format!("{name} | #42, wp:7 | waiting for you: {asker}")
    );
    asks.kill9();
    let thief = session(&env, "thief");
    run(&thief, 0, "takeover wp:7 --reason stuck");
    let by = handle(&thief);
    assert_eq!(line(&me), format!("{name} | #42 | lost wp:7 to {by}"));
    // What it showed is still told to the model.
    let told = run(&me, 0, "whoami");
    assert_eq!(told["notices"].as_array().map(Vec::len), Some(1), "{told}");
    // One that resumes the same conversation is shown in both.
    let twin = env.agent("claude");
    register(&twin, "claude", &format!("--native-id c-{}", me.pid()));
    assert!(line(&me).ends_with(&format!("also open in {}", handle(&twin))));
}

#[test]
fn the_status_line_never_fails() {
    let env = env();
    let claude = env.agent("claude");
    // No store: nothing to say, and none is made.
    assert_eq!(line(&claude), "");
    assert!(!env.state().exists());
    register(&claude, "claude", "");
    let name = handle(&claude);
    for input in ["", "{", "null", "[1]", "\u{0}", &"x".repeat(3 << 20)] {
        let said = claude.tenure_stdin(&["statusline", "claude"], input).ok();
        assert_eq!(said.stdout.trim_end(), name, "{input:.20}");
    }
    std::fs::write(env.state().join("tenure.db"), "no database").unwrap();
    assert_eq!(line(&claude), "tenure: no answer");
    let nobody = env.agent("vim");
    assert!(line(&nobody).len() < 20);
}

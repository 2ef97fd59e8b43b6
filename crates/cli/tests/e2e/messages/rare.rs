//! States of sessions and items that are rare: overlaps, parents, lineages, many that were cut off, input and
//! folders that cannot be read.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, Output};

use super::page::Page;
use crate::env;
use crate::support::forge::forge;
use crate::support::hook::send;
use crate::support::hooked::repository;
use crate::support::installed::put;
use crate::support::line::{crew, handle, run, take};
use crate::support::person::seeing;
use crate::support::talking::talking;
use crate::support::transcript::{claude, file_of};
use crate::support::waiter::{ends, waits};

/// Shows a line of a shell.
fn shell(page: &mut Page, agent: &Agent, line: &str, kind: Option<&str>) {
    let said = agent.run(Cmd::shell(line));
    page.show(agent.pid(), line, said, kind);
}

fn hook(agent: &Agent, conversation: &str, name: &str, more: Value) -> Output {
    let mut event = json!({"hook_event_name": name, "session_id": conversation});
    if let (Value::Object(all), Value::Object(more)) = (&mut event, more) {
        all.extend(more);
    }
    send(agent, "claude", &event)
}

/// The events around a write of a file.
fn writes(agent: &Agent, conversation: &str, dir: &Path) {
    let file = dir.join("db.rs");
    let tool = json!({"tool_name": "Write", "cwd": dir, "tool_input": {"file_path": file}});
    hook(agent, conversation, "PreToolUse", tool.clone());
    put(&file, conversation);
    hook(agent, conversation, "PostToolUse", tool);
}

#[test]
fn items() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let mut page = Page::new("29-rare-claims", &env);
    let out = env.agent("outsider");
    page.title("A session that waits for an item");
    take(&ann, "wp:1");
    take(&bob, "wp:2");
    let waiter = waits(&env, &bob, "wp:1", "claim wp:1 --wait 5m");
    page.run(&out, "tenure ps");
    run(&ann, 0, "release wp:1");
    ends(waiter).ok();
    page.title("Items that overlap");
    take(&ann, "path:acme/web:src/**");
    take(&ann, "path:acme/web:src/a.rs");
    page.run(&bob, "tenure takeover path:acme/web:src/** --reason stuck");
    page.title("An item of a parent session");
    take(&ann, "wp:3");
    page.run(&ann, "tenure claim wp:4 -- tenure guard wp:3");
    page.title("Many notices");
    let tell = format!(
        "for n in $(seq 52); do tenure tell {} \"are you there?\" -q; done",
        handle(&ann)
    );
    bob.run(Cmd::shell(&tell)).ok();
    shell(
        &mut page,
        &ann,
        "tenure whoami 2>&1 >/dev/null | tail -n 2",
        None,
    );
    page.title("Input that cannot be read");
    shell(&mut page, &ann, "tenure claim --any - </", Some("usage"));
    page.title("A log of which a part was removed");
    forge(&env, "UPDATE events SET at = at - 31536000000");
    take(&ann, "wp:5");
    page.run(&ann, "tenure log --after 1");
    page.check(&env);
}

#[test]
fn sessions() {
    let env = env();
    let mut page = Page::new("19-rare-sessions", &env);
    let out = env.agent("outsider");
    let (ann, bob) = (env.agent("claude"), env.agent("claude"));
    let repo = repository(&env, "web");
    page.cd(&repo);
    let started = json!({"source": "startup", "cwd": repo});
    hook(&ann, "7f3c", "SessionStart", started.clone());
    hook(&bob, "8a1b", "SessionStart", started);
    page.learn(&env);
    page.title("What another session wrote");
    writes(&bob, "8a1b", &repo);
    page.run(&ann, "tenure status");
    page.title("A title that is removed");
    hook(
        &ann,
        "7f3c",
        "UserPromptSubmit",
        json!({"prompt": "Fix the login"}),
    );
    page.run(&ann, &format!("tenure rename {} 'Login'", handle(&ann)));
    page.run(&ann, &format!("tenure rename {} ''", handle(&ann)));
    page.title("Another conversation");
    hook(&ann, "8a1b", "SessionStart", json!({"source": "resume"}));
    page.run(&ann, &format!("tenure show {}", handle(&ann)));
    page.run(&bob, "tenure register --native-id 9d4e");
    page.title("Conversations of an item");
    for (item, id) in [("wp:21", "ses-1"), ("wp:22", "ses-2")] {
        run(&ann, 0, &format!("conversation set codex {item} {id}"));
    }
    page.run(&ann, "tenure conversation link wp:22 wp:21");
    page.run(&ann, "tenure conversation unlink wp:22");
    page.run(&out, "tenure conversation set codex wp:23 ses-3");
    page.run(&out, "tenure conversation get codex wp:23");
    page.title("Two that drive the same focus");
    for agent in [&ann, &bob] {
        run(agent, 0, "mission join 041-login --role developer");
        run(agent, 0, "mission focus wp:WP03");
        let _warned = agent.tenure(&["mission", "drive", "active"]);
    }
    page.run(&ann, "tenure mission status");
    page.run(&ann, "tenure mission use --clear -v");
    page.title("A commit in an empty repository");
    let repo = env.dir().join("new");
    let git = |line: &str| {
        let _done = out.run(Cmd::shell(line).dir(&repo)).ok();
    };
    fs::create_dir(&repo).expect("the environment is ours");
    git(
        "git init --quiet --initial-branch=main; git config user.name Test; git config user.email test@example.invalid",
    );
    let gone = env.agent("claude");
    hook(
        &gone,
        "2b3c",
        "SessionStart",
        json!({"source": "startup", "cwd": repo}),
    );
    writes(&gone, "2b3c", &repo);
    hook(&gone, "2b3c", "Stop", json!({"cwd": repo}));
    page.learn(&env);
    gone.kill9();
    git("git commit --quiet --allow-empty -m start");
    let back = env.agent("claude");
    let resumed = json!({"hook_event_name": "SessionStart", "session_id": "2b3c", "source": "resume", "cwd": repo});
    page.cd(&repo);
    page.hook(&back, &resumed, "tenure hook claude");
    page.check(&env);
}

#[test]
fn cut_off() {
    let env = env();
    let mut page = Page::new("19-cut-off", &env);
    let out = env.agent("outsider");
    page.title("Many that were cut off");
    let ids = [
        "0000aaaa", "0000bbbb", "0000cccc", "0000dddd", "0000eeee", "0000ffff",
    ];
    for (n, id) in ids.iter().enumerate() {
        let agent = talking(&env, "claude", "claude-2.1.325", &[], id);
        take(&agent, &format!("wp:{n}"));
        page.learn(&env);
        agent.kill9();
    }
    page.run(&out, "tenure ps");
    let elsewhere = env.dir().join("elsewhere");
    fs::create_dir(&elsewhere).expect("the environment is ours");
    page.cd(&elsewhere);
    page.run(&out, "tenure status");
    page.title("One that is starting again");
    let starting = env.agent_with("claude", &["--resume", ids[5]]);
    page.cd(&env.work());
    page.run(&out, "tenure status");
    starting.kill9();
    page.check(&env);
}

#[test]
fn transcripts() {
    let env = env();
    let mut page = Page::new("60-transcripts-rare", &env);
    let ann = claude(&env, "7f3c");
    let _bob = claude(&env, "8a1b");
    page.title("Input that cannot be appended");
    shell(
        &mut page,
        &ann,
        "tenure transcript append claude </",
        Some("usage"),
    );
    let large = "head -c 67108865 /dev/zero | tenure transcript append claude";
    shell(&mut page, &ann, large, Some("usage"));
    page.title("A path that was wrong");
    let theirs = file_of(&env, "8a1b").display().to_string();
    forge(
        &env,
        &format!(
            "DELETE FROM transcripts WHERE path = '{theirs}';
             UPDATE transcripts SET path = '{theirs}' WHERE native_id = '7f3c'"
        ),
    );
    page.run_once(
        &ann,
        &format!("tenure transcript show {}", handle(&ann)),
        None,
    );
    page.check(&env);
}

/// The row of an agent that is not a session. Those of other tests are there, too.
fn row_of(env: &Env, agent: &Agent) -> Output {
    let mut said = env.tenure(&["ps"]).ok();
    let own = format!("pid {} ", agent.pid());
    let is_own = |line: &&str| line.starts_with("HANDLE") || line.starts_with(&own);
    let lines: Vec<&str> = said.stdout.lines().filter(is_own).collect();
    said.stdout = lines.join("\n");
    said
}

#[test]
fn unmanaged() {
    let env = seeing();
    let mut page = Page::new("19-unmanaged", &env);
    let out = env.agent("outsider");
    page.title("Agents whose hooks say nothing");
    for (name, dir) in [("opencode", ".config/opencode"), ("codex", ".codex")] {
        fs::create_dir_all(env.home().join(Path::new(dir))).expect("the home is ours");
        let agent = env.agent(name);
        env.tenure(&["install", name]).ok();
        let said = row_of(&env, &agent);
        page.show(out.pid(), "tenure ps", said, None);
    }
    page.check_without_sessions();
}

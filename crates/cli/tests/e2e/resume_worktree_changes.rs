//! What became of a session's worktree while it was away is part of its brief when it is resumed.

use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Env, add_worktree};

use crate::env;
use crate::support::hooked::{Hooked, repository, told};

/// Resumes a conversation in a new process; the lines that its model is told.
#[track_caller]
fn resumed(env: &Env, conversation: &str, dir: &Path) -> Vec<String> {
    let back = Hooked {
        agent: env.agent("claude"),
        name: "claude",
        conversation: conversation.to_owned(),
        dir: dir.to_owned(),
    };
    let answer = back.event(&[], "SessionStart", json!({"source": "resume"}));
    let said = told(&answer).unwrap_or_else(|| panic!("no brief: {answer}"));
    said.lines().map(str::to_owned).collect()
}

#[track_caller]
fn line<'a>(lines: &'a [String], part: &str) -> &'a str {
    let found = lines.iter().find(|line| line.contains(part));
    found.unwrap_or_else(|| panic!("no line with {part:?} in {lines:#?}"))
}

fn head(repo: &Path) -> String {
    let name = std::fs::read_to_string(repo.join(".git/refs/heads/main")).expect("it has a commit");
    name.chars().take(9).collect()
}

#[test]
fn what_changed_and_by_whom_is_told_at_a_resume() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    for name in ["theirs", "by-hand", "lost", "same"] {
        assert_eq!(a.write(&[], &repo.join(name)), Value::Null);
    }
    a.event(&[], "Stop", json!({}));
    a.agent.kill9();
    let before = head(&repo);

    let b = Hooked::start(&env, "claude", "b1", &repo);
    b.write(&[], &repo.join("theirs"));
    std::fs::write(repo.join("by-hand"), "a person was here").unwrap();
    std::fs::remove_file(repo.join("lost")).unwrap();
    b.git(&["commit", "--quiet", "--allow-empty", "-m", "more"]);
    let after = head(&repo);
    b.git(&["switch", "--quiet", "-c", "feature"]);

    let lines = resumed(&env, "a1", &repo);
    let tree = line(&lines, "Since you last worked here");
    for part in ["the branch changed from main to feature", &before, &after] {
        assert!(tree.contains(part), "{part} is not in: {tree}");
    }
    let files = line(&lines, "Files that you wrote have changed");
    for part in [
        format!("theirs (written by {})", b.handle()),
        "by-hand (changed on disk)".into(),
        "lost (deleted)".into(),
    ] {
        assert!(files.contains(&part), "{part} is not in: {files}");
    }
    assert!(!files.contains("same"), "{files}");
    assert!(lines.len() <= 15, "{lines:#?}");
}

#[test]
fn what_the_session_did_itself_is_no_news() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    a.write(&[], &repo.join("f"));
    // Its own commands: a commit, and a formatter that ran before the turn was over.
    a.git(&["add", "."]);
    a.git(&["commit", "--quiet", "-m", "mine"]);
    let commit = json!({"tool_name": "Bash", "tool_input": {"command": "git commit -m mine"}});
    a.event(&[], "PostToolUse", commit);
    std::fs::write(repo.join("f"), "formatted by a command").unwrap();
    a.event(&[], "Stop", json!({}));
    a.agent.kill9();
    let lines = resumed(&env, "a1", &repo).join("\n");
    assert!(!lines.contains("Since you last"), "{lines}");
    assert!(
        !lines.contains("Files that you wrote have changed"),
        "{lines}"
    );
}

#[test]
fn an_end_keeps_what_the_session_left_and_a_kill_before_the_turn_s_end_does_not_invent_news() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    a.write(&[], &repo.join("f"));
    std::fs::write(repo.join("f"), "by a command").unwrap();
    a.git(&["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    a.event(&[], "SessionEnd", json!({"reason": "other"}));
    let lines = resumed(&env, "a1", &repo).join("\n");
    assert!(!lines.contains("Since you last"), "{lines}");
    assert!(
        !lines.contains("Files that you wrote have changed"),
        "{lines}"
    );

    // Killed between the two events of a write: nobody knows what the file was to become.
    let b = Hooked::start(&env, "claude", "b1", &repo);
    let tool = json!({"tool_name": "Write", "tool_input": {"file_path": repo.join("g")}});
    b.event(&[], "PreToolUse", tool);
    std::fs::write(repo.join("g"), "half").unwrap();
    b.agent.kill9();
    let lines = resumed(&env, "b1", &repo).join("\n");
    assert!(
        !lines.contains("Files that you wrote have changed"),
        "{lines}"
    );
}

#[test]
fn a_worktree_that_is_gone_is_said_once_and_many_files_are_counted() {
    let env = env();
    let repo = repository(&env, "web");
    // What is left in its place is the other worktree's.
    let other = repo.join("trees/two");
    add_worktree(&repo, &other, "two");
    let a = Hooked::start(&env, "claude", "a1", &other);
    a.write(&[], &other.join("f"));
    a.agent.kill9();
    std::fs::remove_dir_all(&other).unwrap();
    let lines = resumed(&env, "a1", &repo);
    line(&lines, "no longer exists");
    assert!(
        !lines
            .join("\n")
            .contains("Files that you wrote have changed"),
        "{lines:?}"
    );

    let b = Hooked::start(&env, "claude", "b1", &repo);
    for n in 0..9 {
        b.write(&[], &repo.join(format!("f{n}")));
    }
    let _others: Vec<Hooked> = (0..6)
        .map(|n| Hooked::start(&env, "claude", &format!("c{n}"), &repo))
        .collect();
    b.agent.kill9();
    for n in 0..9 {
        std::fs::remove_file(repo.join(format!("f{n}"))).unwrap();
    }
    let lines = resumed(&env, "b1", &repo);
    assert!(
        line(&lines, "Files that you wrote have changed").contains("5 more"),
        "{lines:?}"
    );
    assert!(lines.len() <= 15, "{lines:#?}");
}

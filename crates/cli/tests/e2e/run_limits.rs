//! What bounds a run: its budget; what a closed item keeps and for how long; and giving up on what cannot be reached.

use std::os::unix::fs::PermissionsExt;

use tenure_testkit::{Env, Scripted, poll, scratch_git};

use crate::env;
use crate::support::line::{SOON, text};
use crate::support::run::{all, lines, newest, run, start, until};

fn store(env: &Env) -> rusqlite::Connection {
    rusqlite::Connection::open(env.state().join("tenure.db")).expect("the environment is ours")
}

#[test]
fn a_budget_reaches_claude_and_is_refused_for_agents_that_take_none() {
    let mut env = env();
    let program = env.dir().join("bin/claude");
    let script = format!(
        "#!/bin/sh\ncat >/dev/null\necho \"$*\" >>{}/lines\nexit 3\n",
        env.dir().display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let ann = env.agent("ann");
    let spent = |line: &str| {
        run(&ann, line).fails(3);
        let lines = std::fs::read_to_string(env.dir().join("lines")).unwrap();
        lines.lines().last().unwrap().to_owned()
    };
    assert!(!spent("claude wp:1").contains("budget"));
    assert!(spent("claude wp:1 --budget 2.5").contains("--max-budget-usd 2.5"));
    for wrong in ["0", "-1", "much"] {
        run(&ann, &format!("claude wp:1 --budget={wrong}")).fails(2);
    }
    let refused = run(&ann, "codex wp:1 --budget 1 --json").fails(125);
    let error = lines(&refused)[0]["error"].clone();
    assert_eq!(error["message"], "codex cannot be given a budget");
    env.set("TENURE_BUDGET_RUN", "4");
    let ann = env.agent("ann");
    run(&ann, "claude wp:1").fails(3);
    let lines = std::fs::read_to_string(env.dir().join("lines")).unwrap();
    assert!(lines.lines().last().unwrap().contains("--max-budget-usd 4"));
}

#[test]
fn a_run_that_cannot_be_reached_is_abandoned_with_a_reason() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $$ >>$dir/calls; init; ready $dir/on; hold $dir/flag; done_",
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let window = start(&ann, "mine wp:1");
    poll(SOON, "the agent works", || mine.wrote("on"));
    let first = until(&env, "it is named", |run| run["native_id"] == "c-1");
    let id = text(&first["id"]);
    ann.tenure(&["runs", "stop", &id, "--abandon"]).fails(2);
    let abandon = [
        "runs",
        "stop",
        &id,
        "--abandon",
        "--reason",
        "host lost",
        "--json",
    ];
    let refused = ann.tenure(&abandon).fails(1).json();
    assert_eq!(refused["error"]["kind"], "running");
    // From now on its processes are where nobody sees them.
    let store = store(&env);
    store
        .execute("UPDATE runs SET pid_ns = pid_ns + 1", [])
        .unwrap();
    store
        .execute(
            "UPDATE sessions SET pid_ns = pid_ns + 1 WHERE agent = 'mine'",
            [],
        )
        .unwrap();
    let held = run(&ann, "mine wp:1 --json").fails(125);
    assert_eq!(lines(&held)[0]["error"]["kind"], "cannot_tell");
    let ended = ann.tenure(&abandon).ok().json();
    assert_eq!(ended["run"]["outcome"], "stopped");
    assert_eq!(ended["run"]["why"], "abandoned: host lost");
    // Here they can be seen after all, so a run beside them is refused.
    let beside = run(&ann, "mine wp:1 --json").fails(125);
    assert_eq!(lines(&beside)[0]["error"]["kind"], "survivors");
    std::fs::remove_file(mine.file("flag")).unwrap();
    drop(window.wait());
    mine.does("echo $$ >>$dir/calls; init; done_");
    run(&ann, "mine wp:1").ok();
    assert_eq!(newest(&env)["before"], "c-1", "its conversation is kept");
    assert_eq!(mine.wrote("calls").unwrap().lines().count(), 2);
    let first = all(&env).into_iter().find(|run| run["id"] == id).unwrap();
    assert_eq!(
        first["why"], "abandoned: host lost",
        "its own end came too late"
    );
}

#[test]
fn the_worktree_of_a_closed_item_is_removed_when_its_grace_is_over() {
    let mut env = env();
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    let git = |line: &str| {
        let words = line.split(' ');
        let done = std::process::Command::new("git")
            .args(words)
            .current_dir(&repo)
            .output();
        assert!(done.unwrap().status.success(), "git {line}");
    };
    git("update-ref refs/remotes/origin/main HEAD");
    Scripted::new(&env, "mine", "init c-$$; done_");
    let ann = env.agent("ann");
    let at = repo.display().to_string();
    run(
        &ann,
        &format!("mine issue:acme/web#6 --worktree --dir {at}"),
    )
    .ok();
    let dir = std::path::PathBuf::from(text(&newest(&env)["dir"]));
    assert!(dir.is_dir());
    let closed = |ago: i64| {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let at = i64::try_from(now.as_millis()).unwrap() - ago;
        let sql = "INSERT INTO items (item, closed_at) VALUES ('issue:acme/web#6', ?1)
                   ON CONFLICT (item) DO UPDATE SET closed_at = excluded.closed_at";
        store(&env).execute(sql, [at]).unwrap();
    };
    closed(7_200_000);
    run(&ann, "mine wp:2").ok();
    assert!(dir.is_dir(), "it is kept for seven days");
    drop(ann);
    env.set("TENURE_GRACE", "1h");
    let ann = env.agent("ann");
    run(&ann, "mine wp:3").ok();
    poll(SOON, "it is removed", || (!dir.exists()).then_some(()));
    let status = ann.tenure(&["status", "--json"]).ok().json();
    assert_eq!(status["worktrees"], serde_json::json!([]));
}

#[test]
fn a_worktree_starts_from_the_branch_of_another_items_newest_run() {
    let env = env();
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    let mine = Scripted::new(
        &env,
        "mine",
        "init c-$$; echo one >one; git add one; git -c user.name=t -c user.email=t@t commit -qm one; done_",
    );
    let ann = env.agent("ann");
    let at = repo.display().to_string();
    let refused = run(
        &ann,
        &format!("mine wp:WP02 --base wp:WP01 --dir {at} --json"),
    )
    .fails(125);
    assert_eq!(
        lines(&refused)[0]["error"]["kind"],
        "not_found",
        "{refused}"
    );
    run(&ann, &format!("mine wp:WP01 --worktree --dir {at}")).ok();
    let first = std::path::PathBuf::from(text(&newest(&env)["dir"]));
    assert!(first.join("one").exists());
    mine.does("init c-$$; done_");
    run(&ann, &format!("mine wp:WP02 --base wp:WP01 --dir {at}")).ok();
    let second = std::path::PathBuf::from(text(&newest(&env)["dir"]));
    assert_ne!(first, second);
    assert!(
        second.join("one").exists(),
        "it begins with the other's work"
    );
    run(&ann, &format!("mine wp:WP02 --base wp:WP01 --dir {at}")).ok();
    run(&ann, &format!("mine wp:WP03 --worktree --dir {at}")).ok();
    let refused = run(
        &ann,
        &format!("mine wp:WP03 --base wp:WP01 --dir {at} --json"),
    )
    .fails(125);
    assert_eq!(
        lines(&refused)[0]["error"]["kind"],
        "has_worktree",
        "{refused}"
    );
}

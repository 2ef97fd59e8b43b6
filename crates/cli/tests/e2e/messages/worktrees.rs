//! Worktrees of items that cannot be made, used or removed.

use tenure_testkit::{Cmd, poll, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::forge::forge;
use crate::support::git_host::{before_git, git};
use crate::support::line::{SOON, session};
use crate::support::preload::library;
use crate::support::refusing::refusing;
use crate::support::run::{fake_claude, run, runners_end};

#[test]
fn worktrees() {
    let env = env();
    let mut page = Page::new("67-worktrees", &env);
    let human = session(&env, "human");
    page.learn(&env);
    fake_claude(&env, "keeps; init; ok 'done'");
    let line = |item: &str| format!("tenure run claude {item} --worktree --prompt 'fix it'");
    page.title("A worktree that cannot be made");
    let empty = env.dir().join("empty");
    std::fs::create_dir(&empty).expect("the environment is ours");
    git(&empty, &["init", "--quiet", "--initial-branch=main"]);
    page.cd(&empty);
    page.run(&human, &line("issue:acme/web#6"));
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    git(
        &repo,
        &[
            "config",
            "url./srv/missing/.insteadOf",
            "https://github.com/acme/",
        ],
    );
    git(&repo, &["update-ref", "refs/remotes/origin/main", "HEAD"]);
    page.cd(&repo);
    page.run(&human, &line("pr:acme/api#9"));
    page.run(&human, &line("pr:acme/web#9"));
    git(&repo, &["remote", "rename", "origin", "upstream"]);
    git(&repo, &["config", "remote.fork.pushurl", "/srv/fork"]);
    page.run(&human, &line("pr:acme/web#9"));
    git(&repo, &["config", "--remove-section", "remote.fork"]);
    git(&repo, &["remote", "rename", "upstream", "origin"]);
    for number in 1..100 {
        let end = if number == 1 {
            String::new()
        } else {
            format!("-{number}")
        };
        let name = format!("refs/heads/tenure/issue-7{end}");
        git(&repo, &["update-ref", &name, "HEAD"]);
    }
    page.run(&human, &line("issue:acme/web#7"));
    page.title("A worktree that cannot be used");
    page.run_once(&human, &line("issue:acme/web#6"), None);
    let folder = std::fs::read_dir(env.state().join("worktrees"))
        .expect("there is one")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.join("issue-6").exists())
        .expect("it has the worktree");
    let name = folder.file_name().expect("it has a name").to_string_lossy();
    page.replace(&name, "acme-web-1a2b3c4d");
    let (dir, aside) = (folder.join("issue-6"), folder.join(".leaving-issue-6"));
    std::fs::create_dir(&aside).expect("the state is ours");
    page.run(&human, &line("issue:acme/web#6"));
    std::fs::remove_dir(&aside).expect("it was just made");
    let kept = dir.with_extension("kept");
    std::fs::rename(&dir, &kept).expect("the state is ours");
    std::fs::create_dir(&dir).expect("the state is ours");
    page.run(&human, &line("issue:acme/web#6"));
    std::fs::remove_dir(&dir).expect("it was just made");
    std::fs::rename(&kept, &dir).expect("the state is ours");
    let flag = env.dir().join("flag");
    std::fs::write(&flag, "").expect("the environment is ours");
    let holds = format!("while [ -e {} ]; do sleep 0.02; done", flag.display());
    let lock = format!("worktrees/{name}");
    let holder = human.start(Cmd::new("tenure").args(["lock", &lock, "--", "sh", "-c", &holds]));
    poll(SOON, "it is locked", || {
        let locks = env.tenure(&["locks", "--json"]).ok().stdout;
        locks.contains(&lock).then_some(())
    });
    let calls = ["futex:110:1:137"];
    let hurried = library(&env, "hurried_clock");
    let waits = format!(
        "cd {}; LD_PRELOAD={hurried} exec {}",
        repo.display(),
        line("issue:acme/web#6")
    );
    let said = human.run(refusing(&env, &calls, &waits));
    page.show(human.pid(), &line("issue:acme/web#6"), said, Some("held"));
    std::fs::remove_file(&flag).expect("it was just made");
    holder.wait().ok();
    std::fs::rename(&dir, &kept).expect("the state is ours");
    std::fs::create_dir(&dir).expect("the state is ours");
    page.title("A worktree that cannot be removed");
    close(&env, 6);
    let warns = |item: &str| {
        // A run removes worktrees when it ends.
        run(&human, "claude wp:1").ok();
        runners_end(&env);
        poll(SOON, "it was tried", || {
            let status = env.tenure(&["status", "--json"]).ok().json();
            let warnings = status["status"]["warnings"].to_string();
            warnings.contains(item).then_some(())
        });
    };
    warns("acme/web#6");
    page.run(&human, "tenure status");
    std::fs::remove_dir(&dir).expect("it was just made");
    std::fs::rename(&kept, &dir).expect("the state is ours");
    before_git(
        &env,
        "case \"$*\" in *'worktree remove'* | *'worktree move'*/issue-6)
         echo 'fatal: No space left on device' >&2; exit 128;; esac",
    );
    run(&human, "claude wp:1").ok();
    runners_end(&env);
    assert!(aside.exists(), "it is aside");
    warns("stays in");
    page.run(&human, "tenure status");
    let look = format!("ls -A {}", folder.display());
    page.show(human.pid(), &look, human.run(Cmd::shell(&look)), None);
    page.check(&env);
}

/// Makes an item one that was closed long ago.
fn close(env: &tenure_testkit::Env, number: u32) {
    forge(
        env,
        &format!(
            "INSERT OR REPLACE INTO items (item, closed_at) VALUES ('issue:acme/web#{number}', 0)"
        ),
    );
}

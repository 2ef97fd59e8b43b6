//! `install` and `uninstall` that are killed at any step: `uninstall --all` undoes what is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenure_testkit::{Agent, Cmd, Env, poll};

use crate::env;
use crate::support::installed::{picture, put, repository, same, world};
use crate::support::line::SOON;
use crate::support::skip::skipped;

/// A home with some settings, and a repository with a hook of its own.
fn furnished(env: &Env) -> PathBuf {
    let home = env.home();
    put(
        &home.join(".claude/settings.json"),
        "{\n\t\"model\": \"opus\"}",
    );
    put(&home.join(".codex/config.toml"), "model = \"o3\" # good\n");
    put(&home.join(".gemini/settings.json"), "");
    let repo = repository(&world(env).join("repo"));
    put(&repo.join(".git/hooks/pre-push"), "#!/bin/sh\nexit 0\n");
    repo
}

const INSTALL: [&str; 6] = ["install", "claude", "codex", "gemini", "opencode", "git"];

const PROJECT: [&str; 3] = ["install", "claude", "--project"];

fn commands(repo: &Path) -> [String; 3] {
    let cd = format!("cd {} && exec", repo.display());
    [
        format!("{cd} tenure {}", INSTALL.join(" ")),
        format!("{cd} tenure {} {}", PROJECT.join(" "), repo.display()),
        format!("{cd} tenure uninstall --all"),
    ]
}

#[test]
fn a_storm_of_kills_leaves_nothing_that_uninstall_does_not_undo() {
    let env = env();
    let repo = furnished(&env);
    let (home, world) = (env.home(), world(&env));
    let before = (picture(&home), picture(&world));
    let person = env.agent("some-editor");
    let commands = commands(&repo);
    let began = Instant::now();
    person.run(Cmd::shell(&commands[0])).ok();
    let whole = began.elapsed().max(Duration::from_millis(5));
    for round in 0..60_u32 {
        let command = person.start(Cmd::shell(&commands[round as usize % 3]));
        let moment = Instant::now() + whole * (round * 7 % 40) / 40;
        poll(SOON, "the moment", || {
            (Instant::now() >= moment).then_some(())
        });
        command.kill9();
        if round % 6 == 5 {
            env.tenure(&["uninstall", "--all"]).ok();
            same(&picture(&home), &before.0);
            same(&picture(&world), &before.1);
        }
    }
}

/// Kills a command at one call after the other, until it ends unharmed.
fn killed_at_every(person: &Agent, call: &str, command: &str, after: impl Fn(usize)) -> usize {
    for when in 1.. {
        let line = command.replacen(
            "exec tenure",
            &format!("exec strace -qq -o /dev/null -e trace={call} -e inject={call}:signal=KILL:when={when} tenure"),
            1,
        );
        let ended = person.run(Cmd::shell(&line));
        if ended.code == 0 {
            return when;
        }
        assert!([137, -1].contains(&ended.code), "{ended}");
        after(when);
    }
    unreachable!("it ends")
}

#[test]
fn a_kill_at_each_call_that_changes_something_leaves_nothing_that_uninstall_does_not_undo() {
    let env = env();
    let repo = furnished(&env);
    let (home, world) = (env.home(), world(&env));
    let before = (picture(&home), picture(&world));
    let person = env.agent("some-editor");
    if person.run(Cmd::shell("strace -o /dev/null true")).code != 0 {
        return skipped("strace does not work here");
    }
    let [install, project, uninstall] = commands(&repo);
    let undone = || {
        env.tenure(&["uninstall", "--all"]).ok();
        same(&picture(&home), &before.0);
        same(&picture(&world), &before.1);
    };
    let mut kills = 0;
    for call in ["rename", "mkdir", "chmod", "fsync"] {
        kills += killed_at_every(&person, call, &install, |_| undone());
        undone();
        kills += killed_at_every(&person, call, &project, |_| undone());
        undone();
    }
    for call in ["rename", "unlink", "rmdir"] {
        let prepare = |_| {
            undone();
            person.run(Cmd::shell(&install)).ok();
        };
        prepare(0);
        kills += killed_at_every(&person, call, &uninstall, prepare);
        undone();
    }
    assert!(kills > 30, "{kills}: the calls have other names here");
    let left = fs::read_dir(env.state()).unwrap().flatten();
    let left: Vec<_> = left
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().contains("installed"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

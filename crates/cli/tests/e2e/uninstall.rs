//! `uninstall` finds every edit again, wherever it was made.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::Value;
use tenure_testkit::{Background, Cmd, Env};

use crate::env;
use crate::support::installed::{picture, put, repository, same, world};

fn registered(env: &Env) -> bool {
    env.state().join("installed.json").exists()
}

#[test]
fn f_h07_hooks_of_repositories_that_were_installed_at_once_are_all_undone() {
    let env = env();
    let world = world(&env);
    let repos: Vec<PathBuf> = (0..24)
        .map(|n| repository(&world.join(format!("r{n}"))))
        .collect();
    let before = picture(&world);
    let person = env.agent("some-editor");
    let installs: Vec<Background> = repos
        .iter()
        .map(|repo| {
            person.start(Cmd::new("tenure").args([
                "install",
                "git",
                "--project",
                repo.to_str().unwrap(),
            ]))
        })
        .collect();
    for install in installs {
        install.wait().ok();
    }
    for repo in &repos {
        assert!(
            repo.join(".git/hooks/pre-commit").exists(),
            "{}",
            repo.display()
        );
    }
    env.tenure(&["uninstall", "--all"]).ok();
    same(&picture(&world), &before);
    assert!(!registered(&env));
}

#[test]
fn f_h07_uninstall_undoes_projects_other_configuration_directories_plugins_and_what_they_made() {
    let mut env = env();
    let world = world(&env);
    let repo = repository(&world.join("repo"));
    put(&repo.join(".gemini/settings.json"), "{\n  // mine\n}\n");
    put(&world.join("codex/config.toml"), "model = \"o3\"\n");
    let (before, home) = (picture(&world), picture(&env.home()));
    let at = |name: &str| world.join(name).to_str().unwrap().to_owned();
    let project = at("repo");
    for (name, dir) in [
        ("CLAUDE_CONFIG_DIR", "claude/deep"),
        ("CODEX_HOME", "codex"),
        ("XDG_CONFIG_HOME", "xdg"),
    ] {
        env.set(name, at(dir));
    }
    env.tenure(&["install", "claude", "codex", "opencode"]).ok();
    env.tenure(&[
        "install",
        "claude",
        "codex",
        "gemini",
        "opencode",
        "git",
        "--project",
        &project,
    ])
    .ok();
    env.tenure(&["install", "claude", "--plugin", &at("plugins/tenure")])
        .ok();
    // The next shell knows none of these directories.
    for (name, dir) in [
        ("CLAUDE_CONFIG_DIR", ".claude"),
        ("CODEX_HOME", ".codex"),
        ("XDG_CONFIG_HOME", ".config"),
    ] {
        env.set(name, env.home().join(dir).to_str().unwrap().to_owned());
    }
    let check = env.tenure(&["install", "--check", "--json"]);
    let json = check.json();
    let files: Vec<&str> = json["agents"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["file"].as_str())
        .collect();
    for file in [
        "claude/deep/settings.json",
        "codex/hooks.json",
        "xdg/opencode/plugin/tenure.js",
        "repo/.claude/settings.json",
        "repo/.codex/hooks.json",
        "repo/.gemini/settings.json",
        "repo/.opencode/plugin/tenure.js",
        "repo/.git/hooks",
        "plugins/tenure",
    ] {
        assert!(files.contains(&at(file).as_str()), "{file} in {files:?}");
    }
    env.tenure(&["uninstall", "gemini"]).ok();
    assert_eq!(picture(&repo.join(".gemini")).len(), 1);
    let dry = picture(&world);
    env.tenure(&["uninstall", "--all", "--dry-run"]).ok();
    same(&picture(&world), &dry);
    env.tenure(&["uninstall", "--all"]).ok();
    same(&picture(&world), &before);
    same(&picture(&env.home()), &home);
    assert!(!registered(&env));
}

#[test]
fn what_was_edited_or_removed_since_is_respected_and_what_cannot_be_read_is_named_and_stays_listed()
{
    let env = env();
    let world = world(&env);
    let project = |name: &str| {
        let dir = world.join(name);
        fs::create_dir_all(&dir).unwrap();
        env.tenure(&["install", "claude", "--project", dir.to_str().unwrap()])
            .ok();
        dir.join(".claude/settings.json")
    };
    let (edited, gone, broken) = (project("edited"), project("gone"), project("broken"));
    let text = fs::read_to_string(&edited).unwrap();
    fs::write(&edited, text.replacen('{', "{\n  \"mine\": [1,2],", 1)).unwrap();
    fs::remove_dir_all(world.join("gone")).unwrap();
    let whole = fs::read_to_string(&broken).unwrap();
    fs::write(&broken, format!("{whole}}}}}")).unwrap();
    let said = env.tenure(&["uninstall", "--all", "--json"]).fails(6);
    let failed: Vec<Value> = said.json()["failed"].as_array().unwrap().clone();
    assert_eq!(failed.len(), 1, "{said}");
    assert_eq!(failed[0]["file"], broken.to_str().unwrap(), "{said}");
    let left = fs::read_to_string(&edited).unwrap();
    assert!(
        left.contains("\"mine\": [1,2]") && !left.contains("hook claude"),
        "{left}"
    );
    assert!(!gone.exists());
    assert!(registered(&env));
    env.tenure(&["uninstall", "claude"]).fails(6);
    fs::write(&broken, whole).unwrap();
    env.tenure(&["uninstall", "claude"]).ok();
    assert!(!world.join("broken/.claude").exists());
    assert!(!registered(&env));
}

/// Dotfile managers link settings from elsewhere; and then they link something else.
#[test]
fn a_file_that_was_reached_by_a_link_is_undone_after_the_link_is_gone() {
    let env = env();
    let world = world(&env);
    let real = world.join("dotfiles/claude.json");
    put(&real, "{\"model\": \"opus\"}\n");
    let link = env.home().join(".claude/settings.json");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(&real, &link).unwrap();
    let before = picture(&world);
    env.tenure(&["install", "claude"]).ok();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("hook claude"));
    fs::remove_file(&link).unwrap();
    put(&link, "{}\n");
    env.tenure(&["uninstall", "--all"]).ok();
    same(&picture(&world), &before);
    assert_eq!(fs::read_to_string(&link).unwrap(), "{}\n");
}

#[test]
fn what_an_older_tenure_listed_is_taken_over() {
    let env = env();
    let world = world(&env);
    let (old, new) = (
        repository(&world.join("old")),
        repository(&world.join("new")),
    );
    let before = picture(&world);
    for repo in [&old, &new] {
        env.tenure(&["install", "git", "--project", repo.to_str().unwrap()])
            .ok();
    }
    // As the older one left it.
    fs::remove_file(env.state().join("installed.json")).unwrap();
    put(
        &env.state().join("git-hooks"),
        &format!("{}\n", old.join(".git/hooks").display()),
    );
    env.tenure(&["install", "git", "--project", new.to_str().unwrap()])
        .ok();
    env.tenure(&["uninstall", "--all"]).ok();
    let hooks: Vec<_> = picture(&world)
        .into_keys()
        .filter(|path| path.ends_with("pre-push"))
        .collect();
    assert!(hooks.is_empty(), "{hooks:?}");
    let files = |all: BTreeMap<PathBuf, (u32, String)>| -> Vec<PathBuf> {
        all.into_iter()
            .filter(|(_, (_, content))| content != "directory")
            .map(|(path, _)| path)
            .collect()
    };
    assert_eq!(files(picture(&world)), files(before));
    assert!(!registered(&env) && !env.state().join("git-hooks").exists());
}

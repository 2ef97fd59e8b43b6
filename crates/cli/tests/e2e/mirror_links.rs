//! Mirrors and symbolic links: a link below the mirror's own directory never sends a write elsewhere.

use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::path::{Path, PathBuf};

use tenure_testkit::Env;

use crate::env;
use crate::support::line::register;

/// Sets up one mirror; `path` is a template.
fn mirror(env: &Env, format: &str, path: &str) {
    let dir = env.home().join(".config/tenure");
    fs::create_dir_all(&dir).expect("a private home");
    let text = format!("[[mirror]]\nformat = \"{format}\"\npath = \"{path}\"\n");
    fs::write(dir.join("config.toml"), text).expect("a private home");
}

/// A directory of somebody else's, where nothing of ours may appear.
fn elsewhere(env: &Env) -> PathBuf {
    let dir = env.dir().join("elsewhere");
    fs::create_dir_all(&dir).expect("a scratch directory is ours");
    dir
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a scratch directory is ours");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("a scratch directory is ours");
        entry.file_name().to_string_lossy().into_owned()
    };
    entries.map(name).collect()
}

/// Registers a session, and says what was said about its mirror.
fn said(env: &Env) -> String {
    let ann = env.agent("claude");
    let args = ["register", "--agent", "claude", "--native-id", "n1"];
    ann.tenure(&args).ok().stderr
}

#[test]
fn f_k12_a_link_in_the_place_of_a_mirrors_directory_sends_nothing_elsewhere() {
    for (format, template, planted) in [
        ("pact", "~/.pact/{native_id}.json", ".pact"),
        ("pact", "~/.pact/{native_id}/context.json", ".pact/n1"),
        ("pact", "~/.pact/{agent}/deep/context.json", ".pact/claude"),
        (
            "pact",
            "~/.pact/{agent}/deep/context.json",
            ".pact/claude/deep",
        ),
        ("spec-kitty", "~/.kitty", ".kitty"),
    ] {
        let env = env();
        mirror(&env, format, template);
        let (link, elsewhere) = (env.home().join(planted), elsewhere(&env));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&elsewhere, &link).unwrap();
        let stderr = said(&env);
        assert!(
            stderr.contains("symbolic link") && stderr.contains(link.to_str().unwrap()),
            "{template}: {stderr}"
        );
        assert_eq!(names(&elsewhere), Vec::<String>::new(), "{template}");
        assert!(link.is_symlink());
    }
}

#[test]
fn f_k12_a_link_of_another_user_above_a_mirror_is_not_followed() {
    let env = env();
    let (link, elsewhere) = (env.dir().join("shared"), elsewhere(&env));
    symlink(&elsewhere, &link).unwrap();
    if lchown(&link, Some(12345), None).is_err() {
        return crate::support::skip::skipped("only root gives files away");
    }
    mirror(
        &env,
        "pact",
        &format!("{}/pact/context.json", link.display()),
    );
    let stderr = said(&env);
    assert!(stderr.contains("another user"), "{stderr}");
    assert_eq!(names(&elsewhere), Vec::<String>::new());
}

#[test]
fn a_home_or_a_configuration_directory_that_is_a_link_is_the_users_own_choice() {
    let mut env = env();
    let (home, real) = (env.dir().join("linked-home"), env.home());
    symlink(&real, &home).unwrap();
    let config = env.dir().join("dotfiles");
    fs::create_dir(&config).unwrap();
    symlink(&config, real.join(".config")).unwrap();
    env.set("HOME", home.to_str().unwrap());
    for template in ["~/{native_id}.json", "~/.config/pact/{native_id}.json"] {
        mirror(&env, "pact", template);
        let ann = env.agent("claude");
        let written = register(&ann, "claude", "--native-id n1");
        let file = real.join(template.replace("~/", "").replace("{native_id}", "n1"));
        assert!(file.is_file(), "{template}: {written:?}");
    }
    assert!(config.join("pact/n1.json").is_file());
}

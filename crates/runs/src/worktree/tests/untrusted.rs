//! Repositories that the user does not trust.

use super::*;

fn make(scene: &Scene, item: &str) -> Result<RunWorktree, Problem> {
    let worktree = tenure_host::git::worktree(&scene.repo()).unwrap();
    let item = Key::parse(item).unwrap();
    let state = scene.state();
    for_item(
        &item,
        &worktree,
        Belief::UserOnly,
        None,
        &state,
        &scene.locks(),
    )
}

/// A scene whose repository has only plain settings.
fn plain() -> Scene {
    let scene = Scene::new();
    let config = git(&scene.repo(), &["config", "--list", "--name-only"]);
    let instead = config
        .lines()
        .find(|name| name.starts_with("url."))
        .unwrap();
    git(&scene.repo(), &["config", "--unset", instead]);
    scene
}

#[test]
fn a_repository_with_plain_settings_has_worktrees_and_another_has_none() {
    let scene = plain();
    let made = make(&scene, "issue:acme/web#1").unwrap();
    assert!(made.is_new && made.dir.join("a").exists());
    assert!(!make(&scene, "issue:acme/web#1").unwrap().is_new);
    git(&scene.repo(), &["config", "filter.x.smudge", "false"]);
    for item in ["issue:acme/web#1", "issue:acme/web#2"] {
        let problem = make(&scene, item).unwrap_err();
        assert_eq!(problem.kind, "untrusted");
        let named = "filter.x.smudge";
        assert!(problem.message.contains(named), "{}", problem.message);
    }
    // The same repository, trusted.
    assert!(scene.made("issue:acme/web#2").unwrap().is_new);
}

#[test]
fn a_worktree_stays_while_git_could_run_what_its_repository_names() {
    let scene = plain();
    make(&scene, "issue:acme/web#1").unwrap();
    let sang = scene.root.join("sang");
    let program = format!("touch {}; cat", sang.display());
    git(&scene.repo(), &["config", "filter.x.clean", &program]);
    let attributes = scene.repo().join(".git/info/attributes");
    fs_err::create_dir_all(attributes.parent().unwrap()).unwrap();
    fs_err::write(attributes, "* filter=x\n").unwrap();
    let left = scene.left().remove(0);
    // Changed, so that git would have to look at its content.
    fs_err::write(Path::new(&left.record.dir).join("a"), "b\n").unwrap();
    let Removal::Kept(why) = remove(&left, None, &scene.locks()).unwrap() else {
        panic!("it was removed");
    };
    assert!(why[0].contains("filter.x.clean"), "{why:?}");
    assert!(!sang.exists());
}

#[test]
fn a_pull_request_is_fetched_by_no_program_of_the_repository() {
    let scene = plain();
    let sang = scene.root.join("sang");
    let program = format!("touch {}; false", sang.display());
    for (url, name) in [
        ("git@127.0.0.1:acme/web.git", "core.sshCommand"),
        ("git://127.0.0.1:1/acme/web.git", "core.gitProxy"),
        ("http://127.0.0.1:1/acme/web.git", "core.askPass"),
    ] {
        git(&scene.repo(), &["config", "remote.origin.url", url]);
        git(&scene.repo(), &["config", name, &program]);
        let problem = make(&scene, "pr:acme/web#7").unwrap_err();
        assert_eq!(problem.kind, "worktree", "{}", problem.message);
        assert!(!sang.exists(), "{name}");
    }
    let ext = format!("ext::sh -c {}", program.replace(' ', "% "));
    git(&scene.repo(), &["config", "remote.origin.url", &ext]);
    assert!(make(&scene, "pr:acme/web#7").is_err());
    assert!(!sang.exists());
}

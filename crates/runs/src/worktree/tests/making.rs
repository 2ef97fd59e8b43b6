//! Creating and reusing worktrees.

use super::*;

#[test]
fn a_worktree_is_made_once_for_each_item_and_used_again() {
    let scene = Scene::new();
    let made = scene.made(ITEM).unwrap();
    assert!(made.is_new && made.dir.starts_with(scene.state()));
    assert_eq!(made.branch, "tenure/issue-6");
    assert_eq!(
        git(&made.dir, &["branch", "--show-current"]),
        "tenure/issue-6"
    );
    let base = git(&scene.repo(), &["rev-parse", "origin/main"]);
    assert_eq!(git(&made.dir, &["rev-parse", "HEAD"]), base);
    fs_err::write(made.dir.join("b"), "mine").unwrap();
    let again = scene.made(ITEM).unwrap();
    assert_eq!(
        again,
        RunWorktree {
            is_new: false,
            ..made.clone()
        }
    );
    assert!(again.dir.join("b").exists());
    let other = scene.made("issue:acme/web#60").unwrap();
    assert_eq!(other.branch, "tenure/issue-60");
    assert_ne!(other.dir, made.dir);
    assert_eq!(scene.items(), [ITEM, "issue:acme/web#60"]);
    // Seen from inside one of them, it is the same repository.
    let inside = tenure_host::git::worktree(&made.dir).unwrap();
    let item = Key::parse(ITEM).unwrap();
    let found = for_item(
        &item,
        &inside,
        Belief::Full,
        None,
        &scene.state(),
        &scene.locks(),
    )
    .unwrap();
    assert_eq!(found.dir, made.dir);
}

#[test]
fn a_branch_of_somebody_else_is_left_alone() {
    let scene = Scene::new();
    git(&scene.repo(), &["branch", "tenure/issue-6"]);
    assert_eq!(scene.made(ITEM).unwrap().branch, "tenure/issue-6-2");
    // Two items whose names differ only in punctuation get two worktrees.
    assert_eq!(scene.made("wp:a/b").unwrap().branch, "tenure/wp-a-b");
    assert_eq!(scene.made("wp:a-b").unwrap().branch, "tenure/wp-a-b-2");
    assert_eq!(scene.made("wp:a-b").unwrap().branch, "tenure/wp-a-b-2");
    let other = Scene::new();
    git(&other.repo(), &["branch", "tenure"]);
    assert_eq!(other.made(ITEM).unwrap().branch, "tenure-issue-6");
}

#[test]
fn a_pull_request_begins_at_its_head() {
    let scene = Scene::new();
    let bare = scene.root.join("acme/web.git");
    let work = scene.root.join("fork");
    git(
        &scene.root,
        &[
            "clone",
            "--quiet",
            bare.to_str().unwrap(),
            work.to_str().unwrap(),
        ],
    );
    fs_err::write(work.join("theirs"), "x").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "theirs"]);
    let head = git(&work, &["rev-parse", "HEAD"]);
    for (reference, item) in [
        ("pull/9", "pr:acme/web#9"),
        ("merge-requests/10", "pr:acme/web#10"),
    ] {
        git(
            &work,
            &[
                "push",
                "--quiet",
                "origin",
                &format!("HEAD:refs/{reference}/head"),
            ],
        );
        let made = scene.made(item).unwrap();
        assert_eq!(git(&made.dir, &["rev-parse", "HEAD"]), head);
    }
    let before = scene.listed();
    let missing = scene.made("pr:acme/web#11").unwrap_err();
    assert!(
        missing.message.contains("pr:acme/web#11") && missing.message.contains("refs/pull/11/head"),
        "{}",
        missing.message
    );
    let foreign = scene.made("pr:acme/api#9").unwrap_err();
    assert!(
        foreign.message.contains("another repository"),
        "{}",
        foreign.message
    );
    assert_eq!(scene.listed(), before);
    assert_eq!(scene.items().len(), 2);
}

#[test]
fn a_branch_item_begins_at_that_branch() {
    let scene = Scene::new();
    let repo = scene.repo();
    git(&repo, &["checkout", "--quiet", "-b", "fix-6"]);
    git(&repo, &["commit", "--quiet", "--allow-empty", "-m", "fix"]);
    let made = scene.made("branch:acme/web:fix-6").unwrap();
    assert_eq!(made.branch, "tenure/branch-fix-6");
    let head = git(&repo, &["rev-parse", "fix-6"]);
    assert_eq!(git(&made.dir, &["rev-parse", "HEAD"]), head);
    // Other work begins at the remote's state, whatever is checked out here.
    let other = scene.made(ITEM).unwrap();
    assert_ne!(git(&other.dir, &["rev-parse", "HEAD"]), head);
}

#[test]
fn f_r29_no_hook_of_the_repository_runs() {
    let scene = Scene::new();
    let hooks = scene.repo().join(".husky");
    fs_err::create_dir(&hooks).unwrap();
    let ran = scene.root.join("ran");
    let script = format!("#!/bin/sh\ntouch {}\n", ran.display());
    fs_err::write(hooks.join("post-checkout"), &script).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    fs_err::set_permissions(hooks.join("post-checkout"), mode).unwrap();
    git(
        &scene.repo(),
        &["config", "core.hooksPath", hooks.to_str().unwrap()],
    );
    scene.made(ITEM).unwrap();
    assert!(!ran.exists());
    git(&scene.repo(), &["checkout", "--quiet", "-b", "x"]);
    assert!(ran.exists(), "the hook works otherwise");
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let scene = Scene::new();
    let empty = scene.root.join("empty");
    git(
        &scene.root,
        &["init", "--quiet", "-b", "main", empty.to_str().unwrap()],
    );
    let worktree = tenure_host::git::worktree(&empty).unwrap();
    let item = Key::parse("wp:1").unwrap();
    let problem = for_item(
        &item,
        &worktree,
        Belief::Full,
        None,
        &scene.state(),
        &scene.locks(),
    )
    .unwrap_err();
    assert!(problem.message.contains("no commit"), "{}", problem.message);
    // Git itself fails, because the directory cannot be created.
    let made = scene.made("wp:2").unwrap();
    let folder = made.dir.parent().unwrap().to_owned();
    fs_err::write(scene.repo().join(".git/refs/heads/tenure/wp-1.lock"), "").unwrap();
    let problem = scene.made("wp:1").unwrap_err();
    assert!(
        problem.message.contains("git worktree add failed"),
        "{}",
        problem.message
    );
    assert!(!folder.join("wp-1").exists() && !folder.join("wp-1.json").exists());
    assert_eq!(scene.items(), ["wp:2"]);
}

#[test]
fn several_at_once_make_one_worktree_for_each_item() {
    let scene = Scene::new();
    let items = [
        ITEM,
        "issue:acme/web#7",
        ITEM,
        ITEM,
        "issue:acme/web#7",
        ITEM,
    ];
    let running: Vec<Child> = items
        .iter()
        .map(|item| scene.start(&format!("make {item}"), None))
        .collect();
    let answers: Vec<String> = running.into_iter().map(said).collect();
    let count = |word: &str| {
        answers
            .iter()
            .filter(|answer| answer.contains(word))
            .count()
    };
    assert_eq!(
        (count("MADE true"), count("MADE false")),
        (2, 4),
        "{answers:?}"
    );
    assert_eq!(
        (count("/issue-6"), count("/issue-7")),
        (4, 2),
        "{answers:?}"
    );
    assert_eq!(scene.items(), [ITEM, "issue:acme/web#7"]);
    assert_eq!(scene.listed().len(), 3);
}

#[test]
fn a_worktree_that_was_deleted_by_hand_is_made_again_on_its_branch() {
    let scene = Scene::new();
    let made = scene.made(ITEM).unwrap();
    git(
        &made.dir,
        &["commit", "--quiet", "--allow-empty", "-m", "mine"],
    );
    let head = git(&made.dir, &["rev-parse", "HEAD"]);
    fs_err::remove_dir_all(&made.dir).unwrap();
    let again = scene.made(ITEM).unwrap();
    assert_eq!(again, made);
    assert_eq!(git(&again.dir, &["rev-parse", "HEAD"]), head);
    // Including the branch.
    git(
        &scene.repo(),
        &["worktree", "remove", made.dir.to_str().unwrap()],
    );
    git(
        &scene.repo(),
        &["branch", "--quiet", "-D", "tenure/issue-6"],
    );
    let third = scene.made(ITEM).unwrap();
    assert!(third.is_new && third.branch == "tenure/issue-6");
    // Anything else in its place is not touched.
    git(
        &scene.repo(),
        &["worktree", "remove", made.dir.to_str().unwrap()],
    );
    fs_err::create_dir(&made.dir).unwrap();
    fs_err::write(made.dir.join("theirs"), "x").unwrap();
    let refused = scene.made(ITEM).unwrap_err();
    assert!(
        refused.message.contains("not a worktree of"),
        "{}",
        refused.message
    );
    assert!(made.dir.join("theirs").exists());
    assert!(matches!(scene.remove(None), Removal::Kept(_)));
    assert!(made.dir.join("theirs").exists());
}

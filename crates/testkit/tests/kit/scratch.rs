//! What tests need besides processes: answers, waiting, repositories, and an untouched home.

use std::panic::catch_unwind;
use std::time::Duration;

use tenure_testkit::{HomeGuard, Output, add_worktree, poll, scratch_git};

fn says(code: i32, stdout: &str) -> Output {
    Output {
        code,
        stdout: stdout.to_owned(),
        stderr: "because".to_owned(),
    }
}

#[test]
fn an_answer_that_is_not_as_expected_is_shown_whole() {
    let message = |f: fn() -> Output| {
        let panic = catch_unwind(|| f().code).unwrap_err();
        *panic.downcast::<String>().unwrap()
    };
    for text in [
        message(|| says(3, "said").ok()),
        message(|| says(0, "said").fails(3)),
        message(|| {
            says(0, "said").json();
            says(0, "")
        }),
    ] {
        assert!(text.contains("said") && text.contains("because"), "{text}");
    }
    for bad in ["", "[]", "{} {}", "1"] {
        assert!(catch_unwind(|| says(0, bad).json()).is_err(), "{bad:?}");
    }
    assert_eq!(says(0, "{\"a\": [1]}\n").json()["a"][0], 1);
}

#[test]
fn polling_in_vain_names_what_was_waited_for() {
    let waited = catch_unwind(|| poll(Duration::ZERO, "the moon", || None::<()>));
    let message = *waited.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("the moon"), "{message}");
}

#[test]
fn a_scratch_repository_takes_worktrees() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    let tree = dir.path().join("tree");
    scratch_git(&repo, Some("https://example.invalid/a/b.git"));
    add_worktree(&repo, &tree, "side");
    assert!(repo.join(".git").is_dir());
    assert!(tree.join(".git").is_file());
    let config = std::fs::read_to_string(repo.join(".git/config")).unwrap();
    assert!(config.contains("https://example.invalid/a/b.git"));
}

#[test]
fn the_guard_sees_what_changed_and_what_appeared() {
    let dir = tempfile::tempdir().unwrap();
    let (there, missing) = (dir.path().join("there"), dir.path().join("missing"));
    std::fs::create_dir(&there).unwrap();
    std::fs::write(there.join("file"), "one").unwrap();
    let guard = || HomeGuard::of(vec![there.clone(), missing.clone()]);
    guard().check();
    for touch in [
        (|dir| std::fs::write(dir.join("there/file"), "more").unwrap()) as fn(&std::path::Path),
        |dir| std::fs::write(dir.join("there/new"), "").unwrap(),
        |dir| std::fs::create_dir(dir.join("missing")).unwrap(),
    ] {
        let dropped = catch_unwind(|| {
            let _guard = guard();
            touch(dir.path());
        });
        assert!(dropped.is_err());
    }
    HomeGuard::new().check();
}

//! States after git or a removal is killed.

use std::time::Duration;

use tenure_testkit::poll;

use super::*;

const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_removal_that_is_killed_between_move_and_remove_is_put_back() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    let killer = "case \"$*\" in *'worktree remove'*) kill -9 $PPID; exit 1;; esac";
    let killed = scene
        .start(&format!("remove {ITEM}"), Some(killer))
        .wait_with_output()
        .unwrap();
    assert!(!killed.status.success());
    let aside = dir.with_file_name(".leaving-issue-6");
    assert!(aside.join("a").exists() && !dir.exists());
    assert_eq!(scene.listed()[1], aside.to_str().unwrap());
    // The next check finds it once the git process is gone too, which holds the lock as long as it
    // lives.
    let found = poll(SOON, "it is put back", || {
        let found = scene.left();
        (!aside.exists()).then_some(found)
    });
    assert_eq!(found[0].record.dir, dir.to_str().unwrap());
    assert!(dir.join("a").exists());
    assert_eq!(scene.listed()[1], dir.to_str().unwrap());
    assert_eq!(scene.remove(None), Removal::Removed);
}

#[test]
fn a_run_finds_its_worktree_after_a_removal_that_was_killed() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    git(&dir, &["push", "--quiet", "origin", "HEAD"]);
    let killer = "case \"$*\" in *'worktree remove'*) kill -9 $PPID; exit 1;; esac";
    scene
        .start(&format!("remove {ITEM}"), Some(killer))
        .wait_with_output()
        .unwrap();
    let again = scene.made(ITEM).unwrap();
    assert_eq!((again.dir.clone(), again.is_new), (dir.clone(), false));
    assert!(dir.join("a").exists());
}

/// Git deletes the files of a worktree one after the other, `.git` among them.
#[test]
fn a_removal_that_was_killed_while_git_deleted_files_is_put_back_whole() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    let aside = dir.with_file_name(".leaving-issue-6");
    let paths = [dir.to_str().unwrap(), aside.to_str().unwrap()];
    for deleted in [&["a"][..], &[".git"], &[".git", "a", ".gitignore"]] {
        git(&scene.repo(), &["worktree", "move", paths[0], paths[1]]);
        for file in deleted {
            fs_err::remove_file(aside.join(file)).unwrap();
        }
        assert_eq!(scene.left().len(), 1);
        assert!(!aside.exists(), "{deleted:?}");
        assert_eq!(git(&dir, &["status", "--porcelain"]), "", "{deleted:?}");
        assert_eq!(fs_err::read_to_string(dir.join("a")).unwrap(), "a\n");
    }
    // Files that someone changed there stay as they are.
    git(&scene.repo(), &["worktree", "move", paths[0], paths[1]]);
    fs_err::remove_file(aside.join("a")).unwrap();
    fs_err::write(aside.join("new"), "x").unwrap();
    assert!(scene.why_kept().contains("uncommitted changes: a, new"));
}

#[test]
fn a_move_that_was_killed_halfway_is_undone() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    let aside = dir.with_file_name(".leaving-issue-6");
    fs_err::rename(&dir, &aside).unwrap();
    assert_eq!(scene.items(), [ITEM]);
    assert!(dir.join("a").exists() && !aside.exists());
    assert_eq!(scene.remove(None), Removal::Removed);
}

#[test]
fn a_removal_that_was_killed_before_its_end_is_finished() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    let aside = dir.with_file_name(".leaving-issue-6");
    git(
        &scene.repo(),
        &[
            "worktree",
            "move",
            dir.to_str().unwrap(),
            aside.to_str().unwrap(),
        ],
    );
    let record = scene.left();
    assert!(dir.exists(), "the look brought it back");
    git(
        &scene.repo(),
        &[
            "worktree",
            "move",
            dir.to_str().unwrap(),
            aside.to_str().unwrap(),
        ],
    );
    fs_err::remove_dir_all(&aside).unwrap();
    assert_eq!(
        remove(&record[0], None, &scene.locks()).unwrap(),
        Removal::Gone
    );
    assert_eq!(scene.listed().len(), 1);
    // Only the record is left.
    let made = scene.made(ITEM).unwrap();
    let record = scene.left();
    git(
        &scene.repo(),
        &["worktree", "remove", made.dir.to_str().unwrap()],
    );
    assert!(scene.left().is_empty());
    assert_eq!(
        remove(&record[0], None, &scene.locks()).unwrap(),
        Removal::Gone
    );
    assert_eq!(
        remove(&record[0], None, &scene.locks()).unwrap(),
        Removal::Gone
    );
}

#[test]
fn a_worktree_that_git_did_not_finish_is_made_anew() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    // The state after git is killed while it checks files out.
    fs_err::remove_file(dir.join("a")).unwrap();
    let admin = scene.repo().join(".git/worktrees/issue-6");
    fs_err::write(admin.join("locked"), "initializing").unwrap();
    let again = scene.made(ITEM).unwrap();
    assert!(again.is_new && again.dir == dir);
    assert!(dir.join("a").exists() && !admin.join("locked").exists());
}

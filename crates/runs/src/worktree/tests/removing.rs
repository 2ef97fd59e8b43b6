//! Worktrees that are removed, and those that stay.

use super::*;

#[test]
fn a_worktree_whose_work_is_elsewhere_is_removed() {
    let scene = Scene::new();
    let made = scene.made(ITEM).unwrap();
    assert_eq!(scene.remove(None), Removal::Removed);
    assert!(!made.dir.exists() && scene.left().is_empty());
    assert_eq!(scene.listed().len(), 1);
    let branch = git(&scene.repo(), &["branch", "--list", "tenure/issue-6"]);
    assert!(branch.contains("tenure/issue-6"), "the branch stays");
    // The item is reopened: it does not get its old branch.
    assert_eq!(scene.made(ITEM).unwrap().branch, "tenure/issue-6-2");
}

#[test]
fn commits_that_are_nowhere_else_keep_a_worktree() {
    let scene = Scene::new();
    let made = scene.made(ITEM).unwrap();
    git(
        &made.dir,
        &["commit", "--quiet", "--allow-empty", "-m", "mine"],
    );
    let head = git(&made.dir, &["rev-parse", "HEAD"]);
    assert!(
        scene
            .why_kept()
            .contains(&format!("commit {} is not on the remote", &head[..12]))
    );
    // Something else was merged.
    let base = git(&scene.repo(), &["rev-parse", "main"]);
    assert!(matches!(scene.remove(Some(&base)), Removal::Kept(_)));
    assert_eq!(scene.remove(Some(&head)), Removal::Removed);
    let pushed = scene.made("wp:1").unwrap();
    git(
        &pushed.dir,
        &["commit", "--quiet", "--allow-empty", "-m", "mine"],
    );
    assert!(matches!(scene.remove(None), Removal::Kept(_)));
    git(&pushed.dir, &["push", "--quiet", "origin", "HEAD"]);
    assert_eq!(scene.remove(None), Removal::Removed);
}

#[test]
fn a_dirty_worktree_is_kept_and_what_is_in_it_is_named() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    let write = |name: &str, text: &str| fs_err::write(dir.join(name), text).unwrap();
    write("new file", "x");
    assert!(scene.why_kept().contains("uncommitted changes: new file"));
    // Even if the user's settings hide them.
    git(
        &scene.repo(),
        &["config", "status.showUntrackedFiles", "no"],
    );
    assert!(scene.why_kept().contains("new file"));
    fs_err::remove_file(dir.join("new file")).unwrap();
    write("a", "changed");
    assert!(scene.why_kept().contains("uncommitted changes: a"));
    git(&dir, &["update-index", "--skip-worktree", "a"]);
    assert!(scene.why_kept().contains("uncommitted changes: a"));
    git(&dir, &["update-index", "--no-skip-worktree", "a"]);
    git(&dir, &["add", "a"]);
    assert!(
        scene.why_kept().contains("uncommitted changes: a"),
        "staged"
    );
    git(&dir, &["reset", "--quiet", "--hard"]);
    write("secret.log", "x");
    // As old as an unpacked archive can make it.
    let old = std::time::SystemTime::UNIX_EPOCH;
    fs_err::File::options()
        .write(true)
        .open(dir.join("secret.log"))
        .unwrap()
        .file()
        .set_modified(old)
        .unwrap();
    assert_eq!(
        scene.why_kept(),
        "ignored files that were made after the checkout: secret.log"
    );
    fs_err::remove_file(dir.join("secret.log")).unwrap();
    git(
        &scene.repo(),
        &[
            "worktree",
            "lock",
            "--reason",
            "tenure: claude-k7qd works here",
            dir.to_str().unwrap(),
        ],
    );
    assert_eq!(
        scene.why_kept(),
        "git has it locked (tenure: claude-k7qd works here)"
    );
    git(
        &scene.repo(),
        &["worktree", "unlock", dir.to_str().unwrap()],
    );
    assert_eq!(scene.remove(None), Removal::Removed);
}

#[test]
fn a_worktree_that_a_process_works_in_is_kept() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    fs_err::create_dir(dir.join("below")).unwrap();
    let mut child = Command::new("cat")
        .current_dir(dir.join("below"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let why = scene.why_kept();
    assert_eq!(
        why,
        format!("processes work in it: pid {} (cat)", child.id())
    );
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(scene.remove(None), Removal::Removed);
}

/// A process that enters after the first check is still inside after the move.
#[test]
fn a_process_that_came_in_meanwhile_brings_the_worktree_back() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    let pid_file = scene.root.join("pid");
    let enters = format!(
        "case \"$*\" in *'worktree move'*.leaving-issue-6)\n\
         cd {} && {{ sleep 1000 >/dev/null 2>&1 </dev/null & echo $! > {}; }}; cd /;;\nesac",
        dir.display(),
        pid_file.display()
    );
    let answer = said(scene.start(&format!("remove {ITEM}"), Some(&enters)));
    let pid = fs_err::read_to_string(&pid_file).unwrap().trim().to_owned();
    assert!(
        answer.contains(&format!("processes work in it: pid {pid} (sleep)")),
        "{answer}"
    );
    assert!(dir.join("a").exists());
    assert_eq!(scene.listed()[1], dir.to_str().unwrap());
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let gone = || {
        tenure_host::inside::find(&dir)
            .found
            .is_empty()
            .then_some(())
    };
    tenure_testkit::poll(Duration::from_secs(30), "the process ends", gone);
    assert_eq!(scene.remove(None), Removal::Removed);
}

#[test]
fn a_repository_that_is_gone_keeps_its_worktrees_listed() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    fs_err::remove_dir_all(scene.repo()).unwrap();
    assert_eq!(scene.items(), [ITEM]);
    assert!(matches!(scene.remove(None), Removal::Kept(_)));
    assert!(dir.join("a").exists());
    // An unreadable record is left alone too.
    let file = dir.with_extension("json");
    fs_err::write(&file, "{").unwrap();
    assert!(scene.left().is_empty());
    assert!(file.exists() && dir.exists());
}

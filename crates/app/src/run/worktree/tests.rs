//! With real git, real processes and real kills.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use tenure_testkit::scratch_git;

use super::*;

/// A repository with a remote, and a state directory.
struct Scene {
    _keep: tempfile::TempDir,
    root: PathBuf,
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Test")
        .env("GIT_AUTHOR_EMAIL", "test@example.invalid")
        .env("GIT_COMMITTER_NAME", "Test")
        .env("GIT_COMMITTER_EMAIL", "test@example.invalid")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Scene {
    fn at(root: &Path) -> (PathBuf, PathBuf, LockDir) {
        let locks = LockDir::open(&root.join("locks")).unwrap();
        (root.join("web"), root.join("state"), locks)
    }

    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(keep.path()).unwrap();
        let (repo, state, _) = Self::at(&root);
        fs_err::create_dir(&state).unwrap();
        scratch_git(&repo, None);
        fs_err::write(repo.join("a"), "a\n").unwrap();
        fs_err::write(repo.join(".gitignore"), "*.log\n").unwrap();
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "--quiet", "-m", "files"]);
        let bare = root.join("acme/web.git");
        git(
            &root,
            &[
                "clone",
                "--quiet",
                "--bare",
                repo.to_str().unwrap(),
                bare.to_str().unwrap(),
            ],
        );
        // The name of the remote is that of a forge; what git talks to is the clone.
        let url = "https://forge.invalid/acme/web.git";
        git(&repo, &["remote", "add", "origin", url]);
        let instead = format!("url.{}.insteadOf", bare.display());
        git(&repo, &["config", &instead, url]);
        git(&repo, &["fetch", "--quiet", "origin"]);
        Self { _keep: keep, root }
    }

    fn repo(&self) -> PathBuf {
        self.root.join("web")
    }

    fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    fn locks(&self) -> LockDir {
        Self::at(&self.root).2
    }

    fn made(&self, item: &str) -> Result<Made, Problem> {
        let worktree = tenure_host::git::worktree(&self.repo()).unwrap();
        assert_eq!(worktree.remote.as_deref(), Some("acme/web"));
        for_item(
            &Key::parse(item).unwrap(),
            &worktree,
            &self.state(),
            &self.locks(),
        )
    }

    fn left(&self) -> Vec<Left> {
        left(&self.state(), &self.locks())
    }

    fn items(&self) -> Vec<String> {
        self.left()
            .into_iter()
            .map(|left| left.record.item)
            .collect()
    }

    fn remove(&self, merged: Option<&str>) -> Removal {
        let left = self.left();
        assert_eq!(left.len(), 1, "{left:?}");
        remove(&left[0], merged, &self.locks()).unwrap()
    }

    /// Why the only worktree stays. It must be where it was, and whole.
    #[track_caller]
    fn why_kept(&self) -> String {
        let Removal::Kept(why) = self.remove(None) else {
            panic!("it was removed")
        };
        let left = self.left();
        assert_eq!(left[0].record.kept, why);
        let told = warnings(&[left[0].record.clone()]);
        assert!(told[0].ends_with(&format!(" was not removed: {}", why.join("; "))));
        assert!(!left[0].aside().exists());
        let dir = PathBuf::from(&left[0].record.dir);
        assert_eq!(
            git(&dir, &["rev-parse", "--show-toplevel"]),
            left[0].record.dir
        );
        why.join("; ")
    }

    /// The paths that git knows.
    fn listed(&self) -> Vec<String> {
        let text = git(&self.repo(), &["worktree", "list", "--porcelain"]);
        let paths = text
            .lines()
            .filter_map(|line| line.strip_prefix("worktree "));
        paths.map(str::to_owned).collect()
    }

    /// Starts an act in a process of its own; `git` is a script in front of the real one.
    fn start(&self, act: &str, script: Option<&str>) -> Child {
        let mut path = std::env::var_os("PATH").unwrap_or_default();
        if let Some(script) = script {
            let bin = self.root.join("bin");
            fs_err::create_dir_all(&bin).unwrap();
            let real = real_git();
            let text = format!(
                "#!/bin/sh\nreal={}\n{script}\nexec \"$real\" \"$@\"\n",
                real.display()
            );
            fs_err::write(bin.join("git"), text).unwrap();
            fs_err::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755))
                .unwrap();
            let mut first = bin.into_os_string();
            first.push(":");
            first.push(path);
            path = first;
        }
        let test = "run::worktree::tests::an_act_in_a_process_of_its_own";
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture"])
            .current_dir("/")
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.root)
            .env("ACT", act)
            .env("SCENE", &self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

fn real_git() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|dir| dir.join("git"));
    all.find(|file| file.is_file()).unwrap()
}

#[test]
#[ignore = "a process that other tests start"]
fn an_act_in_a_process_of_its_own() {
    let (Ok(act), Ok(root)) = (std::env::var("ACT"), std::env::var("SCENE")) else {
        return;
    };
    let (repo, state, locks) = Scene::at(Path::new(&root));
    match act.split_once(' ').unwrap() {
        ("make", item) => {
            let worktree = tenure_host::git::worktree(&repo).unwrap();
            let made = for_item(&Key::parse(item).unwrap(), &worktree, &state, &locks).unwrap();
            println!("MADE {} {}", made.is_new, made.dir.display());
        }
        ("remove", item) => {
            let all = left(&state, &locks);
            let one = all.iter().find(|one| one.record.item == item).unwrap();
            println!("REMOVED {:?}", remove(one, None, &locks).unwrap());
        }
        (other, _) => panic!("{other}"),
    }
}

/// What a process of its own answered.
fn said(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

const ITEM: &str = "issue:acme/web#6";

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
        Made {
            is_new: false,
            ..made.clone()
        }
    );
    assert!(again.dir.join("b").exists());
    let other = scene.made("issue:acme/web#60").unwrap();
    assert_eq!(other.branch, "tenure/issue-60");
    assert_ne!(other.dir, made.dir);
    assert_eq!(scene.items(), [ITEM, "issue:acme/web#60"]);
    // From inside of one of them it is the same repository.
    let inside = tenure_host::git::worktree(&made.dir).unwrap();
    let item = Key::parse(ITEM).unwrap();
    let found = for_item(&item, &inside, &scene.state(), &scene.locks()).unwrap();
    assert_eq!(found.dir, made.dir);
}

#[test]
fn a_branch_of_somebody_else_is_left_alone() {
    let scene = Scene::new();
    git(&scene.repo(), &["branch", "tenure/issue-6"]);
    assert_eq!(scene.made(ITEM).unwrap().branch, "tenure/issue-6-2");
    // Two items whose names differ only in signs are two worktrees.
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
    // Other work begins at what the remote has, whatever is checked out here.
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
    let problem = for_item(&item, &worktree, &scene.state(), &scene.locks()).unwrap_err();
    assert!(problem.message.contains("no commit"), "{}", problem.message);
    // Git itself fails: the directory cannot be made.
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
fn a_worktree_whose_work_is_elsewhere_is_removed() {
    let scene = Scene::new();
    let made = scene.made(ITEM).unwrap();
    assert_eq!(scene.remove(None), Removal::Removed);
    assert!(!made.dir.exists() && scene.left().is_empty());
    assert_eq!(scene.listed().len(), 1);
    let branch = git(&scene.repo(), &["branch", "--list", "tenure/issue-6"]);
    assert!(branch.contains("tenure/issue-6"), "the branch stays");
    // The item comes back: its old branch is not taken over.
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
    // Whatever the user's settings hide.
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
    // As old as an unpacked archive makes it.
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
        "git has it locked: tenure: claude-k7qd works here"
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

/// A process that enters after the first look is still inside after the move.
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
    // The next look finds it.
    let found = scene.left();
    assert_eq!(found[0].record.dir, dir.to_str().unwrap());
    assert!(dir.join("a").exists() && !aside.exists());
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
    // What somebody changed there is kept as it is.
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
    // The record alone is left.
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
    // Branch and all.
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
    // Something else in its place is not touched.
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

#[test]
fn a_worktree_that_git_did_not_finish_is_made_anew() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    // What is left when git is killed while it checks files out.
    fs_err::remove_file(dir.join("a")).unwrap();
    let admin = scene.repo().join(".git/worktrees/issue-6");
    fs_err::write(admin.join("locked"), "initializing").unwrap();
    let again = scene.made(ITEM).unwrap();
    assert!(again.is_new && again.dir == dir);
    assert!(dir.join("a").exists() && !admin.join("locked").exists());
}

#[test]
fn a_repository_that_is_gone_keeps_its_worktrees_listed() {
    let scene = Scene::new();
    let dir = scene.made(ITEM).unwrap().dir;
    fs_err::remove_dir_all(scene.repo()).unwrap();
    assert_eq!(scene.items(), [ITEM]);
    assert!(matches!(scene.remove(None), Removal::Kept(_)));
    assert!(dir.join("a").exists());
    // A record that cannot be read is left alone, too.
    let file = dir.with_extension("json");
    fs_err::write(&file, "{").unwrap();
    assert!(scene.left().is_empty());
    assert!(file.exists() && dir.exists());
}

//! With real git, real processes and real kills.

mod killed;
mod making;
mod removing;
mod untrusted;

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
        // The remote's URL is that of a forge; git actually talks to the clone.
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

    fn made(&self, item: &str) -> Result<RunWorktree, Problem> {
        let worktree = tenure_host::git::worktree(&self.repo()).unwrap();
        assert_eq!(worktree.remote.as_deref(), Some("acme/web"));
        for_item(
            &Key::parse(item).unwrap(),
            &worktree,
            Belief::Full,
            None,
            &self.state(),
            &self.locks(),
        )
    }

    fn left(&self) -> Vec<ExistingWorktree> {
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

    /// Why the only worktree stays. It must be in its place, and complete.
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

    /// The paths of the worktrees that git knows.
    fn listed(&self) -> Vec<String> {
        let text = git(&self.repo(), &["worktree", "list", "--porcelain"]);
        let paths = text
            .lines()
            .filter_map(|line| line.strip_prefix("worktree "));
        paths.map(str::to_owned).collect()
    }

    /// Starts an act in a separate process; `git` is a script that wraps the real one.
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
        let test = "worktree::tests::an_act_in_a_process_of_its_own";
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
            let item = Key::parse(item).unwrap();
            let made = for_item(&item, &worktree, Belief::Full, None, &state, &locks).unwrap();
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

/// The output of a separate process.
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

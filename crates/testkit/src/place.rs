//! The directory of one environment: its parts, unique file names, and processes started from it.

use std::fs::{File, create_dir_all};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use crate::command::Cmd;
use crate::program;
use crate::protocol::{ProcessOrder, Started, WorkerMode};

/// A socket's path can have at most 107 bytes, and this directory is only the first part of it.
const MAX_TEMP: usize = 60;

#[derive(Debug)]
pub(crate) struct TestRoot {
    root: PathBuf,
    program: PathBuf,
    tenure: PathBuf,
    count: AtomicU64,
    _dir: TempDir,
}

impl TestRoot {
    pub(crate) fn new(tenure: &Path) -> TestRoot {
        let mut temp = std::env::temp_dir();
        if temp.as_os_str().len() > MAX_TEMP {
            temp = PathBuf::from("/tmp");
        }
        let dir = tempfile::Builder::new()
            .prefix("tenure-")
            .tempdir_in(&temp)
            .unwrap_or_else(|error| panic!("no directory in {}: {error}", temp.display()));
        let root = dir.path().canonicalize().expect("it was just made");
        for part in ["home", "work", "tmp", "bin", "agents", "files"] {
            create_dir_all(root.join(part)).expect("a fresh directory is writable");
        }
        std::os::unix::fs::symlink(tenure, root.join("bin/tenure"))
            .expect("a fresh directory is writable");
        TestRoot {
            root,
            program: program::find(),
            tenure: tenure.to_owned(),
            count: AtomicU64::new(0),
            _dir: dir,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn tenure(&self) -> &Path {
        &self.tenure
    }

    /// A path that no other file uses.
    pub(crate) fn fresh(&self, what: &str) -> PathBuf {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        self.root.join(format!("files/{number}.{what}"))
    }

    /// The executable under another name.
    pub(crate) fn named(&self, name: &str) -> PathBuf {
        program::link(&self.program, &self.root.join("agents"), name)
    }

    /// The variables that every worker has.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = path.to_str().expect("PATH is text");
        let within = |part: &str| text(&self.root.join(part));
        [
            ("PATH", format!("{}:{path}", within("bin"))),
            ("HOME", within("home")),
            ("TENURE_HOME", within("state")),
            ("TENURE_TEST", "1".to_owned()),
            // Hides the agents of other tests, and of the user who runs the tests.
            ("TENURE_PS_UNMANAGED", "false".to_owned()),
            // A keeper outlives the command that started it.
            ("TENURE_KEEPER_START", "false".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TMPDIR", within("tmp")),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// The command `tenure` with these arguments.
    pub(crate) fn tenure_with(&self, args: &[&str]) -> Cmd {
        Cmd::new(text(&self.tenure)).args(args.iter().copied())
    }

    /// An order for a worker to start this command.
    pub(crate) fn order(&self, cmd: Cmd) -> ProcessOrder {
        let stdin = cmd.stdin.map(|text| {
            let path = self.fresh("stdin");
            std::fs::write(&path, text).expect("the environment's directory is writable");
            path
        });
        ProcessOrder {
            program: cmd.program,
            argv0: None,
            args: cmd.args,
            env: cmd.env,
            dir: cmd.dir,
            stdin,
            stdout: self.fresh("stdout"),
            stderr: self.fresh("stderr"),
        }
    }

    /// An order for a process that reads its mode from standard input.
    pub(crate) fn order_mode(&self, mode: &WorkerMode, name: &str, args: &[&str]) -> ProcessOrder {
        let path = self.fresh("mode");
        let json = serde_json::to_string(mode).expect("a mode can be written as JSON");
        std::fs::write(&path, json).expect("the environment's directory is writable");
        let log = self.fresh("log");
        ProcessOrder {
            program: text(&self.named(name)),
            argv0: Some(name.to_owned()),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: Vec::new(),
            dir: None,
            stdin: Some(path),
            stdout: log.clone(),
            stderr: log,
        }
    }

    /// Starts a detached process.
    pub(crate) fn launch(&self, variables: &[(String, String)], order: ProcessOrder) -> Started {
        let log = order.stderr.clone();
        let path = self.fresh("mode");
        let mode = serde_json::to_string(&WorkerMode::Launch(order)).expect("a mode is JSON");
        std::fs::write(&path, mode).expect("the environment's directory is writable");
        let output = Command::new(&self.program)
            .env_clear()
            .envs(variables.iter().map(|(key, value)| (key, value)))
            .current_dir(self.root.join("work"))
            .stdin(File::open(&path).expect("it was just written"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "the launcher ended with {} and no pid ({error}): {}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr),
                std::fs::read_to_string(log).unwrap_or_default()
            )
        })
    }
}

fn text(path: &Path) -> String {
    path.to_str()
        .unwrap_or_else(|| panic!("{} is not text", path.display()))
        .to_owned()
}

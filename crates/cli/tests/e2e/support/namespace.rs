//! Pid namespaces of their own, and callers in them.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use serde_json::Value;
use tenure_testkit::{Agent, Background, Cmd, Env, Output, poll};

use super::answer::PATIENCE;
use super::skip::skipped;

/// Runs tenure in a pid namespace of its own, as agents' sandboxes do with tools.
#[track_caller]
pub fn sandboxed(agent: &Agent, flags: &[&str], vars: &[(&str, &str)], args: &[&str]) -> Output {
    let mut cmd = Cmd::new("unshare")
        .args(flags.iter().copied())
        .arg("tenure");
    for (key, value) in vars {
        cmd = cmd.env(key, *value);
    }
    agent.run(cmd.args(args.iter().copied()).arg("--json"))
}

/// The flags with which `unshare` makes a pid namespace here, or nothing if it is not allowed.
pub fn pid_namespace(env: &Env) -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [
        &["-pf", "--mount-proc", "--kill-child"],
        &["-Urpf", "--mount-proc", "--kill-child"],
    ];
    let nobody = env.agent("nobody-at-all");
    let found = ways.into_iter().find(|way| {
        nobody
            .run(Cmd::new("unshare").args(way.iter().copied()).arg("true"))
            .code
            == 0
    });
    if found.is_none() {
        skipped("this machine makes no pid namespaces for us");
    }
    found
}

/// A shell that is pid 1 of a pid namespace of its own and runs what the test says.
pub struct Inside {
    lines: File,
    dir: PathBuf,
    next: std::cell::Cell<u32>,
    shell: Background,
    _starter: Agent,
}

impl Inside {
    pub fn open(env: &Env, flags: &[&str], name: &str) -> Inside {
        let starter = env.agent("starter");
        let dir = env.dir().join(name);
        std::fs::create_dir(&dir).expect("the environment's directory is writable");
        let pipe = dir.join("lines");
        let path = pipe.to_str().expect("paths of tests are text").to_owned();
        starter.run(Cmd::new("mkfifo").arg(&path)).ok();
        let serve = "while read -r line; do eval \"$line\"; done <\"$0\"";
        let cmd = Cmd::new("unshare").args(flags.iter().copied());
        let shell = starter.start(cmd.args(["sh", "-c", serve, &path]));
        Inside {
            // Both ways: opening it then waits for nobody.
            lines: File::options()
                .read(true)
                .write(true)
                .open(&pipe)
                .expect("it was just made"),
            dir,
            next: std::cell::Cell::new(0),
            shell,
            _starter: starter,
        }
    }

    #[track_caller]
    pub fn line(&self, line: &str) -> Output {
        let number = self.next.get();
        self.next.set(number + 1);
        let file = |what: &str| self.dir.join(format!("{number}.{what}"));
        let show = |what: &str| file(what).display().to_string();
        let (out, err, code, done) = (show("out"), show("err"), show("code"), show("done"));
        writeln!(
            &self.lines,
            "{{ {line} ; }} >'{out}' 2>'{err}'; echo $? >'{code}'; mv '{code}' '{done}'"
        )
        .expect("the pipe is open");
        let code = poll(PATIENCE, &format!("inside: {line}"), || {
            assert!(
                self.shell.is_alive(),
                "the namespace is gone: {}",
                self.shell.stderr()
            );
            std::fs::read_to_string(file("done")).ok()
        });
        Output {
            code: code.trim().parse().expect("$? is a number"),
            stdout: std::fs::read_to_string(file("out")).expect("it was written"),
            stderr: std::fs::read_to_string(file("err")).expect("it was written"),
        }
    }

    #[track_caller]
    pub fn ask(&self, line: &str) -> Value {
        self.line(&format!("tenure {line} --json")).ok().json()
    }

    /// Ends the namespace and everything in it.
    pub fn kill(&self) {
        self.shell.kill9();
    }
}

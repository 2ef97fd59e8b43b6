//! A real shell at a terminal, as a person uses it: commands are typed, and run with job control.
//!
//! Only one short line that reads a file is typed, because a terminal accepts a limited amount at a
//! time.

use std::sync::Arc;

use crate::job::read;
use crate::output::Output;
use crate::pinned::{Pinned, Stat};
use crate::poll::poll;
use crate::protocol::WorkerMode;
use crate::space::Space;
use crate::terminal::Terminal;
use crate::worker::{self, PATIENCE};

/// Shown when the shell is ready for a line.
const PROMPT: &str = "tenure-test-prompt> ";

/// An interactive shell that leads a process session with a controlling terminal.
#[derive(Debug)]
pub struct Shell {
    process: Pinned,
    terminal: Terminal,
    space: Arc<Space>,
}

impl Shell {
    pub(crate) fn open(space: Arc<Space>, variables: &[(String, String)]) -> Shell {
        let terminal = Terminal::open();
        let bash = ["/bin/bash", "/usr/bin/bash"]
            .into_iter()
            .find(|path| std::path::Path::new(path).exists());
        let argv: &[&str] = match &bash {
            Some(path) => &[path, "--norc", "--noprofile", "-i"],
            None => &["/bin/sh", "-i"],
        };
        let mode = WorkerMode::Become {
            terminal: terminal.path().to_owned(),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        };
        let mut variables = variables.to_vec();
        for (key, value) in [("PS1", PROMPT), ("TERM", "dumb")] {
            variables.push((key.to_owned(), value.to_owned()));
        }
        let order = space.place.order_mode(&mode, "shell", &[]);
        let process = worker::pin(space.place.launch(&variables, order));
        let shell = Shell {
            process,
            terminal,
            space,
        };
        poll(PATIENCE, "the shell shows its prompt", || {
            assert!(shell.is_alive(), "the shell ended at once");
            shell.shown().contains(PROMPT).then_some(())
        });
        shell
    }

    pub fn pid(&self) -> u32 {
        self.process.started().pid
    }

    /// What /proc shows about it; `None` once it is gone and reaped.
    pub fn stat(&self) -> Option<Stat> {
        Stat::read(self.pid()).filter(|stat| stat.start == self.process.started().start)
    }

    /// Everything that the terminal has shown.
    pub fn shown(&self) -> String {
        self.terminal.shown()
    }

    /// Types to the running command.
    pub fn press(&self, keys: &str) {
        self.terminal.write(keys);
    }

    /// Types a tenure command and waits for it.
    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn tenure(&self, args: &[&str]) -> Output {
        let cmd = self.space.place.tenure_with(args);
        let words = std::iter::once(&cmd.program).chain(&cmd.args);
        let quoted: Vec<String> = words.map(|word| quote(word)).collect();
        self.line(&quoted.join(" "))
    }

    /// Types a line and waits for it; its output goes to files, its input is the terminal.
    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn line(&self, line: &str) -> Output {
        let [script, stdout, stderr, code, done] =
            ["sh", "stdout", "stderr", "code", "done"].map(|what| self.space.place.fresh(what));
        let to = |path: &std::path::Path| quote(&path.to_string_lossy());
        let text = format!(
            "{{ {line}\n}} >{} 2>{}\necho $? >{}\nmv {} {}\n",
            to(&stdout),
            to(&stderr),
            to(&code),
            to(&code),
            to(&done),
        );
        std::fs::write(&script, text).expect("the environment's directory is writable");
        let prompts = self.prompts();
        self.terminal.write(&format!(". {}\r", to(&script)));
        poll(PATIENCE, &format!("the shell runs {line}"), || {
            assert!(
                self.is_alive(),
                "the shell ended; its terminal shows:\n{}",
                self.shown()
            );
            // When the next prompt appears, everything before it has been read from the terminal
            // too.
            (done.exists() && self.prompts() > prompts).then_some(())
        });
        Output {
            code: read(&done).trim().parse().expect("$? is a number"),
            stdout: read(&stdout),
            stderr: read(&stderr),
        }
    }

    fn prompts(&self) -> usize {
        self.shown().matches(PROMPT).count()
    }

    /// Whether it is running or stopped, not dead.
    pub fn is_alive(&self) -> bool {
        !self.process.is_gone()
    }

    /// Kills it with -9 and waits until it is gone.
    pub fn kill9(&self) {
        worker::kill9(&self.process);
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.kill9();
    }
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

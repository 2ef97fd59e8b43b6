//! One turn: its command line, and the process while it runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::kind::Real;
use super::turn::{self, FinishedTurn};
use super::world::{RealAgent, RealWorld};
use crate::agent::Background;
use crate::command::Cmd;
use crate::pinned::Stat;
use crate::poll::poll;

/// How long an agent may take to start on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// A turn to run.
#[derive(Debug)]
#[must_use = "nothing is asked until it is run or started"]
pub struct TurnBuilder<'w> {
    world: &'w RealWorld,
    kind: Real,
    words: Words,
    more: Vec<String>,
    env: Vec<(String, Option<String>)>,
    dir: Option<PathBuf>,
    sandboxed: bool,
}

#[derive(Debug)]
enum Words {
    Prompt {
        text: String,
        resume: Option<String>,
    },
    Plain,
}

impl<'w> RealAgent<'w> {
    /// A turn of a new conversation.
    pub fn fresh(&self, prompt: &str) -> TurnBuilder<'w> {
        TurnBuilder::prompt(self.world, self.kind, prompt, None)
    }

    /// A turn of a conversation that exists.
    pub fn resume(&self, id: &str, prompt: &str) -> TurnBuilder<'w> {
        TurnBuilder::prompt(self.world, self.kind, prompt, Some(id))
    }

    /// The program with no arguments except those that are added.
    pub fn plain(&self) -> TurnBuilder<'w> {
        TurnBuilder::plain(self.world, self.kind)
    }
}

impl<'w> TurnBuilder<'w> {
    fn prompt(
        world: &'w RealWorld,
        kind: Real,
        text: &str,
        resume: Option<&str>,
    ) -> TurnBuilder<'w> {
        let text = text.to_owned();
        let resume = resume.map(str::to_owned);
        TurnBuilder::of(world, kind, Words::Prompt { text, resume })
    }

    fn plain(world: &'w RealWorld, kind: Real) -> TurnBuilder<'w> {
        TurnBuilder::of(world, kind, Words::Plain)
    }

    fn of(world: &'w RealWorld, kind: Real, words: Words) -> TurnBuilder<'w> {
        TurnBuilder {
            world,
            kind,
            words,
            more: Vec::new(),
            env: Vec::new(),
            dir: None,
            sandboxed: false,
        }
    }

    /// Adds arguments: options of the agent that come before a prompt.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.more.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.to_owned(), Some(value.to_owned())));
        self
    }

    /// Runs it in this directory instead of the project.
    pub fn dir(mut self, dir: &Path) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }

    /// Leaves Codex in its default sandbox, which may write only to the project.
    pub fn sandboxed(mut self) -> Self {
        self.sandboxed = true;
        self
    }

    /// Runs it to its end.
    #[track_caller]
    #[must_use = "what came of a turn is there to be checked"]
    pub fn run(self) -> FinishedTurn {
        self.start().wait()
    }

    /// Starts it without waiting.
    #[track_caller]
    pub fn start(self) -> BackgroundTurn {
        let (world, kind) = (self.world, self.kind);
        BackgroundTurn {
            kind,
            background: world.driver().start(self.command()),
        }
    }

    /// The command line; its program is found on the world's PATH.
    pub fn command(self) -> Cmd {
        let mut cmd = Cmd::new(self.world.program(self.kind)).args(self.arguments());
        for (key, value) in self.env {
            cmd = match value {
                Some(value) => cmd.env(&key, value),
                None => cmd.unset(&key),
            };
        }
        match self.dir {
            Some(dir) => cmd.dir(&dir),
            None => cmd,
        }
    }

    fn arguments(&self) -> Vec<String> {
        let Words::Prompt { text, resume } = &self.words else {
            return self.more.clone();
        };
        let row = self.kind.row();
        let more = self.more.iter().map(String::as_str);
        let resume = resume.iter().flat_map(|id| [row.resume, id.as_str()]);
        let words = (row.words)(self.sandboxed).into_iter();
        let all = words.chain(more).chain(resume).chain((row.prompt)(text));
        all.map(str::to_owned).collect()
    }
}

/// A turn that is still running. If it is dropped, the world ends it.
#[derive(Debug)]
pub struct BackgroundTurn {
    kind: Real,
    background: Background,
}

impl BackgroundTurn {
    /// The pid of the process that was started; for some agents that is a wrapper.
    pub fn pid(&self) -> u32 {
        self.background.pid
    }

    /// Waits for the process that is the agent itself, and returns its pid.
    #[track_caller]
    pub fn agent_pid(&self) -> u32 {
        let names = self.kind.row().children.iter();
        names.fold(self.pid(), |above, name| self.child(above, name))
    }

    #[track_caller]
    fn child(&self, above: u32, program: &str) -> u32 {
        poll(LONG, &format!("the wrapper starts {program}"), || {
            assert!(
                self.is_alive(),
                "the wrapper ended: {}",
                self.background.stderr()
            );
            child_of(above, program)
        })
    }

    /// The events that it has printed so far.
    pub fn events(&self) -> Vec<Value> {
        turn::events(&self.background.stdout())
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        self.background.stderr()
    }

    /// Waits until it reports its id.
    #[track_caller]
    pub fn await_id(&self) -> String {
        poll(LONG, "the agent says the id of its conversation", || {
            turn::id(self.kind, &self.events())
        })
    }

    /// Whether it is running or stopped, not dead.
    pub fn is_alive(&self) -> bool {
        self.background.is_alive()
    }

    /// Kills the started process with -9 and waits until it is gone. Its children keep running.
    pub fn kill9(&self) {
        self.background.kill9();
    }

    /// Sends a signal to the started process.
    pub fn signal(&self, signal: Signal) -> bool {
        self.background.signal(signal)
    }

    #[track_caller]
    #[must_use = "what came of a turn is there to be checked"]
    pub fn wait(self) -> FinishedTurn {
        FinishedTurn::new(self.kind, self.background.wait())
    }
}

/// A child of this process that runs this program.
pub(crate) fn child_of(above: u32, program: &str) -> Option<u32> {
    let below = children(above).into_iter();
    let mut fitting = below.filter(|pid| program_of(*pid).as_deref() == Some(program));
    fitting.next()
}

pub(crate) fn children(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| Stat::read(*pid).is_some_and(|stat| stat.parent == parent))
        .collect()
}

/// The executable, because Node changes the name of its first thread.
fn program_of(pid: u32) -> Option<String> {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(exe.file_name()?.to_str()?.to_owned())
}

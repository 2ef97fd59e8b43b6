//! Processes as recorded and as observed.
//!
//! A pid alone identifies nothing: it is reused, and it means something else in another pid namespace, on
//! another boot, on another machine. [`Process`] has all five coordinates. What an observer can see is separate
//! ([`Sighting`], [`Ancestor`]), so that judging is a pure function.

use serde::{Deserialize, Serialize};

use crate::id::{AgentName, HostId};
use crate::repository::Repository;
use crate::time::Timestamp;
use crate::token::ByToken;

/// A boot of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BootId {
    /// The kernel's random id for this boot.
    pub id: String,
    /// Whether a container mounted over it, so that it does not identify the kernel.
    pub private: bool,
}

/// When a process started, in clock ticks since boot, with any time namespace's offset removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StartTicks {
    pub ticks: u64,
    /// Whether an offset was removed; rounding then costs up to one tick.
    pub shifted: bool,
}

impl StartTicks {
    /// No process started before this.
    pub const EARLIEST: StartTicks = StartTicks {
        ticks: 0,
        shifted: false,
    };

    /// Whether both are the start of the same process.
    pub fn same_start(self, other: StartTicks) -> bool {
        let slack = u64::from(self.shifted || other.shifted);
        self.ticks.abs_diff(other.ticks) <= slack
    }
}

/// One process life, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    pub host: HostId,
    pub boot: BootId,
    /// The inode of the pid namespace in which `pid` counts.
    pub pid_ns: u64,
    pub pid: u32,
    pub start: StartTicks,
}

impl Process {
    /// Whether both records mean the same process.
    pub fn same_as(&self, other: &Process) -> bool {
        self.host == other.host
            && self.boot == other.boot
            && self.pid_ns == other.pid_ns
            && self.pid == other.pid
            && self.start.same_start(other.start)
    }
}

/// The state of a process, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Running, sleeping, waiting for a disk: anything that is neither of the others.
    Going,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Its main thread has exited and has not been reaped.
    Zombie,
}

/// What an observer found for a pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// The kernel reports no such process.
    Absent,
    Present {
        start: StartTicks,
        state: RunState,
        threads: u32,
    },
    /// The number is a thread's now, so no process has it.
    Thread {
        /// The process that the thread belongs to.
        of: u32,
    },
    /// It could not be inspected, for this reason.
    Unreadable(String),
}

/// Who observes, and what it can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observer {
    pub host: HostId,
    pub boot: BootId,
    pub pid_ns: u64,
    /// Whether /proc shows the observer's own namespace.
    pub proc_is_own: bool,
    /// Whether the store is shared by several machines.
    pub shared_store: bool,
}

/// The appearance of a process. It decides what the process is, never whether it is alive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessAppearance {
    /// The path of its executable; empty if unreadable.
    pub exe: String,
    pub argv: Vec<String>,
    /// The kernel's short name for it.
    pub comm: String,
}

/// One ancestor of the caller, or the caller itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ancestor {
    /// The process, if its start could be read.
    pub process: Process,
    pub looks: ProcessAppearance,
    /// Whether it leads a process session with a controlling terminal.
    pub leads_terminal: bool,
    /// Whether it was forked and runs the same executable as its parent: a part of the same program.
    pub forked: bool,
}

/// What the host observed of the caller, before any transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerFacts {
    pub observer: Observer,
    /// The caller, its parent, and so on; incomplete if something could not be read.
    pub chain: Vec<Ancestor>,
    /// Why the chain is incomplete, if it is.
    pub chain_broken: Option<String>,
    /// Whether the caller has a controlling terminal.
    pub has_terminal: bool,
    /// Whether a person is there: stdin and stderr are a terminal.
    pub at_terminal: bool,
    /// TENURE_SESSION from the environment.
    pub session_variable: Option<String>,
    /// The agents' own id variables that are set: agent, variable and value.
    pub native_variables: Vec<NativeVariable>,
    /// The caller's working directory, absolute; empty if it no longer exists.
    pub dir: String,
    pub repository: Option<Repository>,
    /// The token of the HTTP API in whose name something is done.
    pub token: Option<ByToken>,
}

/// An agent's own id variable, as found in the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeVariable {
    /// Its name; empty for what a request says, which is of the agent above, whichever that is.
    pub agent: &'static str,
    pub name: &'static str,
    pub value: String,
}

impl NativeVariable {
    /// Whether its value is an id of this agent's.
    pub fn is_of(&self, agent: &AgentName) -> bool {
        self.agent.is_empty() || self.agent == agent.as_str()
    }
}

/// The variable that names a session and its life to what it starts.
pub const SESSION_VARIABLE: &str = "TENURE_SESSION";
/// The variable that names a run to what it starts.
pub const RUN_VARIABLE: &str = "TENURE_RUN";

/// How to recognise the processes that a session, or a run, left running.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signs {
    /// TENURE_SESSION of each of the lives that ended, newest first.
    pub tokens: Vec<String>,
    /// TENURE_RUN, if the newest of these lives was a run.
    pub run: Option<String>,
    /// The agent's own id variable and the conversations that it named.
    pub natives: Vec<(&'static str, String)>,
    /// The processes of these lives, newest first; what they left running is not older than the oldest of them.
    pub leaders: Vec<Leader>,
    /// Whether agents and what runs below them count too: only the run's own agent can have given them its
    /// variable.
    pub agents_too: bool,
}

/// A process that may have led a process session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    pub pid: u32,
    pub start: StartTicks,
}

impl Leader {
    pub fn of(process: &Process) -> Self {
        Self {
            pid: process.pid,
            start: process.start,
        }
    }

    /// Whether it may have started a process with this start.
    pub fn is_older_than(self, start: StartTicks) -> bool {
        start.ticks + u64::from(start.shifted) >= self.start.ticks
    }
}

/// What connects a process to a session that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It began in the session's last life, and its environment names that life or its run. Only such a process
    /// may be ended.
    Own,
    /// An earlier life, the conversation, or the process session.
    Other,
}

impl Signs {
    /// The signs of a run: its variable, in processes that did not start before this.
    pub fn of_run(run: &str, since: StartTicks) -> Self {
        Self {
            run: Some(run.to_owned()),
            // No process has this number.
            leaders: vec![Leader {
                pid: u32::MAX,
                start: since,
            }],
            agents_too: true,
            ..Self::default()
        }
    }

    /// Whether a process with this start may have been left running.
    pub fn may_be_of(&self, start: StartTicks) -> bool {
        let mut leaders = self.leaders.iter();
        leaders.any(|leader| leader.is_older_than(start))
    }

    /// What connects a process to the session, by its start, its process session and its environment: whether it
    /// has a variable with a value. An error if the environment decides and cannot be read.
    pub fn mark<E>(
        &self,
        start: StartTicks,
        session: u32,
        environment: Result<impl Fn(&str, &str) -> bool, E>,
    ) -> Result<Option<Mark>, E> {
        if !self.may_be_of(start) {
            return Ok(None);
        }
        let is_led = |leader: &Leader| leader.pid == session && leader.is_older_than(start);
        let is_led = self.leaders.iter().any(is_led);
        let has = match environment {
            Ok(has) => has,
            Err(_) if is_led => return Ok(Some(Mark::Other)),
            Err(why) => return Err(why),
        };
        let began_in_last = |newest: &Leader| newest.is_older_than(start);
        let names_life = |token: &String| has(SESSION_VARIABLE, token);
        let names_run = self.run.as_ref().is_some_and(|run| has(RUN_VARIABLE, run));
        let names_last = names_run || self.tokens.first().is_some_and(names_life);
        if names_last && self.leaders.first().is_some_and(began_in_last) {
            return Ok(Some(Mark::Own));
        }
        let names_other = names_last
            || self.tokens.iter().any(names_life)
            || self.natives.iter().any(|(name, value)| has(name, value));
        Ok((is_led || names_other).then_some(Mark::Other))
    }
}

/// What a session or a run left running.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survivors {
    /// Processes that still run and may still write.
    pub found: Vec<LeftProcess>,
    /// Why this list may be incomplete, if so.
    pub doubt: Option<String>,
}

impl Survivors {
    /// The same for people.
    pub fn shown(&self) -> Vec<Survivor> {
        self.found.iter().map(|one| one.shown.clone()).collect()
    }
}

/// A process that was left running, as it was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftProcess {
    pub process: Process,
    /// The processes above it.
    pub above: Vec<Process>,
    pub shown: Survivor,
}

/// A process that outlived its session.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Survivor {
    pub pid: u32,
    /// Its command line, shortened.
    pub command: String,
    /// When it started.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// Whether `tenure end --kill-survivors` ends it: it began in the session's last life, and its environment names
    /// that life or its run.
    #[serde(default)]
    pub can_end: bool,
}

#[cfg(test)]
impl Process {
    pub(crate) fn sample(pid: u32) -> Self {
        let boot = BootId {
            id: "b".into(),
            private: false,
        };
        let start = StartTicks {
            ticks: 1,
            shifted: false,
        };
        let host = HostId::new("h");
        Self {
            host,
            boot,
            pid_ns: 1,
            pid,
            start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(ticks: u64) -> StartTicks {
        StartTicks {
            ticks,
            shifted: false,
        }
    }

    fn leader(pid: u32, start: u64) -> Leader {
        Leader {
            pid,
            start: ticks(start),
        }
    }

    /// A session whose second life, pid 20, began at 200; the first, pid 10, at 100.
    fn signs() -> Signs {
        Signs {
            tokens: vec!["s.2".into(), "s.1".into()],
            run: Some("r-1".into()),
            natives: vec![("CODEX_THREAD_ID", "t1".into())],
            leaders: vec![leader(20, 200), leader(10, 100)],
            agents_too: false,
        }
    }

    #[test]
    fn only_what_began_in_the_last_life_and_names_it_may_be_ended() {
        // The variable, the start, the process session, and what connects the process.
        let rows = [
            (Some(("TENURE_SESSION", "s.2")), 200, 7, Some(Mark::Own)),
            (Some(("TENURE_RUN", "r-1")), 201, 20, Some(Mark::Own)),
            // It has the variable, but is older than that life.
            (Some(("TENURE_SESSION", "s.2")), 199, 7, Some(Mark::Other)),
            (Some(("TENURE_RUN", "r-1")), 150, 7, Some(Mark::Other)),
            // It inherited the variable of the life before.
            (Some(("TENURE_SESSION", "s.1")), 250, 7, Some(Mark::Other)),
            (Some(("TENURE_SESSION", "s.1")), 150, 7, Some(Mark::Other)),
            (Some(("CODEX_THREAD_ID", "t1")), 250, 7, Some(Mark::Other)),
            (None, 250, 20, Some(Mark::Other)),
            (None, 150, 10, Some(Mark::Other)),
            // The process session has the number of a life that began later.
            (None, 150, 20, None),
            (None, 250, 7, None),
            (Some(("TENURE_SESSION", "s.3")), 250, 7, None),
            (Some(("TENURE_RUN", "r-2")), 250, 7, None),
            (Some(("TENURE_SESSION", "s.2")), 99, 10, None),
        ];
        for (variable, start, session, expected) in rows {
            let has = |name: &str, value: &str| variable == Some((name, value));
            let found = signs().mark(ticks(start), session, Ok::<_, ()>(has));
            assert_eq!(found, Ok(expected), "{variable:?} {start} {session}");
        }
    }

    #[test]
    fn an_environment_that_cannot_be_read_is_not_taken_for_one_that_names_the_session() {
        let unread = || Err::<fn(&str, &str) -> bool, _>("no");
        assert_eq!(
            signs().mark(ticks(250), 20, unread()),
            Ok(Some(Mark::Other))
        );
        assert_eq!(signs().mark(ticks(250), 7, unread()), Err("no"));
        assert_eq!(signs().mark(ticks(99), 7, unread()), Ok(None));
    }

    #[test]
    fn the_variable_of_a_run_counts_from_its_start_on() {
        let signs = Signs::of_run("r-1", ticks(100));
        for (start, run, expected) in [
            (100, "r-1", Some(Mark::Own)),
            (99, "r-1", None),
            (100, "r-2", None),
        ] {
            let has = |name: &str, value: &str| name == RUN_VARIABLE && value == run;
            let found = signs.mark(ticks(start), 7, Ok::<_, ()>(has));
            assert_eq!(found, Ok(expected), "{start} {run}");
        }
    }
}

//! Ending one process: first it is asked to, then it is killed.
//!
//! Both go through a descriptor of that very process, which is opened and compared with the record before anything
//! is sent: a pid that another process has by now is never hit.

use std::io;
use std::time::Duration;

use rustix::process::Signal;
use tenure_core::process::Process;
use tenure_host::pidfd::{self, ProcessWatch};
use tenure_service::answer::{Class, Hint, Problem};

/// How long a killed process may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// By what a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// By itself, before anything was sent.
    Itself,
    /// When it was asked to.
    Term,
    /// It did not, so it was killed.
    Kill,
}

impl EndedBy {
    /// The name of the signal, if one was needed.
    pub fn signal(self) -> Option<&'static str> {
        match self {
            EndedBy::Itself => None,
            EndedBy::Term => Some("TERM"),
            EndedBy::Kill => Some("KILL"),
        }
    }
}

/// Ends a process; it has `grace` to end by itself.
pub fn end(process: &Process, grace: Duration) -> Result<EndedBy, Problem> {
    let Some(watch) = ProcessWatch::open(process) else {
        return if pidfd::is_gone(process) {
            Ok(EndedBy::Itself)
        } else {
            Err(failed(process, &io::Error::other("it cannot be watched")))
        };
    };
    for (signal, patience, ended) in [
        (Signal::TERM, grace, EndedBy::Term),
        (Signal::KILL, GONE_WITHIN, EndedBy::Kill),
    ] {
        let sent = watch.signal(signal).and_then(|()| watch.wait(patience));
        match sent {
            Ok(true) => return Ok(ended),
            Ok(false) => {}
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                return Ok(EndedBy::Itself);
            }
            Err(error) => return Err(failed(process, &error)),
        }
    }
    let stuck = io::Error::other("it is still there after SIGKILL");
    Err(failed(process, &stuck))
}

fn failed(process: &Process, error: &io::Error) -> Problem {
    let message = format!("cannot end pid {}: {error}", process.pid);
    let hint = Hint::step(format!(
        "run `ps -o pid,stat,user,args -p {}` to inspect it",
        process.pid
    ));
    Problem::new(Class::Internal, "not_killed", message, hint)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use tenure_core::id::HostId;
    use tenure_core::world::World;
    use tenure_host::machine::Machine;
    use tenure_host::process::identify;

    use super::*;

    /// A process that lives but cannot be watched: its record is of a pid namespace that is out of sight here.
    #[test]
    fn a_process_that_cannot_be_watched_did_not_end_by_itself() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let machine = Machine::new(HostId::new("test")).unwrap();
        let process = identify(child.id(), machine.observer()).unwrap();
        let out_of_sight = Process {
            pid_ns: process.pid_ns + 1,
            ..process.clone()
        };
        let unwatched = end(&out_of_sight, Duration::ZERO);
        let lives = child.try_wait().unwrap().is_none();
        let another = Process {
            start: tenure_core::process::StartTicks {
                ticks: process.start.ticks - 10,
                shifted: false,
            },
            ..process.clone()
        };
        let replaced = end(&another, Duration::ZERO);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lives);
        let error = unwatched.unwrap_err();
        assert_eq!(error.class, Class::Internal);
        assert_eq!(error.kind, "not_killed");
        assert!(replaced.is_ok_and(|ended| ended == EndedBy::Itself));
        assert!(end(&process, Duration::ZERO).is_ok_and(|ended| ended == EndedBy::Itself));
    }
}

//! Ending one process: first it is asked to exit, then it is killed.
//!
//! Both signals go through a descriptor of exactly that process. It is opened and compared with the
//! record before anything is sent, so another process that reuses the pid is never hit.

use std::io;
use std::time::Duration;

use rustix::process::Signal;
use tenure_core::process::Process;
use tenure_host::clock;
use tenure_host::pidfd::{self, ProcessWatch};
use tenure_service::answer::{Class, Hint, Problem};

/// How long a killed process may take to exit.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// By itself, before a signal was sent.
    Itself,
    /// After SIGTERM.
    Term,
    /// It ignored SIGTERM and was killed.
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

/// Ends a process, which has `grace` to exit by itself.
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

/// Ends processes together: all are asked to exit and have `grace`, without which they are killed at once. The answer
/// says how each ended; none if it could not be ended.
pub fn end_all(processes: &[Process], grace: Option<Duration>) -> Vec<Option<EndedBy>> {
    let watched: Vec<_> = processes.iter().map(ProcessWatch::open).collect();
    let is_over = |at: usize| watched[at].is_none() && pidfd::is_gone(&processes[at]);
    let mut ended: Vec<Option<EndedBy>> = (0..processes.len())
        .map(|at| is_over(at).then_some(EndedBy::Itself))
        .collect();
    let asked = grace.map(|grace| (Signal::TERM, grace, EndedBy::Term));
    let killed = (Signal::KILL, GONE_WITHIN, EndedBy::Kill);
    for (signal, patience, by) in asked.into_iter().chain([killed]) {
        for (watch, ended) in paired(&watched, &mut ended) {
            if ended.is_none() && watch.signal(signal).is_err() && is_gone(watch) {
                *ended = Some(EndedBy::Itself);
            }
        }
        let until = clock::instant() + patience;
        for (watch, ended) in paired(&watched, &mut ended) {
            let rest = until.saturating_duration_since(clock::instant());
            if ended.is_none() && watch.wait(rest).is_ok_and(|gone| gone) {
                *ended = Some(by);
            }
        }
    }
    ended
}

/// The descriptors that could be opened, each with what became of its process.
fn paired<'a>(
    watched: &'a [Option<ProcessWatch>],
    ended: &'a mut [Option<EndedBy>],
) -> impl Iterator<Item = (&'a ProcessWatch, &'a mut Option<EndedBy>)> {
    let both = watched.iter().zip(ended);
    both.filter_map(|(watch, ended)| watch.as_ref().zip(Some(ended)))
}

fn is_gone(watch: &ProcessWatch) -> bool {
    watch.wait(Duration::ZERO).is_ok_and(|gone| gone)
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

    /// A live process that cannot be watched, because its record is from a pid namespace that is
    /// not visible here.
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
        let both = [another, out_of_sight];
        let together = end_all(&both, Some(Duration::ZERO));
        let goes_on = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lives && goes_on);
        assert_eq!(together, [Some(EndedBy::Itself), None]);
        let error = unwatched.unwrap_err();
        assert_eq!(error.class, Class::Internal);
        assert_eq!(error.kind, "not_killed");
        assert!(replaced.is_ok_and(|ended| ended == EndedBy::Itself));
        assert!(end(&process, Duration::ZERO).is_ok_and(|ended| ended == EndedBy::Itself));
    }
}

//! Whether a recorded process is still alive: a pure function of the record and what is observed.
//!
//! Owns the only rule by which anything is ever taken from a session without its act. The invariant: `Dead` is
//! a proof, not a guess. Everything that is not established is `Unknown`, and Unknown frees nothing. Age,
//! silence, heartbeats, names and command lines do not appear here at all.
//!
//! The checks have a fixed order, because each makes sense only if the earlier ones did not decide: pids of
//! another kernel or another namespace mean nothing here, and an absent pid is a death only if the right
//! process table was read.
//!
//! *Crash*: nothing is stored here. *Clock jump*: start ticks count from boot and do not move with the wall
//! clock. *Time namespaces*: the offset is removed before ticks come here. Rounding may cost one tick, so ticks
//! are compared with that slack only if an offset was involved.

use std::fmt;
use std::time::Duration;

use crate::process::{Observer, Process, RunState, Sighting};
use crate::time::Span;

/// The verdict on one recorded process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Liveness {
    /// It was observed running.
    Alive,
    /// It is proved dead.
    Dead(Proof),
    Unknown(Doubt),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// The kernel was rebooted since.
    Rebooted,
    Absent {
        pid: u32,
    },
    /// The pid now belongs to a process that started at another time.
    PidReused {
        pid: u32,
        recorded: u64,
        seen: u64,
    },
    /// The pid is now a thread's number, so no process has it.
    Thread {
        pid: u32,
        /// The process that the thread belongs to.
        of: u32,
    },
    /// It has exited and waits to be reaped.
    Zombie {
        pid: u32,
    },
    /// It was proved and recorded before.
    Recorded(String),
}

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    OtherHost,
    /// Its boot id, or ours, belongs to a container and cannot be compared.
    PrivateBoot,
    OtherNamespace,
    /// /proc here shows another namespace.
    ForeignProc,
    Unreadable(String),
    /// The session's process was never identified.
    Unverified,
    /// It is not visible from here, but the keeper of its machine watches it and renewed its row lately.
    Watched {
        /// The name of the machine.
        host: String,
        age: Duration,
    },
    /// The same, but the keeper has been silent for longer than its lease.
    HostSilent {
        host: String,
        age: Duration,
    },
}

impl Doubt {
    /// Whether a keeper reports the process as running.
    pub fn is_reported_alive(&self) -> bool {
        matches!(self, Doubt::Watched { .. })
    }
}

/// What the record alone settles for this observer, before anything is observed.
///
/// `None` means that the verdict depends on a [`Sighting`].
pub fn settled_unseen(process: &Process, observer: &Observer) -> Option<Liveness> {
    if observer.shared_store && process.host != observer.host {
        return Some(Liveness::Unknown(Doubt::OtherHost));
    }
    if process.boot != observer.boot {
        return Some(if process.boot.private || observer.boot.private {
            Liveness::Unknown(Doubt::PrivateBoot)
        } else {
            Liveness::Dead(Proof::Rebooted)
        });
    }
    if process.pid_ns != observer.pid_ns {
        return Some(Liveness::Unknown(Doubt::OtherNamespace));
    }
    if !observer.proc_is_own {
        return Some(Liveness::Unknown(Doubt::ForeignProc));
    }
    None
}

/// Whether this observer would see the process among its own if it were running.
pub fn is_observable(process: &Process, observer: &Observer) -> bool {
    settled_unseen(process, observer).is_none()
}

/// Judges a recorded process by what was observed of its pid.
pub fn judge(process: &Process, observer: &Observer, sighting: &Sighting) -> Liveness {
    if let Some(settled) = settled_unseen(process, observer) {
        return settled;
    }
    let pid = process.pid;
    match sighting {
        Sighting::Absent => Liveness::Dead(Proof::Absent { pid }),
        Sighting::Thread { of } => Liveness::Dead(Proof::Thread { pid, of: *of }),
        Sighting::Unreadable(why) => Liveness::Unknown(Doubt::Unreadable(why.clone())),
        Sighting::Present { start, .. } if !start.same_start(process.start) => {
            Liveness::Dead(Proof::PidReused {
                pid,
                recorded: process.start.ticks,
                seen: start.ticks,
            })
        }
        Sighting::Present {
            state: RunState::Zombie,
            threads: 0 | 1,
            ..
        } => Liveness::Dead(Proof::Zombie { pid }),
        Sighting::Present { .. } => Liveness::Alive,
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proof::Rebooted => f.write_str("the machine has rebooted since"),
            Proof::Absent { pid } => write!(f, "pid {pid} is gone"),
            Proof::PidReused {
                pid,
                recorded,
                seen,
            } => {
                write!(
                    f,
                    "pid {pid} belongs to another process now (started at tick {seen}, not {recorded})"
                )
            }
            Proof::Thread { pid, of } => {
                write!(f, "pid {pid} is gone; it is now a thread of process {of}")
            }
            Proof::Zombie { pid } => write!(f, "pid {pid} has exited"),
            Proof::Recorded(how) => f.write_str(how),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::OtherHost => f.write_str("it runs on another machine"),
            Doubt::PrivateBoot => f.write_str("it runs in a container with a boot id of its own"),
            Doubt::OtherNamespace => f.write_str("it runs in another pid namespace"),
            Doubt::ForeignProc => f.write_str("/proc shows a different pid namespace"),
            Doubt::Unreadable(why) => write!(f, "its process could not be checked: {why}"),
            Doubt::Unverified => f.write_str("its process was never identified"),
            Doubt::Watched { host, age } => {
                write!(f, "it runs on {host}, which reported it {} ago", Span(*age))
            }
            Doubt::HostSilent { host, age } => {
                write!(
                    f,
                    "it runs on {host}, which has been silent for {}",
                    Span(*age)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::HostId;
    use crate::process::{BootId, StartTicks};

    fn boot(id: &str, private: bool) -> BootId {
        BootId {
            id: id.into(),
            private,
        }
    }

    fn recorded() -> Process {
        Process {
            host: HostId::new("h"),
            boot: boot("b", false),
            pid_ns: 1,
            pid: 42,
            start: StartTicks {
                ticks: 1000,
                shifted: false,
            },
        }
    }

    fn here() -> Observer {
        Observer {
            host: HostId::new("h"),
            boot: boot("b", false),
            pid_ns: 1,
            proc_is_own: true,
            shared_store: false,
        }
    }

    fn present(ticks: u64, state: RunState, threads: u32) -> Sighting {
        Sighting::Present {
            start: StartTicks {
                ticks,
                shifted: false,
            },
            state,
            threads,
        }
    }

    #[test]
    fn f_l01_a_reused_pid_is_dead() {
        let seen = present(2000, RunState::Going, 1);
        assert!(matches!(
            judge(&recorded(), &here(), &seen),
            Liveness::Dead(Proof::PidReused { .. })
        ));
    }

    #[test]
    fn f_l02_pid_1_of_another_container_is_not_mistaken() {
        let predecessor = Process {
            pid: 1,
            ..recorded()
        };
        let same_namespace = judge(&predecessor, &here(), &present(2000, RunState::Going, 1));
        assert!(matches!(same_namespace, Liveness::Dead(_)));
        let other = Observer {
            pid_ns: 2,
            ..here()
        };
        let same_ticks = present(1000, RunState::Going, 1);
        assert_eq!(
            judge(&predecessor, &other, &same_ticks),
            Liveness::Unknown(Doubt::OtherNamespace)
        );
    }

    #[test]
    fn f_l03_another_boot_is_dead_even_when_ticks_repeat() {
        let later = Observer {
            boot: boot("b2", false),
            ..here()
        };
        let seen = present(1000, RunState::Going, 1);
        assert_eq!(
            judge(&recorded(), &later, &seen),
            Liveness::Dead(Proof::Rebooted)
        );
    }

    #[test]
    fn f_l04_another_namespace_is_unknown_even_when_the_pid_is_absent() {
        let other = Observer {
            pid_ns: 2,
            ..here()
        };
        assert_eq!(
            judge(&recorded(), &other, &Sighting::Absent),
            Liveness::Unknown(Doubt::OtherNamespace)
        );
    }

    #[test]
    fn f_l05_a_zombie_is_dead() {
        assert!(matches!(
            judge(&recorded(), &here(), &present(1000, RunState::Zombie, 1)),
            Liveness::Dead(_)
        ));
    }

    #[test]
    fn f_l06_f_l08_what_cannot_be_read_is_unknown() {
        for why in [
            "Permission denied",
            "Too many open files",
            "Input/output error",
        ] {
            let seen = Sighting::Unreadable(why.into());
            assert!(matches!(
                judge(&recorded(), &here(), &seen),
                Liveness::Unknown(Doubt::Unreadable(_))
            ));
        }
    }

    #[test]
    fn f_l01_a_pid_that_is_a_thread_now_is_dead() {
        let seen = Sighting::Thread { of: 7 };
        let dead = Liveness::Dead(Proof::Thread { pid: 42, of: 7 });
        assert_eq!(judge(&recorded(), &here(), &seen), dead);
        let other = Observer {
            pid_ns: 2,
            ..here()
        };
        assert_eq!(
            judge(&recorded(), &other, &seen),
            Liveness::Unknown(Doubt::OtherNamespace)
        );
    }

    #[test]
    fn f_l10_a_stopped_process_is_alive() {
        assert_eq!(
            judge(&recorded(), &here(), &present(1000, RunState::Stopped, 1)),
            Liveness::Alive
        );
    }

    #[test]
    fn f_l15_one_tick_of_slack_only_where_an_offset_was_removed() {
        let mut process = recorded();
        assert!(matches!(
            judge(&process, &here(), &present(1001, RunState::Going, 1)),
            Liveness::Dead(_)
        ));
        process.start.shifted = true;
        assert_eq!(
            judge(&process, &here(), &present(1001, RunState::Going, 1)),
            Liveness::Alive
        );
        assert!(matches!(
            judge(&process, &here(), &present(1002, RunState::Going, 1)),
            Liveness::Dead(_)
        ));
    }

    #[test]
    fn f_l17_a_zombie_leader_with_living_threads_is_alive() {
        assert_eq!(
            judge(&recorded(), &here(), &present(1000, RunState::Zombie, 3)),
            Liveness::Alive
        );
    }

    #[test]
    fn f_l18_a_foreign_proc_proves_nothing() {
        let blind = Observer {
            proc_is_own: false,
            ..here()
        };
        assert_eq!(
            judge(&recorded(), &blind, &Sighting::Absent),
            Liveness::Unknown(Doubt::ForeignProc)
        );
    }

    #[test]
    fn f_l19_on_a_shared_store_another_host_proves_nothing() {
        let other = Observer {
            host: HostId::new("h2"),
            boot: boot("b2", false),
            shared_store: true,
            ..here()
        };
        assert_eq!(
            judge(&recorded(), &other, &Sighting::Absent),
            Liveness::Unknown(Doubt::OtherHost)
        );
    }

    #[test]
    fn f_l20_a_private_boot_id_proves_nothing() {
        let container = Observer {
            boot: boot("c", true),
            ..here()
        };
        assert_eq!(
            judge(&recorded(), &container, &Sighting::Absent),
            Liveness::Unknown(Doubt::PrivateBoot)
        );
        let from_container = Process {
            boot: boot("c", true),
            ..recorded()
        };
        assert_eq!(
            judge(&from_container, &here(), &Sighting::Absent),
            Liveness::Unknown(Doubt::PrivateBoot)
        );
    }
}

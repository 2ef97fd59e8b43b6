//! Events that say nothing new, answered by the keeper.
//!
//! Most events of an agent only say that it is still at work. When the store has taken in such an event and had nothing to
//! say to it, the hook tells the keeper that it is *settled*. The same event of the same process is then answered by the
//! keeper until a beat is over, or until the process says anything else. So at most one event of a session in a beat
//! reaches the store for nothing, and a notice from another machine waits for one beat at most; a tool that writes always
//! reaches the store. That the session lives is the keeper's own business.
//!
//! Hooks run side by side. A hook gets a ticket before it asks the store, and settles with it; if the process said
//! something else meanwhile, the ticket is worth nothing.
//!
//! *Crash*: a new keeper knows nothing, and every event reaches the store. *Clock jump*: the monotonic clock.

use std::time::{Duration, Instant};

use tenure_core::process::Process;
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_service::Repeat;

use super::ask::{ANSWERS_WITHIN, connect};
use super::files::KeeperFiles;
use super::wire::{Ask, Response, receive, send};
use crate::store_place::StorePlace;

/// How many different events of one process are known at once.
const MOST: usize = 16;
/// How many processes are known at once; the one that came first is forgotten first.
const MOST_PROCESSES: usize = 1024;

/// What a keeper knows about the events of the processes here.
#[derive(Debug, Default)]
pub struct Beats {
    known: Vec<Known>,
    tickets: u64,
}

#[derive(Debug)]
struct Known {
    process: Process,
    /// What the process said that it is doing.
    doing: Option<String>,
    ticket: u64,
    settled: Vec<(String, Instant)>,
}

/// What the keeper says to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeatAnswer {
    /// The store has it, and nothing is to be said.
    Settled,
    /// The store has to be asked; the ticket settles it.
    Ask { ticket: u64 },
}

impl Beats {
    /// Takes an event in; none stands for one that says something new.
    pub fn handle_event(
        &mut self,
        process: &Process,
        event: Option<&Repeat>,
        fresh_since: Instant,
    ) -> BeatAnswer {
        self.tickets += 1;
        let fresh = Known {
            process: process.clone(),
            doing: event.and_then(|event| event.doing.clone()),
            ticket: self.tickets,
            settled: Vec::new(),
        };
        let at = self
            .known
            .iter()
            .position(|one| one.process.same_as(process));
        let Some(known) = at.and_then(|at| self.known.get_mut(at)) else {
            let ticket = fresh.ticket;
            if self.known.len() >= MOST_PROCESSES {
                self.known.remove(0);
            }
            self.known.push(fresh);
            return BeatAnswer::Ask { ticket };
        };
        let says_other = |event: &&Repeat| event.doing.is_some() && event.doing != known.doing;
        let Some(event) = event.filter(|event| !says_other(event)) else {
            *known = fresh;
            return BeatAnswer::Ask {
                ticket: known.ticket,
            };
        };
        known.settled.retain(|(_, at)| *at >= fresh_since);
        if known.settled.iter().any(|(says, _)| *says == event.says) {
            return BeatAnswer::Settled;
        }
        BeatAnswer::Ask {
            ticket: known.ticket,
        }
    }

    /// The store has taken in an event, and had nothing to say.
    pub fn settle(&mut self, process: &Process, event: &Repeat, ticket: u64, now: Instant) {
        let known = self.known.iter_mut();
        let known = known.filter(|one| one.process.same_as(process) && one.ticket == ticket);
        for known in known {
            known.settled.retain(|(says, _)| *says != event.says);
            if known.settled.len() < MOST {
                known.settled.push((event.says.clone(), now));
            }
        }
    }
}

/// A hook's way to the keeper of its machine.
pub struct BeatLine {
    files: KeeperFiles,
    process: Process,
    event: Option<Repeat>,
    ticket: Option<u64>,
}

impl BeatLine {
    /// Asks the keeper about an event. Settled means that nothing more has to be done.
    pub fn ask(
        place: &StorePlace,
        machine: &Machine,
        process: &Process,
        event: Option<Repeat>,
        within: Duration,
    ) -> (Self, bool) {
        let mut line = Self {
            files: KeeperFiles::of(place.dir(), &place.shown(), machine.observer()),
            process: process.clone(),
            event,
            ticket: None,
        };
        let ask = Ask::Beat {
            process: line.process.clone(),
            event: line.event.clone(),
        };
        let answer = line.say(ask, within);
        line.ticket = match answer {
            Some(Response::Ticket(ticket)) => Some(ticket),
            _ => None,
        };
        let is_settled = matches!(answer, Some(Response::Settled));
        (line, is_settled)
    }

    /// Tells the keeper that the store has the event, and had nothing to say.
    pub fn settle(self) {
        let (Some(event), Some(ticket)) = (self.event.clone(), self.ticket) else {
            return;
        };
        let process = self.process.clone();
        let ask = Ask::Settle {
            process,
            event,
            ticket,
        };
        if self.say(ask, ANSWERS_WITHIN).is_none() {
            // The store is asked again next time.
        }
    }

    fn say(&self, ask: Ask, within: Duration) -> Option<Response> {
        let stream = connect(&self.files).ok()?;
        send(&stream, ask, within).ok()?;
        receive(&stream, within).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::id::HostId;
    use tenure_core::process::{BootId, StartTicks};

    fn process() -> Process {
        Process {
            host: HostId::new("a"),
            boot: BootId {
                id: "b".to_owned(),
                private: false,
            },
            pid_ns: 1,
            pid: 2,
            start: StartTicks::EARLIEST,
        }
    }

    fn event(doing: &str, says: &str) -> Repeat {
        Repeat {
            doing: Some(doing.to_owned()),
            says: says.to_owned(),
        }
    }

    fn ticket(answer: BeatAnswer) -> u64 {
        match answer {
            BeatAnswer::Ask { ticket } => ticket,
            BeatAnswer::Settled => panic!("settled"),
        }
    }

    #[test]
    fn a_settled_event_is_answered_until_the_process_says_something_else() {
        let now = tenure_host::clock::instant();
        let mut beats = Beats::default();
        let (busy, one) = (event("busy", "a"), process());
        let asked = ticket(beats.handle_event(&one, Some(&busy), now));
        assert_ne!(
            beats.handle_event(&one, Some(&busy), now),
            BeatAnswer::Settled
        );
        beats.settle(&one, &busy, asked, now);
        assert_eq!(
            beats.handle_event(&one, Some(&busy), now),
            BeatAnswer::Settled
        );
        assert_ne!(
            beats.handle_event(&one, Some(&event("busy", "b")), now),
            BeatAnswer::Settled
        );
        assert_eq!(
            beats.handle_event(&one, Some(&busy), now),
            BeatAnswer::Settled
        );
        // Something new, or another activity, ends it.
        beats.handle_event(&one, None, now);
        assert_ne!(
            beats.handle_event(&one, Some(&busy), now),
            BeatAnswer::Settled
        );
    }

    #[test]
    fn a_settled_event_is_good_for_a_beat() {
        let now = tenure_host::clock::instant();
        let later = now + Duration::from_secs(1);
        let mut beats = Beats::default();
        let (busy, one) = (event("busy", "a"), process());
        let asked = ticket(beats.handle_event(&one, Some(&busy), now));
        beats.settle(&one, &busy, asked, now);
        assert_ne!(
            beats.handle_event(&one, Some(&busy), later),
            BeatAnswer::Settled
        );
    }

    #[test]
    fn a_late_settlement_does_not_hide_what_was_said_since() {
        let now = tenure_host::clock::instant();
        let mut beats = Beats::default();
        let (busy, one) = (event("busy", "a"), process());
        let asked = ticket(beats.handle_event(&one, Some(&busy), now));
        beats.handle_event(&one, Some(&event("waiting", "c")), now);
        beats.settle(&one, &busy, asked, now);
        assert_ne!(
            beats.handle_event(&one, Some(&busy), now),
            BeatAnswer::Settled
        );
    }
}

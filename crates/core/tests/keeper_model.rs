//! One key, the keeper of the host that holds it, a claimer on another host and that host's keeper, one store: every
//! schedule up to a horizon, with the link cut, replies lost, transactions that outlive their client and a server
//! clock that jumps.
//!
//! Both sides use the rules of `tenure_core::keeper`; the steps are those of the store's transactions, one for each
//! lock and each statement. What the design relies on can be taken out ([`Design`]), and each must be missed.

#![allow(clippy::print_stdout, reason = "how much was checked is shown")]

use std::time::Duration;

use stateright::{Checker, HasDiscoveries, Model, Property};
use tenure_core::id::Epoch;
use tenure_core::keeper::{BootTime, GuardQuestion, Renewal, Terms, from_memory, is_told};

/// The protections; a test takes one out at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Design {
    /// The judge locks the host's row and judges again before it grants.
    row_lock: bool,
    /// The holds are listed by a statement of their own, after the row is locked.
    second_statement: bool,
    margin: bool,
    /// A takeover counts as told only once the keeper had an answer from after it.
    acknowledged: bool,
    /// The keeper knows what sessions of its host gave up.
    given_up: bool,
    /// The store's time advances by two beats at most when its clock jumps.
    clamp: bool,
}

const AS_DESIGNED: Design = Design {
    row_lock: true,
    second_statement: true,
    margin: true,
    acknowledged: true,
    given_up: true,
    clamp: true,
};

/// How far the states are explored. Times are in beats.
#[derive(Debug, Clone, Copy)]
struct Extent {
    lease: i16,
    lock_delay: i16,
    horizon: i16,
    jumps: u8,
    cuts: u8,
    /// Whether a person takes the key over.
    takes_over: bool,
    /// Whether the session gives the key up.
    gives_up: bool,
    /// Whether transactions outlive the keeper's patience.
    abandons: bool,
}

#[derive(Debug, Clone, Copy)]
struct TwoHosts {
    design: Design,
    extent: Extent,
}

/// A renewal at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct InFlight {
    /// Read by the keeper before it sent it.
    began: i16,
    /// The store time of the newest renewal that the keeper reported as answered.
    acknowledged: i16,
    step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    /// The statement has begun: what it reads is as of now. It may wait for the row's lock.
    Waiting { snapshot: Option<u8> },
    /// It has the lock; the row has its new time.
    Locked { seen_at: i16, snapshot: Option<u8> },
    /// The holds are listed.
    Listed { seen_at: i16, list: Option<u8> },
    /// Committed; the answer is on its way.
    Committed { seen_at: i16, list: Option<u8> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Memory {
    began: i16,
    list: Option<u8>,
    seen_at: i16,
    answered_at: i16,
    /// What was acknowledged before.
    acknowledged: i16,
}

/// Who has the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Free,
    /// The session whose keeper is modelled.
    Here,
    /// A person on the other host, by takeover.
    Person,
    /// An agent on the other host.
    There,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// Real time, which is also the boot clock of the machines.
    time: i16,
    /// What the server's clock is off by.
    skew: i16,
    /// The row of the store's clock.
    last: i16,
    off: i16,
    jumps: u8,
    cuts: u8,
    is_cut: bool,
    /// The row of the holder's host.
    seen_at: i16,
    acknowledged: i16,
    holder: Holder,
    epoch: u8,
    taken_over_at: Option<i16>,
    /// A claimer that judged the host silent without a lock.
    judged: bool,
    renewal: Option<InFlight>,
    /// A renewal that its keeper gave up on, while the server still works at it.
    abandoned: Option<InFlight>,
    memory: Option<Memory>,
    /// The first epoch was given up, known to its host and not yet to the store.
    spooled: bool,
    /// The same, whether or not the store knows it.
    given_up: bool,
    /// When memory last permitted a write at the first epoch.
    yes_at: Option<i16>,
    /// Whether the key was granted to another agent too early after such a yes.
    broken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Action {
    Tick,
    Jump(i16),
    Cut,
    Mend,
    /// The other host's keeper beats, which moves the store's clock.
    OtherBeat,
    Renew,
    Abandon,
    /// The server takes the renewal one step further.
    Serve,
    ServeAbandoned,
    Answer,
    GiveUp,
    SendGivenUp,
    TakeOver,
    PersonReleases,
    Judge,
    Grant,
}

/// The epoch that the session under test was granted; every later one belongs to others.
const FIRST: u8 = 1;
const BEAT: i16 = 1;

fn span(beats: i16) -> Duration {
    Duration::from_secs(u64::try_from(beats).unwrap_or(0))
}

/// The boot clock, which did not begin with the model.
fn boot(time: i16) -> BootTime {
    BootTime(span(time + 100))
}

impl TwoHosts {
    fn terms(&self) -> Terms {
        Terms {
            host_lease: span(self.extent.lease),
            lock_delay: span(self.extent.lock_delay),
        }
    }

    fn now(&self, state: &State) -> i16 {
        let clock = state.time + state.skew + state.off;
        if self.design.clamp {
            clock.clamp(state.last, state.last + 2 * BEAT)
        } else {
            clock
        }
    }

    fn move_clock(&self, state: &mut State) {
        let now = self.now(state);
        if now > state.last {
            state.last = now;
            state.off = now - state.time - state.skew;
        }
    }

    fn is_over(&self, state: &State) -> bool {
        self.terms().is_over(span(self.now(state) - state.seen_at))
    }

    /// Whether memory permits a write at the first epoch.
    fn says_yes(&self, state: &State) -> bool {
        let Some(memory) = state.memory else {
            return false;
        };
        let mut terms = self.terms();
        if !self.design.margin {
            terms.host_lease = Duration::MAX / 8;
        }
        let renewal = Renewal {
            began: boot(memory.began),
            listed: memory.list.map(|epoch| Epoch(u64::from(epoch))),
        };
        let asked = GuardQuestion {
            epoch: Epoch(u64::from(FIRST)),
            given_up: self.design.given_up && state.given_up,
        };
        from_memory(&terms, Some(&renewal), &asked, boot(state.time)).is_ok()
    }

    /// The newest renewal that the keeper reports as answered.
    fn acknowledges(&self, state: &State) -> i16 {
        state.memory.map_or(0, |memory| {
            let for_long = span(state.time - memory.answered_at);
            if self.terms().is_acknowledged(for_long) {
                memory.seen_at
            } else {
                memory.acknowledged
            }
        })
    }

    /// Whether an agent may be given the key now, as far as the rows tell.
    fn is_free_for_agents(&self, state: &State) -> bool {
        match state.holder {
            Holder::There | Holder::Person => false,
            Holder::Here => self.is_over(state),
            Holder::Free => {
                let heard = if self.design.acknowledged {
                    state.acknowledged
                } else {
                    state.seen_at
                };
                let is_told = |at: i16| is_told(&heard, &at) || self.is_over(state);
                state.taken_over_at.is_none_or(is_told)
            }
        }
    }

    /// Whether the judge has to consult the host's row.
    fn asks_host(state: &State) -> bool {
        state.holder == Holder::Here || state.taken_over_at.is_some()
    }

    fn is_row_locked(state: &State) -> bool {
        let locks =
            |flight: &InFlight| matches!(flight.step, Step::Locked { .. } | Step::Listed { .. });
        let all = [&state.renewal, &state.abandoned];
        all.into_iter().flatten().any(locks)
    }

    fn listed(state: &State) -> Option<u8> {
        (state.holder == Holder::Here).then_some(state.epoch)
    }

    /// The next step of a renewal at the server; none if it waits.
    fn served(&self, state: &mut State, flight: InFlight) -> Option<InFlight> {
        let step = match flight.step {
            Step::Waiting { .. } if Self::is_row_locked(state) => return None,
            Step::Waiting { snapshot } => Step::Locked {
                seen_at: self.now(state),
                snapshot,
            },
            Step::Locked { seen_at, snapshot } => Step::Listed {
                seen_at,
                list: if self.design.second_statement {
                    Self::listed(state)
                } else {
                    snapshot
                },
            },
            Step::Listed { seen_at, list } => {
                state.seen_at = seen_at;
                state.acknowledged = state.acknowledged.max(flight.acknowledged);
                self.move_clock(state);
                Step::Committed { seen_at, list }
            }
            Step::Committed { .. } => return None,
        };
        Some(InFlight { step, ..flight })
    }

    fn grant(&self, state: &mut State) {
        let is_early = |at: i16| state.time < at + self.extent.lock_delay;
        let permitted = self.says_yes(state) || state.yes_at.is_some_and(is_early);
        // A session that gave the key up asked for it to be given away at once.
        state.broken |= if state.given_up {
            self.says_yes(state)
        } else {
            permitted
        };
        state.holder = Holder::There;
        state.epoch += 1;
        state.taken_over_at = None;
    }

    /// Forgets what makes no difference any more, so that states that differ only in it are one.
    fn forget(&self, state: &mut State) {
        let is_past = |at: i16| at + self.extent.lock_delay <= state.time;
        state.yes_at = state.yes_at.filter(|at| !is_past(*at));
        if let Some(memory) = &mut state.memory
            && self.design.margin
            && span(state.time - memory.began) >= self.terms().margin()
        {
            (memory.began, memory.list) = (-self.extent.lease, None);
        }
        if state.holder == Holder::There {
            (state.acknowledged, state.jumps, state.cuts) = (0, 0, 0);
        }
    }

    fn act(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Tick => state.time += 1,
            Action::Jump(by) => {
                state.jumps -= 1;
                state.skew += by;
            }
            Action::Cut => {
                state.cuts -= 1;
                state.is_cut = true;
            }
            Action::Mend => state.is_cut = false,
            Action::OtherBeat => {
                let before = (state.last, state.off);
                self.move_clock(state);
                return (before != (state.last, state.off)).then_some(());
            }
            Action::Renew => {
                let snapshot = Self::listed(state).filter(|_| !self.design.second_statement);
                state.renewal = Some(InFlight {
                    began: state.time,
                    acknowledged: self.acknowledges(state),
                    step: Step::Waiting { snapshot },
                });
            }
            Action::Abandon => state.abandoned = state.renewal.take(),
            Action::Serve => {
                let flight = state.renewal?;
                state.renewal = Some(self.served(state, flight)?);
            }
            Action::ServeAbandoned => {
                let flight = self.served(state, state.abandoned?)?;
                let is_over = matches!(flight.step, Step::Committed { .. });
                state.abandoned = Some(flight).filter(|_| !is_over);
            }
            Action::Answer => {
                let flight = state.renewal.take()?;
                let Step::Committed { seen_at, list } = flight.step else {
                    return None;
                };
                state.memory = Some(Memory {
                    began: flight.began,
                    list,
                    seen_at,
                    answered_at: state.time,
                    acknowledged: self.acknowledges(state),
                });
            }
            Action::GiveUp => {
                state.given_up = true;
                state.spooled = true;
            }
            Action::SendGivenUp => {
                state.spooled = false;
                if state.holder == Holder::Here {
                    state.holder = Holder::Free;
                }
            }
            Action::TakeOver => {
                state.holder = Holder::Person;
                state.epoch += 1;
                state.taken_over_at = Some(self.now(state));
            }
            Action::PersonReleases => state.holder = Holder::Free,
            Action::Judge => state.judged = true,
            Action::Grant => {
                state.judged = false;
                let still = !self.design.row_lock || self.is_free_for_agents(state);
                if still {
                    self.grant(state);
                }
            }
        }
        Some(())
    }
}

impl Model for TwoHosts {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            time: 0,
            skew: 0,
            last: 0,
            off: 0,
            jumps: self.extent.jumps,
            cuts: self.extent.cuts,
            is_cut: false,
            seen_at: 0,
            acknowledged: 0,
            holder: Holder::Here,
            epoch: FIRST,
            taken_over_at: None,
            judged: false,
            renewal: None,
            abandoned: None,
            memory: Some(Memory {
                began: 0,
                list: Some(FIRST),
                seen_at: 0,
                answered_at: 0,
                acknowledged: 0,
            }),
            spooled: false,
            given_up: false,
            yes_at: Some(0),
            broken: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let mut may = |is_possible: bool, action: Action| {
            if is_possible {
                actions.push(action);
            }
        };
        may(state.time < self.extent.horizon, Action::Tick);
        may(state.jumps > 0, Action::Jump(self.extent.lease));
        may(state.jumps > 0, Action::Jump(-self.extent.lease));
        may(!state.is_cut && state.cuts > 0, Action::Cut);
        may(state.is_cut, Action::Mend);
        may(state.holder != Holder::There, Action::OtherBeat);
        may(!state.is_cut && state.renewal.is_none(), Action::Renew);
        may(
            self.extent.abandons
                && state.renewal.is_some()
                && state.abandoned.is_none()
                && state.is_cut,
            Action::Abandon,
        );
        may(state.renewal.is_some(), Action::Serve);
        may(state.abandoned.is_some(), Action::ServeAbandoned);
        may(!state.is_cut && state.renewal.is_some(), Action::Answer);
        may(
            self.extent.gives_up && !state.given_up && state.holder == Holder::Here,
            Action::GiveUp,
        );
        may(!state.is_cut && state.spooled, Action::SendGivenUp);
        may(
            self.extent.takes_over && state.holder == Holder::Here,
            Action::TakeOver,
        );
        may(state.holder == Holder::Person, Action::PersonReleases);
        may(
            !state.judged && self.is_free_for_agents(state),
            Action::Judge,
        );
        let has_lock =
            !self.design.row_lock || !Self::asks_host(state) || !Self::is_row_locked(state);
        may(state.judged && has_lock, Action::Grant);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.act(&mut state, action)?;
        if state.holder != Holder::There && self.says_yes(&state) {
            state.yes_at = Some(state.time);
        }
        self.forget(&mut state);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a yes is good for the lock delay", |_, state: &State| {
                !state.broken
            }),
            Property::always(
                "no yes from memory while another agent holds it",
                |model: &Self, state: &State| {
                    state.holder != Holder::There || !model.says_yes(state)
                },
            ),
            Property::sometimes(GIVEN_AWAY, |_, state: &State| {
                state.holder == Holder::There && !state.given_up && state.epoch == FIRST + 1
            }),
            Property::sometimes(GRANTED_AGAIN, |_, state: &State| {
                state.holder == Holder::There && state.epoch == FIRST + 2
            }),
            Property::sometimes(GRANTED_AFTER, |_, state: &State| {
                state.holder == Holder::There && state.given_up
            }),
            Property::sometimes(PERMITTED, |model: &Self, state: &State| {
                state.is_cut && model.says_yes(state)
            }),
        ]
    }
}

const GIVEN_AWAY: &str = "a silent host's hold is given away";
const GRANTED_AGAIN: &str = "what a person took over and released is granted again";
const GRANTED_AFTER: &str = "what was given up is granted";
const PERMITTED: &str = "memory permits a write while cut";

const UNSAFE: [&str; 2] = [
    "a yes is good for the lock delay",
    "no yes from memory while another agent holds it",
];

/// Small enough for every run of the tests.
const SILENT: Extent = Extent {
    lease: 4,
    lock_delay: 1,
    horizon: 6,
    jumps: 0,
    cuts: 1,
    takes_over: false,
    gives_up: false,
    abandons: true,
};

const TAKEN_OVER: Extent = Extent {
    takes_over: true,
    abandons: false,
    horizon: 5,
    ..SILENT
};

const GIVEN_UP: Extent = Extent {
    gives_up: true,
    abandons: false,
    horizon: 5,
    ..SILENT
};

/// With a jump of the server's clock, for which the fifth of the lease must be two beats.
const JUMPING: Extent = Extent {
    lease: 10,
    horizon: 12,
    jumps: 1,
    abandons: false,
    ..SILENT
};

/// All of it together, but for the jump.
const WHOLE: Extent = Extent {
    takes_over: true,
    gives_up: true,
    ..SILENT
};

fn check(design: Design, extent: Extent) -> (usize, Vec<&'static str>) {
    let checker = TwoHosts { design, extent }
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let found = checker.discoveries();
    (
        checker.unique_state_count(),
        found.into_keys().collect::<Vec<_>>(),
    )
}

/// Holds, and every state that is worth protecting against is reached.
#[track_caller]
fn holds(extent: Extent, reached: &[&str]) {
    let (states, found) = check(AS_DESIGNED, extent);
    println!("{states} states");
    for bad in UNSAFE {
        assert!(!found.contains(&bad), "{bad}");
    }
    for state in reached {
        assert!(found.contains(state), "never: {state}");
    }
}

#[track_caller]
fn misses(design: Design, extent: Extent) {
    let (_, found) = check(design, extent);
    let is_unsafe = UNSAFE.iter().any(|bad| found.contains(bad));
    assert!(is_unsafe, "{design:?} is safe without it: {found:?}");
}

#[test]
fn a_silent_host_loses_its_hold_after_its_last_yes() {
    holds(SILENT, &[GIVEN_AWAY, PERMITTED]);
}

#[test]
fn a_taker_after_a_takeover_waits_until_the_host_is_told() {
    holds(TAKEN_OVER, &[GRANTED_AGAIN, PERMITTED]);
}

#[test]
fn what_was_given_up_is_not_permitted_from_memory() {
    holds(GIVEN_UP, &[GRANTED_AFTER, PERMITTED]);
}

#[test]
#[ignore = "takes minutes; scripts/test --long runs it"]
fn all_of_it_together() {
    let all = [GIVEN_AWAY, GRANTED_AGAIN, GRANTED_AFTER, PERMITTED];
    holds(WHOLE, &all);
}

#[test]
#[ignore = "takes minutes; scripts/test --long runs it"]
fn a_silent_host_whose_store_has_a_clock_that_jumps() {
    holds(JUMPING, &[GIVEN_AWAY, PERMITTED]);
}

#[test]
fn without_the_row_lock_a_yes_meets_another_grant() {
    let design = Design {
        row_lock: false,
        ..AS_DESIGNED
    };
    misses(design, SILENT);
}

#[test]
fn without_the_second_statement_a_yes_meets_another_grant() {
    let design = Design {
        second_statement: false,
        ..AS_DESIGNED
    };
    misses(design, SILENT);
}

#[test]
fn without_the_margin_a_yes_meets_another_grant() {
    let design = Design {
        margin: false,
        ..AS_DESIGNED
    };
    misses(design, SILENT);
}

#[test]
fn without_the_acknowledgement_a_yes_meets_another_grant() {
    let design = Design {
        acknowledged: false,
        ..AS_DESIGNED
    };
    misses(design, TAKEN_OVER);
}

#[test]
fn without_knowing_what_was_given_up_a_yes_meets_another_grant() {
    let design = Design {
        given_up: false,
        ..AS_DESIGNED
    };
    misses(design, GIVEN_UP);
}

#[test]
fn with_a_clock_that_jumps_freely_a_yes_meets_another_grant() {
    let design = Design {
        clamp: false,
        ..AS_DESIGNED
    };
    misses(design, JUMPING);
}

//! From a search that got stuck to the shortest story that shows why.
//!
//! The longest order that was found ends in a state from which no call that must come next can
//! come. The report has the changes since the current holders of the keys got them, and the
//! contradicting calls. Then every read and every unanswered call that the contradiction does not
//! need is dropped, one by one. Leaving those out can only make an order easier to find, so if
//! there is still none, the story is still wrong.

use std::collections::{BTreeSet, HashMap};

use super::history::Call;
use super::model::{Item, KeyStates, Space, Transition};
use super::order::{Puzzle, SearchOutcome, Stuck};
use super::record::{CallAnswer, Op};

/// The shortest story that was found.
#[derive(Debug)]
pub struct Short {
    pub before: KeyStates,
    /// Its calls, as indexes into those of the puzzle.
    pub calls: Vec<usize>,
}

pub fn shorten(puzzle: &Puzzle<'_>, stuck: &Stuck) -> Short {
    let blocked = blocked(puzzle, stuck);
    let keys = keys_of(puzzle, &blocked);
    let (before, mut calls) = since_the_holders(puzzle, stuck, &keys);
    calls.extend(&blocked);
    let mut short = Short { before, calls };
    if !is_stuck(puzzle, &short) {
        short = Short {
            before: stuck.state.clone(),
            calls: stuck.waiting.clone(),
        };
    }
    let mut place = 0;
    while place < short.calls.len() {
        let call = puzzle.calls[short.calls[place]];
        let mut fewer = Short {
            before: short.before.clone(),
            calls: short.calls.clone(),
        };
        fewer.calls.remove(place);
        if is_droppable(call) && is_stuck(puzzle, &fewer) {
            short = fewer;
        } else {
            place += 1;
        }
    }
    short
}

/// The state of the keys for people.
pub fn describe(space: &Space, state: &KeyStates, name: &dyn Fn(usize) -> String) -> String {
    let one = |(key, item): (&String, &Item)| {
        let holder = match &item.newest {
            None => "never granted".to_owned(),
            Some(hold) => match hold.end {
                None => format!("held by {} in {}", hold.session, name(hold.life)),
                Some(end) => format!("had by {} in {}, {end:?}", hold.session, name(hold.life)),
            },
        };
        format!("{key}: epoch {}, {holder}", item.epoch)
    };
    let lines: Vec<String> = space.keys.iter().zip(state).map(one).collect();
    lines.join("; ")
}

/// The calls that must come next and cannot: the answered ones, earliest answer first.
fn blocked(puzzle: &Puzzle<'_>, stuck: &Stuck) -> Vec<usize> {
    let mut waiting = stuck.waiting.clone();
    waiting.sort_by_key(|call| {
        (
            puzzle.calls[*call].answer.is_none(),
            puzzle.calls[*call].until,
        )
    });
    waiting
}

fn keys_of(puzzle: &Puzzle<'_>, calls: &[usize]) -> BTreeSet<usize> {
    let space = puzzle.model.space;
    let named = calls.iter().flat_map(|call| match &puzzle.calls[*call].op {
        Op::Claim(claim) => claim.keys.clone(),
        Op::Release { key, .. }
        | Op::Handoff { key, .. }
        | Op::Takeover { key, .. }
        | Op::Guard { key, .. }
        | Op::Recall { key, .. } => vec![key.clone()],
        Op::Register { .. } | Op::End | Op::Renew => Vec::new(),
    });
    let places: BTreeSet<usize> = named.filter_map(|key| space.place(&key)).collect();
    let rivals: Vec<usize> = places
        .iter()
        .flat_map(|place| space.rivals(*place))
        .collect();
    if places.is_empty() {
        return (0..space.keys.len()).collect();
    }
    places.into_iter().chain(rivals).collect()
}

/// The part of the order since the current epochs of these keys began, and the state before it.
fn since_the_holders(
    puzzle: &Puzzle<'_>,
    stuck: &Stuck,
    keys: &BTreeSet<usize>,
) -> (KeyStates, Vec<usize>) {
    let Some(states) = replay(puzzle, &stuck.order) else {
        return (stuck.state.clone(), Vec::new());
    };
    let last_grant = |key: &usize| {
        let now = stuck.state[*key].epoch;
        let granted = states.iter().position(|state| state[*key].epoch == now);
        granted.and_then(|at| at.checked_sub(1))
    };
    let begins = keys.iter().filter_map(last_grant).min();
    let begins = begins.unwrap_or(states.len() - 1);
    let changes = |at: &usize| {
        let (one, other) = (&states[*at], &states[*at + 1]);
        keys.iter().any(|key| one[*key] != other[*key])
    };
    let calls = (begins..stuck.order.len())
        .filter(changes)
        .map(|at| stuck.order[at])
        .collect();
    (states[begins].clone(), calls)
}

/// The states along an order, beginning with the one before all its calls.
fn replay(puzzle: &Puzzle<'_>, order: &[usize]) -> Option<Vec<KeyStates>> {
    let mut states = vec![puzzle.start.clone()];
    for place in order {
        let call = puzzle.calls[*place];
        let state = states.last()?;
        let next = match puzzle.model.step(state, call) {
            Transition::No => return None,
            Transition::Same => state.clone(),
            Transition::To(next) => next.into_iter().next()?,
        };
        states.push(next);
    }
    Some(states)
}

fn is_droppable(call: &Call) -> bool {
    match (&call.op, &call.answer) {
        (_, None) | (Op::Guard { .. }, _) => true,
        (_, Some(CallAnswer::Refused(_))) => true,
        (Op::Claim(_), Some(CallAnswer::Granted { grants })) => {
            grants.iter().all(|grant| grant.already_held)
        }
        _ => false,
    }
}

fn is_stuck(puzzle: &Puzzle<'_>, short: &Short) -> bool {
    let mut calls: Vec<&Call> = short.calls.iter().map(|call| puzzle.calls[*call]).collect();
    calls.sort_by_key(|call| call.asked);
    let smaller = Puzzle {
        model: puzzle.model,
        calls,
        start: short.before.clone(),
        log: &HashMap::new(),
        fits: &|_| true,
        most_tried: 20_000,
    };
    matches!(
        smaller.solve(),
        SearchOutcome::Stuck(Stuck {
            exhausted: true,
            ..
        })
    )
}

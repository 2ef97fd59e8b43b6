//! The model's state of a few keys: epochs, newest holds, and which sessions lost them against
//! their will.

use std::collections::BTreeMap;
use std::rc::Rc;

use tenure_core::key::Key;

use crate::history::Name;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldEnd {
    /// Released, or handed off.
    Given,
    Done,
    End,
    Death,
    Taken,
    /// Ended with its process, or taken from a dead session; which one is not reported.
    Fallen,
}

impl HoldEnd {
    /// Whether it ended without an act of its holder.
    pub fn robs(self) -> bool {
        matches!(self, HoldEnd::Death | HoldEnd::Taken | HoldEnd::Fallen)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hold {
    pub session: Name,
    pub life: usize,
    /// The holder's id for its request.
    pub request: Option<Name>,
    /// How it ended, if it did. A dead process's hold may be open or not; it blocks no one.
    pub end: Option<HoldEnd>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Item {
    pub epoch: u64,
    pub newest: Option<Hold>,
    /// Sessions whose newest hold of it is an older one that ended without their act: its epoch,
    /// and their id for the request.
    robbed: Rc<BTreeMap<Name, (u64, Option<Name>)>>,
}

impl Item {
    /// The open hold.
    pub fn open(&self) -> Option<&Hold> {
        self.newest.as_ref().filter(|hold| hold.end.is_none())
    }

    /// The open hold, if another session has it.
    pub fn open_to_other(&self, me: &str) -> Option<&Hold> {
        self.open().filter(|hold| *hold.session != *me)
    }

    /// Whether this session has an open hold.
    pub fn is_of(&self, me: &str) -> bool {
        self.open().is_some_and(|hold| *hold.session == *me)
    }

    pub fn is_done(&self) -> bool {
        self.newest
            .as_ref()
            .is_some_and(|hold| hold.end == Some(HoldEnd::Done))
    }

    /// The request of a session that lost the key against its will, if others had the key since.
    pub fn lost_by(&self, me: &str) -> Option<&Option<Name>> {
        self.robbed.get(me).map(|(_, request)| request)
    }

    pub fn end(&mut self, by: HoldEnd) {
        if let Some(hold) = &mut self.newest {
            hold.end = Some(by);
        }
    }

    pub fn grant(&mut self, session: Name, life: usize, request: Option<Name>) {
        let previous = self.newest.take();
        let robs = |hold: &Hold| hold.end.is_none_or(HoldEnd::robs) && hold.session != session;
        if let Some(previous) = previous.filter(robs) {
            let row = (self.epoch, previous.request);
            Rc::make_mut(&mut self.robbed).insert(previous.session, row);
        }
        if self.robbed.contains_key(&session) {
            Rc::make_mut(&mut self.robbed).remove(&session);
        }
        self.epoch += 1;
        self.newest = Some(Hold {
            session,
            life,
            request,
            end: None,
        });
    }
}

/// All keys of a space, in order.
pub type KeyStates = Vec<Item>;

/// Keys that are judged together.
#[derive(Debug, Clone)]
pub struct Space {
    /// The keys, in ascending order.
    pub keys: Vec<String>,
    overlaps: Vec<Vec<bool>>,
    includes: Vec<Vec<bool>>,
}

impl Space {
    /// The space of these keys.
    pub fn new(keys: &[&str]) -> Self {
        let mut keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        keys.sort();
        let globs: Vec<_> = keys
            .iter()
            .map(|key| {
                Key::parse(key)
                    .ok()
                    .and_then(|key| key.path().map(|(_, glob)| glob))
            })
            .collect();
        let table = |holds: fn(&tenure_core::glob::Glob, &tenure_core::glob::Glob) -> bool| {
            let row = |one: usize| {
                let cell = |other: usize| match (&globs[one], &globs[other]) {
                    (Some(a), Some(b)) if one != other => holds(a, b),
                    _ => false,
                };
                (0..keys.len()).map(cell).collect()
            };
            (0..keys.len()).map(row).collect::<Vec<Vec<bool>>>()
        };
        let (overlaps, includes) = (table(|a, b| a.overlaps(b)), table(|a, b| a.includes(b)));
        Self {
            overlaps,
            includes,
            keys,
        }
    }

    pub fn place(&self, key: &str) -> Option<usize> {
        self.keys.iter().position(|known| known == key)
    }

    /// The other keys that can match a file that this one matches.
    pub fn rivals(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.keys.len()).filter(move |other| self.overlaps[place][*other])
    }

    /// Whether `one` matches every file that `other` matches, and is a different key.
    pub fn includes(&self, one: usize, other: usize) -> bool {
        self.includes[one][other]
    }

    pub fn fresh(&self) -> KeyStates {
        vec![Item::default(); self.keys.len()]
    }
}

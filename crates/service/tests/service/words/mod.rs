//! The service in command lines: workers on a simulated machine type what people type and get what programs
//! read. These tests check use cases; that the binary parses the same lines is tested end to end.

pub mod answer;
pub mod line;
mod verbs;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use tenure_core::process::Survivors;

use crate::Rig;
use verbs::Said;

/// A machine and its store; clones of it are the same one.
#[derive(Clone)]
pub struct House {
    rig: Rc<RefCell<Rig>>,
    pids: Rc<Cell<u32>>,
    /// The processes above each.
    above: Rc<RefCell<HashMap<u32, Vec<u32>>>>,
}

pub fn house() -> House {
    House {
        rig: Rc::new(RefCell::new(Rig::new())),
        pids: Rc::new(Cell::new(100)),
        above: Rc::default(),
    }
}

impl House {
    /// A worker that looks like a program of this name, without a parent.
    pub fn agent(&self, name: &str) -> Worker {
        self.start(name, &[])
    }

    fn start(&self, name: &str, above: &[u32]) -> Worker {
        let pid = self.pids.get() + 1;
        self.pids.set(pid);
        let world = &self.rig.borrow().world;
        world.looks_like(pid, &format!("/usr/bin/{name}"), &[name]);
        world.process(pid);
        self.above.borrow_mut().insert(pid, above.to_vec());
        Worker {
            house: self.clone(),
            pid,
            inside: false,
        }
    }

    /// The same, in its own pid namespace: it and the others cannot see each other.
    pub fn agent_apart(&self, name: &str) -> Worker {
        Worker {
            inside: true,
            ..self.agent(name)
        }
    }

    /// A process, and those above it.
    fn chain(&self, pid: u32) -> Vec<u32> {
        let above = self.above.borrow().get(&pid).cloned().unwrap_or_default();
        [vec![pid], above].concat()
    }

    pub fn pass(&self, span: Duration) {
        self.rig.borrow().clock.advance(span);
    }

    /// What every dead session is found to have left running from now on.
    pub fn leave_behind(&self, pids: &[u32]) {
        let world = &self.rig.borrow().world;
        let found = pids
            .iter()
            .map(|pid| world.left(*pid, "left behind", false));
        world.leave_behind(Survivors {
            found: found.collect(),
            ..Survivors::default()
        });
    }

    /// An answer to a caller outside any session.
    #[track_caller]
    pub fn tenure(&self, words: &[&str]) -> Said {
        self.agent("sh").tenure(words)
    }
}

/// A process that calls.
pub struct Worker {
    house: House,
    pid: u32,
    inside: bool,
}

impl Worker {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn kill9(&self) {
        self.house.rig.borrow().world.exit(self.pid);
    }

    /// A worker below this one.
    pub fn nest(&self, name: &str) -> Worker {
        self.house.start(name, &self.house.chain(self.pid))
    }

    #[track_caller]
    pub fn tenure(&self, words: &[&str]) -> Said {
        self.tenure_env(&[], words)
    }

    /// A call with TENURE_SESSION in its environment.
    #[track_caller]
    pub fn tenure_env(&self, variables: &[(&str, Option<&str>)], words: &[&str]) -> Said {
        let mut rig = self.house.rig.borrow_mut();
        // No two calls are made at the same time.
        rig.clock.advance(Duration::from_millis(1));
        let mut who = rig.here(&self.house.chain(self.pid));
        if self.inside {
            who.world.observer.pid_ns = 2;
        }
        let mut facts = who.facts();
        for (name, value) in variables {
            assert_eq!(*name, "TENURE_SESSION", "no other is known here");
            facts.session_variable = value.map(str::to_owned);
        }
        verbs::say(&mut rig, &self.house, &who.world, &facts, words)
    }
}

#[test]
#[should_panic(expected = "claim does not read [\"--nota\"]")]
fn a_flag_that_the_verb_does_not_read_is_a_mistake_of_the_test() {
    let house = house();
    let ann = line::session(&house, "ann");
    ann.tenure(&["claim", "wp:1", "--nota", "mine"]);
}

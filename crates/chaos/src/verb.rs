//! Random calls of every verb of claims.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use super::keys::SPACES;
use super::record::{CallAnswer, Claim, Op, monotonic};
use super::say::request_of;
use super::worker::{ChaosWorker, Orders, PEERS};

type AnyError = Box<dyn StdError>;

/// Works until it is time to leave, or until it is killed.
pub fn work(orders: Orders) -> Result<(), AnyError> {
    let (until, may_be_away) = (orders.until, orders.may_be_away());
    // A store that does not answer at the end is nobody's fault.
    let is_over = || may_be_away && monotonic() > until;
    let mut worker = match ChaosWorker::new(orders) {
        Err(_) if is_over() => return Ok(()),
        worker => worker?,
    };
    match worker.play() {
        // It is gone, like one that was killed while it asked.
        Err(_) if worker.lost || is_over() => Ok(()),
        played => played,
    }
}

impl ChaosWorker {
    fn play(&mut self) -> Result<(), AnyError> {
        let worker = self;
        worker.register()?;
        if worker.orders.crowd {
            worker.wait_in_crowd()?;
            return Ok(worker.leave()?);
        }
        while monotonic() < worker.orders.until {
            if worker.orders.line {
                worker.play_line()?;
            } else if worker.orders.silent {
                worker.play_silent()?;
            } else {
                worker.something()?;
            }
            let pause = worker.dice.between(0, 12_000);
            tenure_host::pause::sleep(Duration::from_micros(pause));
        }
        Ok(worker.leave()?)
    }

    pub(super) fn something(&mut self) -> Result<(), AnyError> {
        match self.dice.below(100) {
            0..25 => self.claim_one(),
            25..33 => self.claim_several(),
            33..40 => self.claim_again(),
            40..59 => self.release(),
            59..66 if self.orders.host.is_some() => self.recall_some(),
            59..77 => self.guard(),
            77..84 => self.takeover(),
            84..92 => self.handoff(),
            92..95 => self.renew(),
            95..98 => self.end_and_return(),
            _ => self.reopen(),
        }
    }

    fn any_key(&mut self) -> String {
        let spaces = SPACES.len() + usize::from(!self.places.is_empty());
        let space = self.dice.below(spaces as u64);
        let space = usize::try_from(space).ok().and_then(|at| SPACES.get(at));
        let key = match space {
            Some(keys) => self.dice.pick(keys).map(|key| (*key).to_owned()),
            None => self.dice.pick(&self.places).cloned(),
        };
        key.unwrap_or_default()
    }

    /// A key, preferably one that it believes it holds, with an epoch that it may name.
    fn my_key(&mut self) -> (String, Option<u64>) {
        let held: Vec<(String, u64)> = self.holds.clone().into_iter().collect();
        let past = self.held.clone();
        let known = match self.dice.below(10) {
            0..7 => self.dice.pick(&held).cloned(),
            7..9 => self.dice.pick(&past).cloned(),
            _ => None,
        };
        let Some((key, epoch)) = known else {
            let epoch = self
                .dice
                .percent(10)
                .then(|| self.dice.between(1, 1_000_000));
            return (self.any_key(), epoch);
        };
        (key, self.dice.percent(60).then_some(epoch))
    }

    fn wants(&mut self, keys: Vec<String>, any: bool) -> Claim {
        let request = self
            .dice
            .percent(35)
            .then(|| format!("r{}", self.dice.below(3)));
        Claim {
            keys,
            any,
            request,
            once: self.dice.percent(10),
            reopen: self.dice.percent(50),
            wait: self.dice.percent(15).then(|| self.dice.between(20, 250)),
            quiet: self.dice.percent(10),
        }
    }

    fn claim_one(&mut self) -> Result<(), AnyError> {
        let keys = vec![self.any_key()];
        let any = self.dice.percent(10);
        let claim = self.wants(keys, any);
        self.claim(claim)
    }

    fn claim_several(&mut self) -> Result<(), AnyError> {
        let mut keys: Vec<String> = if self.dice.percent(80) {
            let space = if self.dice.percent(60) {
                SPACES[2]
            } else {
                SPACES[3]
            };
            space.iter().map(|key| (*key).to_owned()).collect()
        } else {
            let all = SPACES.concat().into_iter().map(str::to_owned);
            all.chain(self.places.clone()).collect()
        };
        self.dice.shuffle(&mut keys);
        let count = self.dice.between(2, 3);
        keys.truncate(usize::try_from(count)?);
        let any = self.dice.percent(50);
        let claim = self.wants(keys, any);
        self.claim(claim)
    }

    /// Repeats a claim with the same request id, as a caller whose answer was lost.
    fn claim_again(&mut self) -> Result<(), AnyError> {
        match self.asked.clone() {
            Some(claim) => self.claim(claim),
            None => self.claim_one(),
        }
    }

    pub(super) fn claim(&mut self, claim: Claim) -> Result<(), AnyError> {
        if claim.request.is_some() {
            self.asked = Some(claim.clone());
        }
        let patience = claim.wait.map(Duration::from_millis);
        let answer = match patience {
            None => self.act(&Op::Claim(claim))?,
            Some(patience) => self.ask(Op::Claim(claim.clone()), |worker, act_for| {
                let request = request_of(&claim, act_for);
                worker.wait_in_line(act_for, &request, patience)
            })?,
        };
        self.remember(&answer);
        Ok(())
    }

    fn remember(&mut self, answer: &CallAnswer) {
        if let CallAnswer::Granted { grants } = answer {
            let pairs = grants.iter().map(|grant| (grant.key.clone(), grant.epoch));
            self.holds.extend(pairs);
        }
    }

    /// Records that it no longer holds a key.
    fn forget(&mut self, key: &str) {
        if let Some(pair) = self.holds.remove_entry(key) {
            self.held.push(pair);
        }
        if self.held.len() > 12 {
            self.held.remove(0);
        }
    }

    fn act(&mut self, op: &Op) -> io::Result<CallAnswer> {
        self.ask(op.clone(), |worker, act_for| worker.make(act_for, op))
    }

    /// Makes a call about a key, and forgets the key if it belongs to another session, then or
    /// afterwards.
    pub(super) fn act_on(&mut self, key: &str, op: &Op) -> Result<(), AnyError> {
        let keeps = matches!(op, Op::Guard { .. });
        match self.act(op)? {
            CallAnswer::Refused(why) if why.kind == "already_held" => {}
            CallAnswer::Yes { .. } if keeps => {}
            _ => self.forget(key),
        }
        Ok(())
    }

    fn release(&mut self) -> Result<(), AnyError> {
        let (key, epoch) = self.my_key();
        let done = self.dice.percent(15);
        self.give_back(&key, epoch, done)
    }

    pub(super) fn give_back(
        &mut self,
        key: &str,
        epoch: Option<u64>,
        done: bool,
    ) -> Result<(), AnyError> {
        let op = Op::Release {
            key: key.to_owned(),
            epoch,
            done,
        };
        self.act_on(key, &op)
    }

    fn guard(&mut self) -> Result<(), AnyError> {
        let (key, epoch) = self.my_key();
        let op = Op::Guard {
            key: key.clone(),
            epoch,
        };
        self.act_on(&key, &op)
    }

    fn recall_some(&mut self) -> Result<(), AnyError> {
        let (key, epoch) = self.my_key();
        self.recall(&key, epoch)
    }

    /// Asks what the host remembers, and believes it only if the store agrees.
    pub(super) fn recall(&mut self, key: &str, epoch: Option<u64>) -> Result<(), AnyError> {
        let key = key.to_owned();
        self.act(&Op::Recall { key, epoch })?;
        Ok(())
    }

    fn handoff(&mut self) -> Result<(), AnyError> {
        let (key, epoch) = self.my_key();
        let Some(to) = self.peer()? else {
            return Ok(());
        };
        // The peer may be on the other host, where it is another place.
        if self.places.contains(&key) {
            return Ok(());
        }
        let op = Op::Handoff {
            key: key.clone(),
            to,
            epoch,
        };
        self.act_on(&key, &op)
    }

    /// A session of some worker, current or past, perhaps its own.
    fn peer(&mut self) -> Result<Option<String>, AnyError> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.orders.dir.join(PEERS))? {
            names.push(entry?.path());
        }
        names.sort();
        let Some(path) = self.dice.pick(&names) else {
            return Ok(None);
        };
        // A file that is just being written is empty.
        let name = std::fs::read_to_string(path)?;
        Ok(Some(name).filter(|name| !name.is_empty()))
    }

    fn takeover(&mut self) -> Result<(), AnyError> {
        let key = self.any_key();
        let from = if self.dice.percent(20) {
            self.peer()?
        } else {
            None
        };
        let epoch = self.dice.percent(10).then(|| self.dice.between(1, 50));
        let answer = self.act(&Op::Takeover { key, from, epoch })?;
        self.remember(&answer);
        Ok(())
    }

    fn renew(&mut self) -> Result<(), AnyError> {
        self.act(&Op::Renew)?;
        Ok(())
    }

    fn end_and_return(&mut self) -> Result<(), AnyError> {
        self.act(&Op::End)?;
        let held: Vec<String> = self.holds.keys().cloned().collect();
        for key in held {
            self.forget(&key);
        }
        if self.dice.percent(50) {
            let pause = self.dice.between(0, 50);
            tenure_host::pause::sleep(Duration::from_millis(pause));
        }
        self.register()
    }
}

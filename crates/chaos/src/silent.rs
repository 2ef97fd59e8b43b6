//! What a few workers on a server do: they hold a key in silence, for about as long as the other host waits before it
//! takes it, and then ask whether they still may write. Those that do not get the key ask for it again and again.

use std::error::Error as StdError;
use std::time::Duration;

use super::hosts::Terms;
use super::keys::SILENT;
use super::record::{Claim, Op, monotonic};
use super::worker::ChaosWorker;

type AnyError = Box<dyn StdError>;

impl ChaosWorker {
    pub(super) fn play_silent(&mut self) -> Result<(), AnyError> {
        let held = SILENT
            .iter()
            .find_map(|key| Some(((*key).to_owned(), *self.holds.get(*key)?)));
        match held {
            Some((key, epoch)) => self.hold_silently(&key, epoch),
            None => self.want_silent(),
        }
    }

    fn want_silent(&mut self) -> Result<(), AnyError> {
        let key = self.dice.pick(SILENT).copied().unwrap_or_default();
        // A waiter looks again in the moment in which the lock delay is over.
        let wait = self.dice.percent(75).then_some(2_500);
        self.claim(Claim {
            keys: vec![key.to_owned()],
            wait,
            ..Claim::default()
        })?;
        if self.holds.is_empty() {
            let pause = self.dice.between(0, 12);
            tenure_host::pause::sleep(Duration::from_millis(pause));
        }
        Ok(())
    }

    fn hold_silently(&mut self, key: &str, epoch: u64) -> Result<(), AnyError> {
        let whole = Terms::of_run().at_most() / 1_000_000;
        let nap = match self.dice.below(100) {
            0..40 => self.dice.between(whole - 60, whole + 60),
            40..55 => self.dice.between(whole - 450, whole + 30),
            55..90 => self.dice.between(whole, whole * 3),
            _ => self.dice.between(20, whole / 2),
        };
        // What the host remembers is asked without the store, so this is silence too.
        let end = monotonic() + nap * 1_000_000;
        while monotonic() < end.min(self.orders.until) {
            let left = end.saturating_sub(monotonic()).min(25_000_000);
            tenure_host::pause::sleep(Duration::from_nanos(left));
            self.recall(key, Some(epoch))?;
        }
        if self.dice.percent(85) {
            let (key, epoch) = (key.to_owned(), Some(epoch));
            self.act_on(&key.clone(), &Op::Guard { key, epoch })?;
        }
        if self.dice.percent(15) && self.holds.contains_key(key) {
            self.give_back(key, Some(epoch), false)?;
        }
        Ok(())
    }
}

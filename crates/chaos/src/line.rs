//! What a few workers do with the keys of the line: some hold one key for long, others want it
//! together with another, others wait only for that other one; and some leave processes behind, for
//! which workers that require quiet must wait.

use std::error::Error as StdError;
use std::time::Duration;

use super::keys::{CROWD, LINE};
use super::record::{Claim, monotonic};
use super::worker::ChaosWorker;

type AnyError = Box<dyn StdError>;

impl ChaosWorker {
    pub(super) fn play_line(&mut self) -> Result<(), AnyError> {
        // Claims that it got back because its session had them in another process are not part of
        // the game.
        self.give_all_back()?;
        match self.dice.below(100) {
            0..25 => self.hog(),
            25..45 => self.want_both(),
            45..80 => self.want_one(),
            80..92 => self.leave_noise(),
            _ => self.want_quiet(),
        }
    }

    fn wants_in_line(&mut self, keys: &[&str], wait: Option<u64>, quiet: bool) -> Claim {
        Claim {
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            wait,
            quiet,
            ..Claim::default()
        }
    }

    fn give_all_back(&mut self) -> Result<(), AnyError> {
        let held: Vec<(String, u64)> = self.holds.clone().into_iter().collect();
        for (key, epoch) in held {
            self.give_back(&key, Some(epoch), false)?;
            self.holds.remove(&key);
        }
        Ok(())
    }

    /// Pauses, but not beyond the end of the run.
    fn rest(&mut self, from: u64, to: u64) {
        let end = monotonic() + self.dice.between(from, to) * 1_000_000;
        while monotonic() < end.min(self.orders.until) {
            tenure_host::pause::sleep(Duration::from_millis(5));
        }
    }

    fn hog(&mut self) -> Result<(), AnyError> {
        let claim = self.wants_in_line(&LINE[1..2], None, false);
        self.claim(claim)?;
        if !self.holds.is_empty() {
            self.rest(4_000, 7_000);
        }
        self.give_all_back()
    }

    fn want_both(&mut self) -> Result<(), AnyError> {
        let patience = self.dice.between(4_000, 6_000);
        let claim = self.wants_in_line(&LINE[..2], Some(patience), false);
        self.claim(claim)?;
        self.give_all_back()
    }

    fn want_one(&mut self) -> Result<(), AnyError> {
        let claim = self.wants_in_line(&LINE[..1], Some(6_000), false);
        self.claim(claim)?;
        self.rest(0, 30);
        self.give_all_back()
    }

    /// Waits among many of both hosts.
    pub(super) fn wait_in_crowd(&mut self) -> Result<(), AnyError> {
        let patience = self.dice.between(4_000, 12_000);
        let claim = self.wants_in_line(CROWD, Some(patience), false);
        self.claim(claim)?;
        self.rest(0, 30);
        self.give_all_back()
    }

    fn leave_noise(&mut self) -> Result<(), AnyError> {
        let claim = self.wants_in_line(&LINE[2..], None, false);
        self.claim(claim)?;
        if !self.holds.is_empty() {
            let length = self.dice.between(50, 1_500);
            self.send(length)?;
            self.rest(0, 400);
        }
        self.give_all_back()
    }

    fn want_quiet(&mut self) -> Result<(), AnyError> {
        let patience = self.dice.percent(40).then(|| self.dice.between(50, 900));
        let claim = self.wants_in_line(&LINE[2..], patience, true);
        self.claim(claim)?;
        self.give_all_back()
    }
}

//! Deliveries that arrive together are stored together.
//!
//! A commit waits for the disk, so one that stores eight deliveries is nearly eight times as fast as eight. Only plain
//! deliveries are batched: one that acts (closes, links, resets), or whose decision depends on what an earlier one
//! stored, is handled alone and in its turn. The order of the senders is kept.
//!
//! *Crash*: nothing is answered before the commit, so a lost batch may be delivered again.

use tenure_core::dispatch::decide;
use tenure_service::Accept;
use tenure_service::answer::{Class, Problem};

use super::asking::Asked;
use super::receive::{Desk, Genuine, Told};

impl Desk {
    /// Stores deliveries; the answers are in the same order.
    pub fn receive_all(&mut self, letters: &[(Genuine, Asked)]) -> Vec<Told> {
        let mut told = Vec::with_capacity(letters.len());
        let mut plain = Vec::new();
        for (genuine, asked) in letters {
            match self.plain(genuine, asked) {
                Some(request) => plain.push(request),
                None => {
                    self.store(&mut plain, &mut told);
                    told.push(self.receive(genuine, asked));
                }
            }
        }
        self.store(&mut plain, &mut told);
        told
    }

    /// The request to store a delivery that only asks for runs.
    fn plain(&mut self, genuine: &Genuine, asked: &Asked) -> Option<Accept> {
        let config = self.config.clone();
        let forge = config.forge(&genuine.endpoint)?;
        let Asked::Answered(answers) = asked else {
            return None;
        };
        if genuine.depends_on_earlier() {
            return None;
        }
        let own = forge.own();
        let facts = answers.facts(own.as_ref(), false);
        let decision = decide(&genuine.event, &forge.name, &config.rules, &facts);
        (!decision.changes_items()).then(|| self.request(&config, forge, genuine, &decision))
    }

    fn store(&mut self, plain: &mut Vec<Accept>, told: &mut Vec<Told>) {
        let requests = std::mem::take(plain);
        let failed = match requests.as_slice() {
            [] => return,
            [one] => return told.push(self.store_one(one)),
            several => match self.context.service().accept_all(several) {
                Ok(stored) => return told.extend(stored.value.iter().map(Told::of)),
                Err(failure) => Problem::from(failure),
            },
        };
        // Where the store fails, it fails for all. Else one of them does, and is found by storing each alone.
        let is_for_all = matches!(failed.class, Class::Store | Class::Internal);
        told.extend(requests.iter().map(|request| {
            if is_for_all {
                Told::of_stored(Err(failed.clone()))
            } else {
                self.store_one(request)
            }
        }));
    }

    fn store_one(&mut self, request: &Accept) -> Told {
        let stored = self.context.service().accept(request);
        Told::of_stored(stored.map(|answer| answer.value).map_err(Problem::from))
    }
}

//! What agents' own files and terminals say about live sessions, put together for the service.
//!
//! Everything here is read when somebody looks, is bounded in size and time, and may be missing: a file that is
//! not there, or not understood, says nothing. Nothing is stored.

pub mod chat;
pub mod registry;
mod terminal;

use tenure_core::witness::{Subject, Testimony, Witness};

/// The agents and terminals of this machine.
#[derive(Debug, Default)]
pub struct Witnesses;

impl Witness for Witnesses {
    fn testify(&self, about: &[Subject]) -> Vec<Testimony> {
        let mut places = terminal::places(about).into_iter();
        let testimony = about.iter().map(|subject| {
            let (place, attended_at) = places.next().unwrap_or_default();
            Testimony {
                own: registry::own_word(subject).or_else(|| chat::own_word(subject)),
                place,
                attended_at,
            }
        });
        testimony.collect()
    }
}

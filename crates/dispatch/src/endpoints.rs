//! What arrives at the endpoints of this dispatcher, counted where it is received and told where it is reported.
//!
//! The counts are in memory, and in the dispatcher's note for other processes (`running.rs`). They begin anew with each
//! dispatcher.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::dispatch::endpoint::{EndpointState, RefusalCause};
use tenure_core::time::Timestamp;

/// A change that somebody should know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointNews {
    /// Many deliveries in a row were refused.
    Refuses { endpoint: String, why: String },
    /// After that, one was accepted.
    Accepts { endpoint: String },
}

#[derive(Debug, Default)]
struct Counted {
    states: BTreeMap<String, EndpointState>,
    news: Vec<EndpointNews>,
}

/// The endpoints of a dispatcher; clones count together.
#[derive(Debug, Clone, Default)]
pub struct Endpoints(Arc<Mutex<Counted>>);

impl Endpoints {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has these endpoints from now on. What was counted stays.
    pub fn are(&self, names: impl Iterator<Item = String>) {
        let mut counted = self.counted();
        let mut before = std::mem::take(&mut counted.states);
        for name in names {
            let state = before.remove(&name).unwrap_or_default();
            counted.states.insert(name, state);
        }
    }

    /// Counts an answer to a sender, by its status.
    pub fn answered(&self, endpoint: &str, status: u16, now: Timestamp) {
        let cause = match status {
            200..=299 => None,
            401 => Some(RefusalCause::Signature),
            413 => Some(RefusalCause::TooLarge),
            500..=599 => Some(RefusalCause::StoreAway),
            _ => Some(RefusalCause::Unreadable),
        };
        let mut counted = self.counted();
        let Some(state) = counted.states.get_mut(endpoint) else {
            return;
        };
        let endpoint = endpoint.to_owned();
        let news = match cause {
            None => state
                .accept(now)
                .then_some(EndpointNews::Accepts { endpoint }),
            Some(cause) => {
                let is_new = state.refuse(cause, now);
                let why = state.complaint().filter(|_| is_new);
                why.map(|why| EndpointNews::Refuses { endpoint, why })
            }
        };
        counted.news.extend(news);
    }

    /// Whether one of them refuses what arrives.
    pub fn is_refusing(&self) -> bool {
        let counted = self.counted();
        counted.states.values().any(EndpointState::is_refusing)
    }

    pub fn states(&self) -> BTreeMap<String, EndpointState> {
        self.counted().states.clone()
    }

    /// What changed since the last call.
    pub fn news(&self) -> Vec<EndpointNews> {
        std::mem::take(&mut self.counted().news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_cause_and_told_once() {
        let endpoints = Endpoints::default();
        endpoints.are(["home".to_owned()].into_iter());
        let at = Timestamp(1);
        for status in [401, 401, 400, 413, 503, 401, 401, 401, 401, 401, 401] {
            endpoints.answered("home", status, at);
            endpoints.answered("no-such-endpoint", status, at);
        }
        let states = endpoints.states();
        assert_eq!(states.len(), 1);
        let refused: Vec<u64> = states["home"].refused.values().copied().collect();
        assert_eq!(refused, [8, 1, 1, 1]);
        assert!(endpoints.is_refusing());
        let told = endpoints.news();
        assert!(matches!(told.as_slice(), [EndpointNews::Refuses { .. }]));
        endpoints.answered("home", 202, at);
        assert!(!endpoints.is_refusing());
        let told = endpoints.news();
        assert!(matches!(told.as_slice(), [EndpointNews::Accepts { .. }]));
        endpoints.are(["home".to_owned(), "other".to_owned()].into_iter());
        assert_eq!(endpoints.states()["home"].accepted, 1);
    }
}

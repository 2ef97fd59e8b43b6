//! Deliveries that are stored and undecided: since when, and which.

use std::collections::HashMap;
use std::time::Instant;

use tenure_host::clock;

/// There are undecided deliveries.
#[derive(Debug, Clone)]
pub(super) struct Behind {
    pub(super) since: Instant,
    /// Not tried before, because the store failed.
    pub(super) retry_at: Option<Instant>,
    /// Their numbers by endpoint and id, so that the same again is recognised. The store would need an index for that, and
    /// forges' ids are random: each delivery would change a page of its own. Those that another dispatcher
    /// has stored meanwhile are not among them; the same as one of those is recognised when it is decided.
    known: HashMap<(String, String), i64>,
}

impl Behind {
    pub(super) fn now() -> Self {
        Self {
            since: clock::instant(),
            retry_at: None,
            known: HashMap::new(),
        }
    }

    pub(super) fn number(&self, endpoint: &str, id: Option<&String>) -> Option<i64> {
        let key = (endpoint.to_owned(), id?.clone());
        self.known.get(&key).copied()
    }

    pub(super) fn add(&mut self, endpoint: &str, id: String, number: i64) {
        self.known.insert((endpoint.to_owned(), id), number);
    }

    pub(super) fn remove(&mut self, endpoint: &str, id: Option<&String>) {
        if let Some(id) = id {
            self.known.remove(&(endpoint.to_owned(), id.clone()));
        }
    }
}

//! What a caller may name, read from a store that is there; quickly, or not at all.

use std::time::Instant;

use tenure_service::{Name, Nameable};

use crate::hook_store::HookStore;

/// What can be named; nothing where there is no store, or it does not answer in time.
pub fn known(of: Nameable, until: Instant) -> Vec<Name> {
    let names = || {
        let mut store = HookStore::prepare_existing(until).ok()??;
        let answer = store.open().ok()?.names(of).ok()?;
        Some(answer.value)
    };
    names().unwrap_or_default()
}

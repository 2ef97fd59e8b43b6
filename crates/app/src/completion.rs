//! Names for completion, read from an existing store within a time limit.

use std::time::Instant;

use tenure_service::{Name, Nameable};

use crate::hook_store::HookStore;

/// The names; empty if there is no store or it does not answer in time.
pub fn known(of: Nameable, until: Instant) -> Vec<Name> {
    let names = || {
        let mut store = HookStore::prepare_existing(until).ok()??;
        let answer = store.open().ok()?.names(of).ok()?;
        Some(answer.value)
    };
    names().unwrap_or_default()
}

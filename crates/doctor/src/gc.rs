//! Forgetting what ended long ago: `tenure gc`, and by itself where `retention` is set.
//!
//! *Crash*: each step is a transaction. *Clock jump*: see the rows.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tenure_app::location::settings_and_store;
use tenure_app::open::Context;
use tenure_core::time::Timestamp;
use tenure_host::clock;
use tenure_service::answer::{Class, Hint, Problem};

use crate::backup;

/// What can be forgotten, and what stays because something needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GcView {
    /// What ended before this is forgotten.
    pub before: Timestamp,
    /// Whether it was; false without `--apply`.
    pub applied: bool,
    /// Sessions that are over and that nothing needs.
    pub sessions: usize,
    pub events: usize,
    /// How many sessions that ended before stay, by what needs them.
    pub kept: BTreeMap<&'static str, usize>,
}

/// Finds what can be forgotten, and forgets it if asked to.
pub fn collect(context: &mut Context, age: Duration, apply: bool) -> Result<GcView, Problem> {
    let (_, place) = settings_and_store()?;
    let faults = if apply && context.absent.is_none() {
        backup::faults(&place)?
    } else {
        Vec::new()
    };
    if let Some(fault) = faults.first() {
        let message = format!("nothing was removed: the content of the store is damaged: {fault}");
        let hint = Hint::verb("doctor", "to see all of it");
        return Err(Problem::new(Class::Store, "store_damaged", message, hint));
    }
    let before = clock::wall().minus(age);
    let mut view = GcView {
        before,
        applied: apply,
        sessions: 0,
        events: context.service().events_before(before)?.value,
        kept: BTreeMap::new(),
    };
    while apply && context.service().forget_events_before(Some(before))?.value {}
    let mut after = None;
    loop {
        let step = context
            .service()
            .forget_sessions(before, after, apply)?
            .value;
        view.sessions += step.sessions;
        for (need, count) in step.kept {
            *view.kept.entry(need).or_default() += count;
        }
        after = step.next;
        if after.is_none() {
            return Ok(view);
        }
    }
}

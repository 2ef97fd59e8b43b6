//! Lists that may be truncated, and lists that skip unreadable rows.

use tenure_core::store::StoreError;

use crate::context::{Ctx, Stop};

/// A list that may be truncated, and how many entries are missing.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    pub items: Vec<T>,
    pub more: usize,
}

impl<T> Listed<T> {
    /// Counts the missing entries if the limit was reached.
    pub fn of(
        items: Vec<T>,
        limit: usize,
        count: impl FnOnce() -> Result<usize, StoreError>,
    ) -> Result<Self, Stop> {
        let more = if limit > 0 && items.len() >= limit {
            count()?.saturating_sub(items.len())
        } else {
            0
        };
        Ok(Self { items, more })
    }
}

/// One entry of a list. If a row that it needs is unreadable, the damage is reported and the list continues.
pub fn unless_damaged<T>(
    ctx: &mut Ctx<'_>,
    name: &str,
    read: Result<T, Stop>,
) -> Result<Option<T>, Stop> {
    match read {
        Err(Stop::Store(StoreError::Damaged { why, .. })) => {
            ctx.damage.push(format!("{name}: {why}"));
            Ok(None)
        }
        other => other.map(Some),
    }
}

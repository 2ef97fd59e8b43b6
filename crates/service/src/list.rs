//! Lists that may be cut, and lists that go on where a row cannot be read.

use tenure_core::store::StoreError;

use crate::context::{Ctx, Stop};

/// A list that may be cut, and how much of it is missing.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    pub items: Vec<T>,
    pub more: usize,
}

impl<T> Listed<T> {
    /// Counts what is missing, where the limit was met.
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

/// One entry of a list; where a row that it needs cannot be read, that is named and the list goes on.
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

//! Lists that may be truncated, and lists that skip unreadable rows.

use tenure_core::store::StoreError;

use crate::context::{Ctx, Stop};

/// How many missing entries are counted where a store may have very many.
pub const MOST_COUNTED: usize = 1_000;

/// A list that may be truncated, and how many entries are missing.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    pub items: Vec<T>,
    pub more: usize,
    /// Whether counting stopped at `MOST_COUNTED`: there may be more than `more`.
    pub more_is_least: bool,
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
        Ok(Self {
            items,
            more,
            more_is_least: false,
        })
    }

    /// The same, if `count` can stop at a limit.
    pub fn counted_to(
        items: Vec<T>,
        limit: usize,
        count: impl FnOnce(usize) -> Result<usize, StoreError>,
    ) -> Result<Self, Stop> {
        // One more shows whether there are more.
        let mut listed = Self::of(items, limit, || count(limit + MOST_COUNTED + 1))?;
        listed.more_is_least = listed.more > MOST_COUNTED;
        listed.more = listed.more.min(MOST_COUNTED);
        Ok(listed)
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
            ctx.damage.push(format!("{name}, {why}"));
            Ok(None)
        }
        other => other.map(Some),
    }
}

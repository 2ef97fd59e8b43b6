//! Lists that may be truncated, lists that are read page by page, and lists that skip unreadable rows.

use tenure_core::store::StoreError;

use crate::context::{Ctx, Stop};

/// How many missing entries are counted where a store may have very many.
pub const MAX_COUNTED: usize = 1_000;

/// A list that may be truncated, and how many entries are missing.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    pub items: Vec<T>,
    pub more: usize,
    /// Whether counting stopped at `MAX_COUNTED`: there may be more than `more`.
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
        let mut listed = Self::of(items, limit, || count(limit + MAX_COUNTED + 1))?;
        let (more, is_least) = counted(listed.more);
        (listed.more, listed.more_is_least) = (more, is_least);
        Ok(listed)
    }
}

/// How many are missing of those that were counted, and whether there may be more.
pub fn counted(missing: usize) -> (usize, bool) {
    (missing.min(MAX_COUNTED), missing > MAX_COUNTED)
}

/// How many rows one transaction reads of a list that may be very long.
pub const PAGE: usize = 500;

/// A part of a list that is read in several transactions.
#[derive(Debug, Clone)]
pub struct Page<T, At> {
    pub items: Vec<T>,
    /// Where the next part begins; none if this is the last.
    pub next: Option<At>,
}

/// How many rows to read when this many of the list are wanted still; zero wants all.
pub fn page_size(left: usize) -> usize {
    match left {
        0 => PAGE,
        left => left.min(PAGE),
    }
}

/// Reads up to `size` rows, and whether there may be others behind them. Unreadable rows count too, and if there is
/// nothing else, more are read: the list goes on behind them.
pub(crate) fn page<T>(
    ctx: &mut Ctx<'_>,
    size: usize,
    mut read: impl FnMut(&mut Ctx<'_>, usize) -> Result<Vec<T>, Stop>,
) -> Result<(Vec<T>, bool), Stop> {
    let mut size = size;
    loop {
        let rows = read(ctx, size)?;
        let damage = ctx.tx.take_damage();
        let is_full = rows.len() + damage.len() >= size;
        if is_full && rows.is_empty() {
            size = size.saturating_mul(2);
            continue;
        }
        ctx.effects.damage.extend(damage);
        return Ok((rows, is_full));
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
            ctx.effects.damage.push(format!("{name}, {why}"));
            Ok(None)
        }
        other => other.map(Some),
    }
}

//! Rows that the keys of a request need, read together: one question to the store for many keys.
//!
//! Only what was read together can be asked for here; everything else is read by itself when it is needed. So a row
//! that cannot be read matters only to a request that gets to its key.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::context::{Ctx, Stop};
use tenure_core::claim::{ClaimRecord, Hold};
use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::session::{Session, Standing};
use tenure_core::store::StoreError;

/// How many keys are read together at first, and at most. Most requests for any of many keys end early.
pub(in crate::claim) const FIRST: usize = 16;
const MAX_COUNT: usize = 4096;

/// What was read together.
#[derive(Default)]
pub(super) struct ClaimSnapshot {
    records: BTreeMap<Key, ClaimRecord>,
    mine: BTreeMap<Key, Hold>,
    sessions: BTreeMap<SessionId, Session>,
    /// How long machines may still permit writes to keys that were taken over from their sessions.
    untold: BTreeMap<Key, Duration>,
}

/// Splits keys into groups that are read together, each larger than the one before.
pub(super) fn groups(keys: &[Key]) -> impl Iterator<Item = &[Key]> {
    let mut left = keys;
    let mut size = FIRST;
    std::iter::from_fn(move || {
        let (group, rest) = left.split_at(left.len().min(size));
        left = rest;
        size = (size * 4).min(MAX_COUNT);
        (!group.is_empty()).then_some(group)
    })
}

impl ClaimSnapshot {
    /// Reads what is stored about these keys.
    pub(super) fn read(ctx: &mut Ctx<'_>, me: SessionId, keys: &[Key]) -> Result<Self, Stop> {
        match Self::read_all(ctx, me, keys) {
            Err(Stop::Store(StoreError::Damaged { .. })) => Ok(Self::default()),
            read => read,
        }
    }

    fn read_all(ctx: &mut Ctx<'_>, me: SessionId, keys: &[Key]) -> Result<Self, Stop> {
        let mut known = Self::default();
        let has_one_name = |key: &&Key| !key.has_other_names();
        let plain: Vec<Key> = keys.iter().filter(has_one_name).cloned().collect();
        for record in ctx.claim_records(&plain)? {
            known.records.insert(record.key.clone(), record);
        }
        known.untold = ctx.may_be_written_for(&plain)?;
        for hold in ctx.tx.newest_holds_among(me, &plain)? {
            known.mine.insert(hold.key.clone(), hold);
        }
        let holders = known.records.values().filter_map(ClaimRecord::current);
        let holders: BTreeSet<SessionId> = holders.map(|hold| hold.session).collect();
        let holders: Vec<SessionId> = holders.into_iter().filter(|id| *id != me).collect();
        for session in ctx.tx.sessions(&holders)? {
            known.sessions.insert(session.id, session);
        }
        Ok(known)
    }

    pub(super) fn record(&self, ctx: &mut Ctx<'_>, key: &Key) -> Result<ClaimRecord, Stop> {
        match self.records.get(key) {
            Some(record) => Ok(record.clone()),
            None => ctx.claim_record(key),
        }
    }

    /// How long a machine may still permit writes to a key that was taken over from one of its sessions.
    pub(super) fn may_be_written_for(
        &self,
        ctx: &mut Ctx<'_>,
        key: &Key,
    ) -> Result<Option<Duration>, Stop> {
        if self.records.contains_key(key) {
            return Ok(self.untold.get(key).copied());
        }
        let mut alone = ctx.may_be_written_for(std::slice::from_ref(key))?;
        Ok(alone.remove(key))
    }

    /// The newest hold of the asker.
    pub(super) fn mine(
        &self,
        ctx: &mut Ctx<'_>,
        me: SessionId,
        key: &Key,
    ) -> Result<Option<Hold>, Stop> {
        if self.records.contains_key(key) {
            return Ok(self.mine.get(key).cloned());
        }
        Ok(ctx.tx.newest_hold_of(me, key)?)
    }

    /// The holder of a key, unless it is `me`, with its standing.
    pub(super) fn holder_of(
        &self,
        ctx: &mut Ctx<'_>,
        record: &ClaimRecord,
        me: SessionId,
    ) -> Result<Option<(Session, Standing)>, Stop> {
        let Some(hold) = record.current().filter(|hold| hold.session != me) else {
            return Ok(None);
        };
        let session = match self.sessions.get(&hold.session) {
            Some(session) => session.clone(),
            None => ctx.session(hold.session)?,
        };
        let standing = ctx.standing(&session)?;
        Ok(Some((session, standing)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_grow_and_miss_no_key() {
        let keys: Vec<Key> = (0..10_000)
            .map(|number| Key::stored(&format!("wp:{number}")).expect("a key"))
            .collect();
        let sizes: Vec<usize> = groups(&keys).map(<[Key]>::len).collect();
        assert_eq!(sizes, [16, 64, 256, 1024, 4096, 4096, 448]);
        assert_eq!(groups(&keys).flatten().count(), keys.len());
        assert_eq!(groups(&[]).count(), 0);
    }
}

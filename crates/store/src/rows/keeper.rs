//! Keepers and watched sessions in rows. One machine uses a store in a file, so it has none of these tables: processes
//! are asked directly.
//!
//! A renewal is an UPDATE of the keeper's row, which the transaction locked, and then a second statement that lists
//! holds. In one statement the list would be older than the wait for the lock, and might contain a hold that was given
//! away meanwhile.
//!
//! *Crash*: a renewal is written completely or not at all. A server that crashes may lose the newest one, because it is
//! not flushed; the store's clock stands still meanwhile, so nothing expires. *Clock jump*: `renewed` is on the store's
//! clock. *Older version*: see the schema.

use std::time::Duration;

use tenure_core::id::{HostId, KeeperId, Life, SessionId, SessionToken};
use tenure_core::keeper::{Keeper, KeeperPlace, Terms};
use tenure_core::key::Key;
use tenure_core::process::BootId;
use tenure_core::session::Session;
use tenure_core::store::{KeeperRows, StoreError, Untold, WatchedHold};
use tenure_core::time::{Deadline, Timestamp};

use super::claim::key_list;
use super::session::{self, id_list};
use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{limit_or_all, params};

columns! { $
    KeeperRow of "keepers" by select_keepers {
        id, host_id, boot_id, boot_private, pid_ns, uid, pid, version, host_name, started_at, seen_at, renewed,
        acknowledged, lease, lock_delay,
    }
}

columns! { $
    UntoldRow of "untold" by select_untold { key, epoch, keeper, at }
}

/// How many watchers are read at once: their rows stay below what a statement may return under a lock.
const MANY: usize = 100;
/// How many keys a use case reads with its first statement.
const FEW: usize = 16;

const RENEW: &str = concat!(
    "INSERT INTO keepers (",
    select_keepers!(columns ""),
    ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
     ON CONFLICT (id) DO UPDATE SET version = excluded.version, seen_at = excluded.seen_at, \
     renewed = excluded.renewed, acknowledged = excluded.acknowledged, lease = excluded.lease, \
     lock_delay = excluded.lock_delay"
);
const REMOVE: &str = "DELETE FROM keepers WHERE id = ?1";
const ALL: &str = select_keepers!("ORDER BY renewed DESC, id");
const WATCH: &str = "INSERT INTO watched (session, life, keeper) \
     SELECT a.value, b.value, ?1 FROM json_each(?2) a JOIN json_each(?3) b ON a.key = b.key \
     WHERE TRUE ON CONFLICT (session) DO UPDATE SET life = excluded.life, keeper = excluded.keeper";
const WATCHERS: &str = concat!(
    "SELECT w.session, w.life, ",
    select_keepers!(columns "k."),
    " FROM watched w JOIN keepers k ON k.id = w.keeper \
     WHERE w.session IN (SELECT value FROM json_each(?1))"
);
const HOLDS: &str = "SELECT h.session, h.life, h.key, h.epoch FROM watched w \
     JOIN holds h ON h.session = w.session AND h.life = w.life AND h.ended_at IS NULL \
     JOIN sessions s ON s.id = w.session AND s.life = w.life AND s.closed_at IS NULL \
     WHERE w.keeper = ?1 ORDER BY h.key";
const UNTOLD: &str = concat!(
    "SELECT ",
    select_untold!(columns "u."),
    ", ",
    select_keepers!(columns "k."),
    " FROM untold u JOIN keepers k ON k.id = u.keeper \
     WHERE u.key IN (SELECT value FROM json_each(?1)) ORDER BY u.key, u.epoch"
);
const FORGET_UNTOLD: &str = "DELETE FROM untold WHERE keeper = ?1 AND at < ?2";
const FORGET: &str = "DELETE FROM keepers WHERE id IN (SELECT k.id FROM keepers k WHERE k.seen_at < ?1 \
     AND NOT EXISTS (SELECT 1 FROM watched w JOIN sessions s ON s.id = w.session AND s.life = w.life \
     WHERE w.keeper = k.id AND s.closed_at IS NULL) ORDER BY k.seen_at LIMIT ?2 /* skip locked */)";

/// Announces [`KeeperRows::untold`] of few keys.
pub(crate) fn prefetch_untold<E: Engine>(rows: &mut Rows<E>, keys: &[Key]) {
    if E::SHARED && (1..=FEW).contains(&keys.len()) {
        rows.engine.prefetch(UNTOLD, &params![key_list(keys)]);
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// A moment on the store's clock.
fn deadline<E: Engine>(at: i64) -> Deadline {
    Deadline { era: E::era(), at }
}

fn read<E: Engine>(cells: &mut Cells<'_>) -> Result<Keeper, StoreError> {
    let row = KeeperRow::read(cells);
    Ok(Keeper {
        id: row.id.parsed(KeeperId::parse)?,
        place: KeeperPlace {
            host: HostId::new(row.host_id.text()?),
            pid_ns: row.pid_ns.number::<i64>()?.cast_unsigned(),
        },
        boot: BootId {
            id: row.boot_id.text()?,
            private: row.boot_private.flag()?,
        },
        uid: row.uid.number()?,
        pid: row.pid.number()?,
        version: row.version.text()?,
        host_name: row.host_name.text()?,
        started_at: row.started_at.time()?,
        seen_at: row.seen_at.time()?,
        renewed: deadline::<E>(row.renewed.number()?),
        acknowledged: row.acknowledged.maybe_number()?.map(deadline::<E>),
        terms: Terms {
            host_lease: Duration::from_millis(row.lease.number()?),
            lock_delay: Duration::from_millis(row.lock_delay.number()?),
        },
    })
}

fn read_token(cells: &mut Cells<'_>) -> Result<SessionToken, StoreError> {
    Ok(SessionToken {
        id: cells.parsed(SessionId::parse)?,
        life: Life(cells.number()?),
    })
}

fn read_untold<E: Engine>(cells: &mut Cells<'_>) -> Result<(Untold, Keeper), StoreError> {
    let row = UntoldRow::read(cells);
    let untold = Untold {
        key: row.key.parsed(Key::stored)?,
        epoch: row.epoch.epoch()?,
        keeper: row.keeper.parsed(KeeperId::parse)?,
        at: deadline::<E>(row.at.number()?),
    };
    Ok((untold, read::<E>(cells)?))
}

impl<E: Engine> KeeperRows for Rows<E> {
    fn renew_keeper(&mut self, keeper: &Keeper) -> Result<(), StoreError> {
        if !E::SHARED {
            return Ok(());
        }
        let row = KeeperRow {
            id: keeper.id.as_str().into(),
            host_id: keeper.place.host.as_str().into(),
            boot_id: keeper.boot.id.as_str().into(),
            boot_private: keeper.boot.private.into(),
            pid_ns: keeper.place.pid_ns.cast_signed().into(),
            uid: keeper.uid.into(),
            pid: keeper.pid.into(),
            version: (&keeper.version).into(),
            host_name: (&keeper.host_name).into(),
            started_at: keeper.started_at.0.into(),
            seen_at: keeper.seen_at.0.into(),
            renewed: keeper.renewed.at.into(),
            acknowledged: keeper.acknowledged.as_ref().map(|at| at.at).into(),
            lease: millis(keeper.terms.host_lease).into(),
            lock_delay: millis(keeper.terms.lock_delay).into(),
        };
        self.run(RENEW, &row.values())?;
        Ok(())
    }

    fn remove_keeper(&mut self, id: &KeeperId) -> Result<(), StoreError> {
        if !E::SHARED {
            return Ok(());
        }
        self.run(REMOVE, &params![id.as_str()])?;
        Ok(())
    }

    fn keepers(&mut self) -> Result<Vec<Keeper>, StoreError> {
        if !E::SHARED {
            return Ok(Vec::new());
        }
        self.all("keepers", ALL, &[], read::<E>)
    }

    fn watch_sessions(
        &mut self,
        keeper: &KeeperId,
        sessions: &[SessionToken],
    ) -> Result<(), StoreError> {
        if !E::SHARED {
            return Ok(());
        }
        let ids: Vec<SessionId> = sessions.iter().map(|token| token.id).collect();
        let lives = sessions.iter().map(|token| i64::from(token.life.0));
        let lives: Vec<i64> = lives.collect();
        self.run(WATCH, &params![keeper.as_str(), id_list(&ids), lives])?;
        Ok(())
    }

    fn watchers_of(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<(SessionToken, Keeper)>, StoreError> {
        let mut found = Vec::new();
        if !E::SHARED {
            return Ok(found);
        }
        for some in sessions.chunks(MANY) {
            let some = &params![id_list(some)];
            found.extend(self.all("watched", WATCHERS, some, |cells| {
                let token = read_token(cells)?;
                Ok((token, read::<E>(cells)?))
            })?);
        }
        Ok(found)
    }

    fn add_untold(&mut self, untold: &Untold) -> Result<(), StoreError> {
        if !E::SHARED {
            return Ok(());
        }
        let row = UntoldRow {
            key: untold.key.as_str().into(),
            epoch: self.stored_epoch(untold.epoch)?.into(),
            keeper: untold.keeper.as_str().into(),
            at: untold.at.at.into(),
        };
        self.run(UntoldRow::INSERT, &row.values())?;
        Ok(())
    }

    fn untold(&mut self, keys: &[Key]) -> Result<Vec<(Untold, Keeper)>, StoreError> {
        if !E::SHARED {
            return Ok(Vec::new());
        }
        let keys = &params![key_list(keys)];
        self.all("untold", UNTOLD, keys, read_untold::<E>)
    }

    fn forget_untold(&mut self, keeper: &KeeperId, before: &Deadline) -> Result<(), StoreError> {
        if !E::SHARED {
            return Ok(());
        }
        self.run(FORGET_UNTOLD, &params![keeper.as_str(), before.at])?;
        Ok(())
    }

    fn open_sessions_at(&mut self, place: &KeeperPlace) -> Result<Vec<Session>, StoreError> {
        if !E::SHARED {
            return Ok(Vec::new());
        }
        let place = &params![place.host.as_str(), place.pid_ns.cast_signed()];
        self.all("sessions", session::OPEN_AT_HOST, place, session::read)
    }

    fn watched_holds(&mut self, keeper: &KeeperId) -> Result<Vec<WatchedHold>, StoreError> {
        if !E::SHARED {
            return Ok(Vec::new());
        }
        self.all("holds", HOLDS, &params![keeper.as_str()], |cells| {
            Ok(WatchedHold {
                session: read_token(cells)?,
                key: cells.parsed(Key::stored)?,
                epoch: cells.epoch()?,
            })
        })
    }

    fn forget_keepers(&mut self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        if !E::SHARED {
            return Ok(0);
        }
        self.run(FORGET, &params![before.0, limit_or_all(most)])
    }
}

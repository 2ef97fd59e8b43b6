//! Keepers and watched sessions in rows.
//!
//! A renewal is an UPDATE of the keeper's row, which the transaction locked, and then a second statement that lists
//! holds. In one statement the list would be older than the wait for the lock, and might contain a hold that was given
//! away meanwhile.
//!
//! *Crash*: a renewal is written completely or not at all. A server that crashes may lose the newest one, because it is
//! not flushed; the store's clock stands still meanwhile, so nothing expires. *Clock jump*: `renewed` is on the store's
//! clock. *Older version*: see the migrations.

use std::time::Duration;

use tenure_core::id::{HostId, KeeperId, Life, SessionId, SessionToken};
use tenure_core::keeper::{Keeper, KeeperPlace, Terms};
use tenure_core::key::Key;
use tenure_core::process::BootId;
use tenure_core::session::Session;
use tenure_core::store::{KeeperRows, StoreError, Untold, WatchedHold};
use tenure_core::time::{Deadline, Timestamp};

use super::claim::key_list;
use super::clock;
use super::handle::PostgresTx;
use super::row::Cells;
use super::session::{self, id_list};
use super::value::params;

/// How many watchers are read at once: their rows stay below what a statement may return under a lock.
const MANY: usize = 100;
/// How many keys a use case reads with its first statement.
const FEW: usize = 16;

macro_rules! columns {
    ($prefix:literal) => {
        concat!(
            $prefix,
            "id, ",
            $prefix,
            "host_id, ",
            $prefix,
            "boot_id, ",
            $prefix,
            "boot_private, ",
            $prefix,
            "pid_ns, ",
            $prefix,
            "uid, ",
            $prefix,
            "pid, ",
            $prefix,
            "version, ",
            $prefix,
            "host_name, ",
            $prefix,
            "started_at, ",
            $prefix,
            "seen_at, ",
            $prefix,
            "renewed, ",
            $prefix,
            "acknowledged, ",
            $prefix,
            "lease, ",
            $prefix,
            "lock_delay"
        )
    };
}

const RENEW: &str = "INSERT INTO keepers (id, host_id, boot_id, boot_private, pid_ns, uid, pid, version, \
     host_name, started_at, seen_at, renewed, acknowledged, lease, lock_delay) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
     ON CONFLICT (id) DO UPDATE SET version = $8, seen_at = $11, renewed = $12, acknowledged = $13, \
     lease = $14, lock_delay = $15";
const ALL: &str = concat!(
    "SELECT ",
    columns!(""),
    " FROM keepers ORDER BY renewed DESC, id"
);
const WATCH: &str = "INSERT INTO watched (session, life, keeper) \
     SELECT session, life, $1 FROM unnest($2, $3) AS w (session, life) \
     ON CONFLICT (session) DO UPDATE SET life = excluded.life, keeper = excluded.keeper";
const WATCHERS: &str = concat!(
    "SELECT w.session, w.life, ",
    columns!("k."),
    " FROM watched w JOIN keepers k ON k.id = w.keeper WHERE w.session = ANY($1)"
);
const HOLDS: &str = "SELECT h.session, h.life, h.key, h.epoch FROM watched w \
     JOIN holds h ON h.session = w.session AND h.life = w.life AND h.ended_at IS NULL \
     JOIN sessions s ON s.id = w.session AND s.life = w.life AND s.closed_at IS NULL \
     WHERE w.keeper = $1 ORDER BY h.key";
const UNTOLD: &str = concat!(
    "SELECT u.key, u.epoch, u.keeper, u.at, ",
    columns!("k."),
    " FROM untold u JOIN keepers k ON k.id = u.keeper WHERE u.key = ANY($1) ORDER BY u.key, u.epoch"
);
const FORGET: &str = "DELETE FROM keepers WHERE id IN (SELECT k.id FROM keepers k WHERE k.seen_at < $1 \
     AND NOT EXISTS (SELECT 1 FROM watched w JOIN sessions s ON s.id = w.session AND s.life = w.life \
     WHERE w.keeper = k.id AND s.closed_at IS NULL) ORDER BY k.seen_at LIMIT $2 FOR UPDATE SKIP LOCKED)";

/// Announces [`KeeperRows::untold`] of few keys.
pub(super) fn soon_untold(tx: &mut PostgresTx<'_>, keys: &[Key]) {
    if (1..=FEW).contains(&keys.len()) {
        tx.soon(UNTOLD, params![key_list(keys)]);
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn read(cells: &mut Cells<'_>) -> Result<Keeper, StoreError> {
    let at = |at: i64| Deadline {
        era: clock::era(),
        at,
    };
    let id = cells.parsed(KeeperId::parse)?;
    let host = HostId::new(cells.text()?);
    let boot = BootId {
        id: cells.text()?,
        private: cells.flag()?,
    };
    let pid_ns: i64 = cells.number()?;
    // Fields are read in the order of the columns.
    Ok(Keeper {
        id,
        place: KeeperPlace {
            host,
            pid_ns: pid_ns.cast_unsigned(),
        },
        boot,
        uid: cells.number()?,
        pid: cells.number()?,
        version: cells.text()?,
        host_name: cells.text()?,
        started_at: cells.time()?,
        seen_at: cells.time()?,
        renewed: at(cells.number()?),
        acknowledged: cells.maybe_number()?.map(at),
        terms: Terms {
            host_lease: Duration::from_millis(cells.number()?),
            lock_delay: Duration::from_millis(cells.number()?),
        },
    })
}

impl KeeperRows for PostgresTx<'_> {
    fn renew_keeper(&mut self, keeper: &Keeper) -> Result<(), StoreError> {
        let row = params![
            keeper.id.as_str(),
            keeper.place.host.as_str(),
            keeper.boot.id.as_str(),
            keeper.boot.private,
            keeper.place.pid_ns.cast_signed(),
            keeper.uid,
            keeper.pid,
            &keeper.version,
            &keeper.host_name,
            keeper.started_at.0,
            keeper.seen_at.0,
            keeper.renewed.at,
            keeper.acknowledged.as_ref().map(|at| at.at),
            millis(keeper.terms.host_lease),
            millis(keeper.terms.lock_delay),
        ];
        self.run(RENEW, row).map(|_| ())
    }

    fn remove_keeper(&mut self, id: &KeeperId) -> Result<(), StoreError> {
        let sql = "DELETE FROM keepers WHERE id = $1";
        self.run(sql, params![id.as_str()]).map(|_| ())
    }

    fn keepers(&mut self) -> Result<Vec<Keeper>, StoreError> {
        self.all("keepers", ALL, Vec::new(), read)
    }

    fn watch_sessions(
        &mut self,
        keeper: &KeeperId,
        sessions: &[SessionToken],
    ) -> Result<(), StoreError> {
        let ids: Vec<SessionId> = sessions.iter().map(|token| token.id).collect();
        let lives: Vec<i64> = sessions
            .iter()
            .map(|token| i64::from(token.life.0))
            .collect();
        let row = params![keeper.as_str(), id_list(&ids), lives];
        self.run(WATCH, row).map(|_| ())
    }

    fn watchers_of(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<(SessionToken, Keeper)>, StoreError> {
        let mut found = Vec::new();
        for some in sessions.chunks(MANY) {
            found.extend(
                self.all("watched", WATCHERS, params![id_list(some)], |cells| {
                    let token = token(cells)?;
                    Ok((token, read(cells)?))
                })?,
            );
        }
        Ok(found)
    }

    fn add_untold(&mut self, untold: &Untold) -> Result<(), StoreError> {
        let epoch = self.stored_epoch(untold.epoch)?;
        let row = params![
            untold.key.as_str(),
            epoch,
            untold.keeper.as_str(),
            untold.at.at
        ];
        let sql = "INSERT INTO untold (key, epoch, keeper, at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (key, epoch) DO NOTHING";
        self.run(sql, row).map(|_| ())
    }

    fn untold(&mut self, keys: &[Key]) -> Result<Vec<(Untold, Keeper)>, StoreError> {
        self.all("untold", UNTOLD, params![key_list(keys)], |cells| {
            let untold = Untold {
                key: cells.parsed(Key::stored)?,
                epoch: cells.epoch()?,
                keeper: cells.parsed(KeeperId::parse)?,
                at: Deadline {
                    era: clock::era(),
                    at: cells.number()?,
                },
            };
            Ok((untold, read(cells)?))
        })
    }

    fn forget_untold(&mut self, keeper: &KeeperId, before: &Deadline) -> Result<(), StoreError> {
        let sql = "DELETE FROM untold WHERE keeper = $1 AND at < $2";
        self.run(sql, params![keeper.as_str(), before.at])
            .map(|_| ())
    }

    fn open_sessions_at(&mut self, place: &KeeperPlace) -> Result<Vec<Session>, StoreError> {
        let place = params![place.host.as_str(), place.pid_ns.cast_signed()];
        self.all("sessions", session::OPEN_AT_HOST, place, session::read)
    }

    fn watched_holds(&mut self, keeper: &KeeperId) -> Result<Vec<WatchedHold>, StoreError> {
        self.all("holds", HOLDS, params![keeper.as_str()], |cells| {
            Ok(WatchedHold {
                session: token(cells)?,
                key: cells.parsed(Key::stored)?,
                epoch: cells.epoch()?,
            })
        })
    }

    fn forget_keepers(&mut self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let gone = self.run(FORGET, params![before.0, most])?;
        Ok(usize::try_from(gone).unwrap_or(usize::MAX))
    }
}

fn token(cells: &mut Cells<'_>) -> Result<SessionToken, StoreError> {
    Ok(SessionToken {
        id: cells.parsed(SessionId::parse)?,
        life: Life(cells.number()?),
    })
}

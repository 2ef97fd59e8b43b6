//! A store that has been in use for a long time: many sessions, nearly all of them ended, and as
//! many keys.
//!
//! It is written through the store interface, so it works with every backend and every schema. The
//! names of the `n`th session and the `n`th key follow from `n` alone, so a benchmark can pick them
//! at random. Handles and keys are scattered over their indexes, as real ones are; nothing is
//! random.

use tenure_core::claim::{EndedBy, Hold, HoldEnd, Means};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{
    AgentName, Epoch, Handle, HostId, Life, Malformed, NativeId, SessionId, SessionToken,
};
use tenure_core::key::Key;
use tenure_core::process::{BootId, Process, StartTicks};
use tenure_core::session::{Closed, ClosedBy, Session, Title, Workdir};
use tenure_core::store::{Store, StoreError, Tx, TxMode};
use tenure_core::time::{Deadline, Era, Timestamp};

/// When the first session started.
const BEGAN: i64 = 1_700_000_000_000;
/// The time between the starts of two sessions.
const APART: i64 = 30_000;
/// How many sessions ran in one boot of the machine.
const PER_BOOT: u32 = 10_000;
/// How many sessions one transaction writes.
const BATCH: u32 = 50_000;
/// How many codes of five letters there are, from the 26 letters of handles.
const CODES: u32 = 26 * 26 * 26 * 26 * 26;

const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// What to fill a store with.
#[derive(Debug, Clone)]
pub struct Seed {
    /// How many sessions, and how many keys.
    pub sessions: u32,
    /// How many of the sessions, the newest ones, never ended. Every other one of them holds its
    /// key.
    pub open: u32,
    /// The machine that they ran on.
    pub host: HostId,
    /// Its current boot, in which the newest ran.
    pub boot: BootId,
    /// The pid namespace in which they ran.
    pub pid_ns: u64,
}

pub fn seed(store: &mut dyn Store, seed: &Seed) -> Result<(), StoreError> {
    let mut from = 0;
    while from < seed.sessions {
        let to = seed.sessions.min(from + BATCH);
        let mut tx = store.begin(TxMode::Beat)?;
        for n in from..to {
            seed.add(tx.as_mut(), n)?;
        }
        tx.commit()?;
        from = to;
    }
    Ok(())
}

/// The id of the `n`th session.
pub fn id(n: u32) -> SessionId {
    let mut random = [0; 10];
    random[..8].copy_from_slice(&scattered(n).to_be_bytes());
    SessionId::mint(started(n).0, random)
}

/// The handle of the `n`th session.
pub fn handle(n: u32) -> Result<Handle, Malformed> {
    const LETTERS: &[u8; 26] = b"23456789bcdfghjkmnpqrstvwz";
    // The factor and the number of codes have no common divisor, so no code occurs twice.
    let mut code = u64::from(n) * 7_919_731 % u64::from(CODES);
    let mut text = format!("{}-", agent(n).as_str());
    for _ in 0..5 {
        let letter = usize::try_from(code % 26).unwrap_or(0);
        text.push(char::from(LETTERS[letter]));
        code /= 26;
    }
    Handle::parse(&text)
}

/// The `n`th key: an issue, a work package or, now and then, a path.
pub fn key(n: u32) -> Result<Key, Malformed> {
    let (repo, number) = (n % 40, n / 40);
    Key::parse(&match n % 64 {
        7 => format!("path:acme/web{repo}:src/m{number}/**"),
        3 | 19 | 35 | 51 => format!("wp:{repo:03}/WP{number}"),
        _ => format!("issue:acme/web{repo}#{number}"),
    })
}

fn agent(n: u32) -> AgentName {
    AgentName::known(AGENTS[usize::try_from(n).unwrap_or(0) % AGENTS.len()])
}

/// When the `n`th session started.
pub fn started(n: u32) -> Timestamp {
    Timestamp(BEGAN + i64::from(n) * APART)
}

fn later(n: u32, millis: i64) -> Timestamp {
    Timestamp(started(n).0 + millis)
}

/// A scattered number, the same each time.
fn scattered(n: u32) -> u64 {
    let mut x = u64::from(n).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn named<T>(made: Result<T, Malformed>) -> T {
    made.unwrap_or_else(|error| panic!("a seeded name is not well formed: {error}"))
}

impl Seed {
    fn is_open(&self, n: u32) -> bool {
        n + self.open >= self.sessions
    }

    fn boot_of(&self, n: u32) -> BootId {
        let ago = (self.sessions - 1 - n) / PER_BOOT;
        match ago {
            0 => self.boot.clone(),
            _ => BootId {
                id: format!("0b007000-0000-4000-8000-{ago:012}"),
                private: self.boot.private,
            },
        }
    }

    /// The `n`th session in its only life.
    pub fn token(&self, n: u32) -> SessionToken {
        SessionToken {
            id: id(n),
            life: Life::FIRST,
        }
    }

    /// The process of the `n`th session.
    pub fn process(&self, n: u32) -> Process {
        // Pids grow and wrap around, as on a large machine; no current process has these start
        // times.
        Process {
            host: self.host.clone(),
            boot: self.boot_of(n),
            pid_ns: self.pid_ns,
            pid: 300 + n % 100_000 * 40,
            start: StartTicks {
                ticks: 1 + u64::from(n % PER_BOOT),
                shifted: false,
            },
        }
    }

    fn session(&self, n: u32) -> Session {
        let boot = self.boot_of(n);
        let closed = Closed {
            at: later(n, 20_000),
            by: ClosedBy::End,
            why: "it ended itself".into(),
            kind: ClosedBy::End.usual_kind(),
            dismissed_at: None,
        };
        let lease = Deadline {
            era: Era {
                id: boot.id,
                private: boot.private,
            },
            at: 1 + i64::from(n % PER_BOOT),
        };
        Session {
            native_id: Some(native(n)),
            title: Some(Title::person(format!("work package {n}"))),
            workdir: Workdir {
                dir: format!("/home/dev/src/web{}/.worktrees/w{}", n % 40, n % 8),
                repo: Some(format!("acme/web{}", n % 40)),
                branch: Some(format!("agent/{n}")),
            },
            process: Some(self.process(n)),
            seen_at: later(n, 15_000),
            closed: (!self.is_open(n)).then_some(closed),
            revision: 1,
            ..Session::new(id(n), named(handle(n)), agent(n), started(n), lease)
        }
    }

    /// Adds the session and the key with this number, and all their records.
    pub fn add(&self, tx: &mut dyn Tx, n: u32) -> Result<(), StoreError> {
        let session = self.session(n);
        let process = self.process(n);
        tx.insert_session(&session)?;
        tx.insert_life(session.token(), &process, started(n))?;
        tx.set_native_owner(&session.agent, &native(n), None, session.id, started(n))?;
        let evidence = format!("pid {}, conversation {}", process.pid, native(n));
        let registered = event(EventKind::Registered, session.id, "new", evidence);
        tx.append_event(&registered, started(n))?;
        self.add_key(tx, n, session.token())?;
        if let Some(closed) = &session.closed {
            let ended = event(EventKind::Ended, session.id, "end", closed.why.clone());
            tx.append_event(&ended, closed.at)?;
        }
        Ok(())
    }

    fn add_key(&self, tx: &mut dyn Tx, n: u32, holder: SessionToken) -> Result<(), StoreError> {
        let key = named(key(n));
        let mut epoch = Epoch::NONE;
        if n % 8 == 1 {
            // Another session had it before.
            let first = self.token(n - 1);
            epoch = grant(tx, &key, first, epoch, later(n, 1_000))?;
            end(tx, &key, first.id, epoch, EndedBy::Release, later(n, 2_000))?;
        }
        epoch = grant(tx, &key, holder, epoch, later(n, 5_000))?;
        if self.is_open(n) && n.is_multiple_of(2) {
            return Ok(());
        }
        let by = if n % 10 == 9 {
            EndedBy::Done
        } else {
            EndedBy::Release
        };
        end(tx, &key, holder.id, epoch, by, later(n, 10_000))
    }
}

fn native(n: u32) -> NativeId {
    let text = format!("{n:08x}-0000-7000-8000-{:012x}", scattered(n) >> 16);
    named(NativeId::parse(&text))
}

fn event(
    kind: EventKind,
    session: SessionId,
    mechanism: &'static str,
    evidence: String,
) -> NewEvent {
    NewEvent {
        kind,
        session: Some(session),
        actor: None,
        key: None,
        epoch: None,
        mechanism,
        evidence,
        reason: None,
    }
}

fn grant(
    tx: &mut dyn Tx,
    key: &Key,
    to: SessionToken,
    before: Epoch,
    at: Timestamp,
) -> Result<Epoch, StoreError> {
    let hold = Hold {
        key: key.clone(),
        epoch: before.next(),
        session: to.id,
        life: to.life,
        request: None,
        means: Means::Claim,
        note: None,
        home: None,
        granted_at: at,
        taken_from: None,
        ended: None,
    };
    tx.insert_hold(&hold, before)?;
    let granted = NewEvent {
        key: Some(key.clone()),
        epoch: Some(hold.epoch),
        ..event(EventKind::Granted, to.id, "claim", "it was free".into())
    };
    tx.append_event(&granted, at)?;
    Ok(hold.epoch)
}

fn end(
    tx: &mut dyn Tx,
    key: &Key,
    holder: SessionId,
    epoch: Epoch,
    by: EndedBy,
    at: Timestamp,
) -> Result<(), StoreError> {
    tx.end_hold(key, epoch, HoldEnd { at, by })?;
    let kind = match by {
        EndedBy::Done => EventKind::Done,
        _ => EventKind::Released,
    };
    let ended = NewEvent {
        key: Some(key.clone()),
        epoch: Some(epoch),
        ..event(kind, holder, by.as_str(), "released by its holder".into())
    };
    tx.append_event(&ended, at)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_comes_twice() {
        let handles: BTreeSet<_> = (0..50_000).map(|n| handle(n).unwrap()).collect();
        let keys: BTreeSet<_> = (0..50_000).map(|n| key(n).unwrap()).collect();
        let ids: BTreeSet<_> = (0..50_000).map(id).collect();
        assert_eq!(
            (handles.len(), keys.len(), ids.len()),
            (50_000, 50_000, 50_000)
        );
    }
}

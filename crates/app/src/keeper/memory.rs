//! What the store said in the last renewal, in a file: what is answered from while the store is away.
//!
//! Every process of this state directory reads it, so nothing has to ask the keeper, which may be stopped or gone. That is
//! safe, because how long the list is good depends on when the renewal began and on nothing else
//! ([`tenure_core::keeper`]): the store waits for longer than that before it gives anything away. The keeper
//! acknowledges a renewal only after the file was replaced. See docs/decisions/0006-answers-from-a-file.md.
//!
//! *Crash*: the file is replaced as a whole; an older one has an older beginning. *Clock jump*: the beginning is on the
//! boot clock, and a file of another boot says nothing. *Older version*: a file of another version says nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure_core::id::{
    AgentName, Epoch, Handle, KeeperId, Life, NativeId, SessionId, SessionToken,
};
use tenure_core::keeper::{BootTime, GuardQuestion, Renewal, Terms, Unanswered, from_memory};
use tenure_core::key::Key;
use tenure_core::present::{self, SessionSelector};
use tenure_core::process::{BootId, CallerFacts, Process};
use tenure_core::session::{Session, Workdir};
use tenure_core::time::{Deadline, Era, Timestamp};
use tenure_host::{clock, file, read};
use tenure_service::{AgentEvent, Renewed, Watched};

use super::files::KeeperFiles;
use super::spool::Spool;

const VERSION: u32 = 1;
/// Longer than any file of ours.
const MAX_LENGTH: u64 = 16 << 20;

/// The answer to a renewal.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeeperMemory {
    v: u32,
    boot: BootId,
    /// The keeper that asked, and when it renewed its row, on the store's clock.
    keeper: String,
    renewed: i64,
    /// Milliseconds of the boot clock before the renewal was sent.
    began: u64,
    /// The same moment for people.
    pub as_of: Timestamp,
    host_lease: u64,
    lock_delay: u64,
    sessions: Vec<KnownSession>,
    holds: Vec<KnownHold>,
    /// What sessions of the list held in an earlier one and did not give up themselves, and have claimed nothing since.
    lost: Vec<KnownHold>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KnownSession {
    id: String,
    life: u32,
    handle: String,
    agent: String,
    native_id: Option<String>,
    hosted: bool,
    dir: String,
    parent: Option<(String, u32)>,
    process: Option<Process>,
    daemon: Option<Process>,
}

/// A claim that a session held when the store last answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownHold {
    session: String,
    life: u32,
    key: String,
    epoch: u64,
}

impl KnownHold {
    fn token(&self) -> Option<SessionToken> {
        Some(SessionToken {
            id: SessionId::parse(&self.session).ok()?,
            life: Life(self.life),
        })
    }
}

/// A session as it was when the store last answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RememberedSession {
    pub id: String,
    pub handle: String,
    pub agent: String,
    pub dir: String,
    pub pid: Option<u32>,
    /// What it held.
    pub claims: Vec<RememberedClaim>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RememberedClaim {
    pub key: String,
    pub epoch: u64,
}

/// A permission from memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permitted {
    pub handle: Handle,
    /// The holder, if that is a session above the caller.
    pub via: Option<Handle>,
    pub epoch: Epoch,
    /// How long it is good, and since when the store has not said anything newer.
    pub left: Duration,
    pub as_of: Timestamp,
}

impl KeeperMemory {
    pub fn of(
        renewed: &Renewed,
        keeper: &KeeperId,
        began: BootTime,
        as_of: Timestamp,
        boot: &BootId,
        terms: &Terms,
    ) -> Self {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self {
            v: VERSION,
            boot: boot.clone(),
            keeper: keeper.to_string(),
            renewed: renewed.at.at,
            began: millis(began.0),
            as_of,
            host_lease: millis(terms.host_lease),
            lock_delay: millis(terms.lock_delay),
            sessions: renewed.watched.iter().map(KnownSession::of).collect(),
            holds: renewed
                .holds
                .iter()
                .map(|hold| KnownHold {
                    session: hold.session.id.to_string(),
                    life: hold.session.life.0,
                    key: hold.key.to_string(),
                    epoch: hold.epoch.0,
                })
                .collect(),
            lost: Vec::new(),
        }
    }

    /// The same with what its sessions lost since the list before it.
    #[must_use]
    pub fn after(self, before: &KeeperMemory, spool: &Spool) -> Self {
        let is_listed = |hold: &KnownHold| {
            let mut sessions = self.sessions.iter();
            sessions.any(|one| one.id == hold.session && one.life == hold.life)
        };
        let has_claimed = |lost: &KnownHold| {
            let is_new =
                |hold: &&KnownHold| hold.session == lost.session && !before.holds.contains(hold);
            self.holds.iter().any(|hold| is_new(&hold))
        };
        let was_given_up = |hold: &KnownHold| {
            let known = hold.token().zip(Key::stored(&hold.key).ok());
            known.is_some_and(|(token, key)| spool.has_given_up(token, &key, Epoch(hold.epoch)))
        };
        let gone = before
            .holds
            .iter()
            .filter(|hold| !self.holds.contains(hold));
        let gone = gone.filter(|hold| !was_given_up(hold));
        let lost = before.lost.iter().chain(gone);
        let lost = lost.filter(|hold| is_listed(hold) && !has_claimed(hold));
        let lost = lost.cloned().collect();
        Self { lost, ..self }
    }

    /// The claims that a session held or had lost when the store last answered, and whether each was lost.
    pub fn claims_of(&self, session: &Session) -> Vec<(Key, bool)> {
        let (id, life) = (session.id.to_string(), session.life.0);
        let held = self.holds.iter().map(|hold| (hold, false));
        let lost = self.lost.iter().map(|hold| (hold, true));
        held.chain(lost)
            .filter(|(hold, _)| hold.session == id && hold.life == life)
            .filter_map(|(hold, lost)| Some((Key::stored(&hold.key).ok()?, lost)))
            .collect()
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        file::write_atomic(path, &serde_json::to_vec(self)?)
    }

    /// What is remembered, if anything is that belongs to this boot.
    pub fn read(path: &Path, boot: &BootId) -> Option<Self> {
        Self::of_any_boot(path).filter(|memory| memory.boot == *boot)
    }

    fn of_any_boot(path: &Path) -> Option<Self> {
        let text = read::whole(path, MAX_LENGTH).ok()?;
        let memory: KeeperMemory = serde_json::from_slice(&text).ok()?;
        (memory.v == VERSION).then_some(memory)
    }

    /// The newest renewal of each keeper whose list is in the state directory, of whichever boot.
    pub fn renewals(files: &KeeperFiles) -> BTreeMap<String, i64> {
        let all = files.memories().into_iter();
        let all = all.filter_map(|path| Self::of_any_boot(&path));
        all.map(|one| (one.keeper, one.renewed)).collect()
    }

    /// Nothing may be permitted from a list that began before this moment. Each pid namespace has its own list, and a
    /// caller in one may act for a session in another.
    pub fn oldest(files: &KeeperFiles, boot: &BootId, terms: &Terms) -> BootTime {
        let now = clock::since_boot();
        let all = files.memories().into_iter();
        let all = all.filter_map(|path| Self::read(&path, boot));
        let good = all.filter(|one| now < one.began().plus(one.terms().margin()));
        // Without one, a renewal that began earlier may still be answered.
        let none = BootTime(now.0.saturating_sub(terms.margin()));
        good.map(|one| one.began()).min().unwrap_or(none)
    }

    /// When the renewal began, on the boot clock.
    pub fn began(&self) -> BootTime {
        BootTime(Duration::from_millis(self.began))
    }

    fn terms(&self) -> Terms {
        Terms {
            host_lease: Duration::from_millis(self.host_lease),
            lock_delay: Duration::from_millis(self.lock_delay),
        }
    }

    /// The session that a caller is, as far as it was known.
    pub fn caller(&self, facts: &CallerFacts) -> Option<Session> {
        let known: Vec<Session> = self
            .sessions
            .iter()
            .filter_map(KnownSession::session)
            .collect();
        present::among(&known, facts)
    }

    /// The session that an agent's event is about, as far as it was known.
    pub fn session_of(&self, event: &AgentEvent) -> Option<SessionToken> {
        let known = self.sessions.iter().filter_map(KnownSession::session);
        let native_id = event.native_id.as_ref();
        let of_process = |found: &Process, known: Vec<Session>| {
            let here = present::those_of(known, found);
            present::which(here, SessionSelector::Conversation(native_id)).one()
        };
        let session = match &event.process {
            Some(found) => of_process(&found.process, known.collect()),
            None => {
                let mut alone = known.filter(|one| one.process.is_none());
                alone.find(|one| native_id.is_some() && one.native_id.as_ref() == native_id)
            }
        };
        session.map(|session| session.token())
    }

    /// The claim that a session, or one above it, held.
    pub fn hold(&self, session: &Session, key: &Key) -> Option<(SessionToken, Handle, Epoch)> {
        let mut token = Some(session.token());
        // A parent's claim covers its children.
        for _ in 0..64 {
            let known = self.sessions.iter().find_map(|one| {
                let one = one.session()?;
                (Some(one.token()) == token).then_some(one)
            })?;
            let mut held = self.holds.iter();
            let held = held.find(|hold| {
                hold.session == known.id.to_string()
                    && hold.life == known.life.0
                    && hold.key == key.as_str()
            });
            if let Some(hold) = held {
                return Some((known.token(), known.handle, Epoch(hold.epoch)));
            }
            token = known.parent;
        }
        None
    }

    /// The sessions of this machine and what they held.
    pub fn sessions(&self) -> Vec<RememberedSession> {
        let claims = |session: &KnownSession| {
            let held = self
                .holds
                .iter()
                .filter(|hold| hold.session == session.id && hold.life == session.life);
            let claim = |hold: &KnownHold| RememberedClaim {
                key: hold.key.clone(),
                epoch: hold.epoch,
            };
            held.map(claim).collect()
        };
        let view = |session: &KnownSession| RememberedSession {
            id: session.id.clone(),
            handle: session.handle.clone(),
            agent: session.agent.clone(),
            dir: session.dir.clone(),
            pid: session.process.as_ref().map(|process| process.pid),
            claims: claims(session),
        };
        self.sessions.iter().map(view).collect()
    }

    /// Whether a session may write to what a key protects, from memory alone.
    pub fn guard(
        &self,
        session: &Session,
        key: &Key,
        epoch: Option<Epoch>,
        spool: &Spool,
        now: BootTime,
    ) -> Result<Permitted, Unanswered> {
        let held = self.hold(session, key);
        let holder = held
            .as_ref()
            .map_or(session.token(), |(token, _, _)| *token);
        let listed = held.as_ref().map(|(_, _, epoch)| *epoch);
        let epoch = epoch.or(listed).unwrap_or(Epoch(0));
        let renewal = Renewal {
            began: self.began(),
            listed,
        };
        let asked = GuardQuestion {
            epoch,
            given_up: spool.has_given_up(holder, key, epoch),
        };
        let until = from_memory(&self.terms(), Some(&renewal), &asked, now)?;
        let via = held.map(|(_, handle, _)| handle);
        Ok(Permitted {
            via: via.filter(|handle| *handle != session.handle),
            handle: session.handle.clone(),
            epoch,
            left: until.0.saturating_sub(now.0),
            as_of: self.as_of,
        })
    }
}

impl KnownSession {
    fn of(watched: &Watched) -> Self {
        let session = &watched.session;
        Self {
            id: session.id.to_string(),
            life: session.life.0,
            handle: session.handle.to_string(),
            agent: session.agent.to_string(),
            native_id: session.native_id.as_ref().map(ToString::to_string),
            hosted: session.hosted,
            dir: session.workdir.dir.clone(),
            parent: session
                .parent
                .map(|token| (token.id.to_string(), token.life.0)),
            process: session.process.clone(),
            daemon: session.daemon.clone(),
        }
    }

    /// The parts of a session that say who a caller is.
    fn session(&self) -> Option<Session> {
        let token = |id: &str, life: u32| {
            Some(SessionToken {
                id: SessionId::parse(id).ok()?,
                life: Life(life),
            })
        };
        let own = token(&self.id, self.life)?;
        let handle = Handle::parse(&self.handle).ok()?;
        let agent = AgentName::parse(&self.agent).ok()?;
        let native_id = self.native_id.as_deref();
        let lease = Deadline {
            era: Era {
                id: String::new(),
                private: true,
            },
            at: 0,
        };
        Some(Session {
            native_id: native_id.and_then(|id| NativeId::parse(id).ok()),
            parent: self.parent.as_ref().and_then(|(id, life)| token(id, *life)),
            workdir: Workdir {
                dir: self.dir.clone(),
                ..Workdir::default()
            },
            hosted: self.hosted,
            life: own.life,
            process: self.process.clone(),
            daemon: self.daemon.clone(),
            ..Session::new(own.id, handle, agent, Timestamp(0), lease)
        })
    }
}

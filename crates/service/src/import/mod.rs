//! Taking over what other systems kept: one transaction, one event.
//!
//! Every entry is judged against the store and the entries before it, whether or not anything is written: a report
//! without `--apply` says what one with it does. Nothing is granted, and nothing that the store has is replaced, so a
//! second import leaves everything as it is.

pub mod view;

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::event::EventKind;
use tenure_core::id::{AgentName, NativeId, SessionId, SessionToken, WorkerRole, worker_name};
use tenure_core::import::{
    Format, ImportEntry, NotTaken, PastConversation, PastParticipant, PastSession, Record,
};
use tenure_core::key::Key;
use tenure_core::mission::pointer::PointerScope;
use tenure_core::mission::{MissionId, Participant};
use tenure_core::session::{Closed, ClosedBy, EndKind, MetaKey, Session, Workdir};
use tenure_core::store::{Lock, TxMode};

use crate::context::{Ctx, Stop};
use crate::conversation::request::root_of;
use crate::conversation::{import_conversation, is_another};
use crate::mission::MissionPlace;
use crate::transact::{Reply, Service};
use view::{ImportView, ImportedView};

/// Entries to take over.
#[derive(Debug)]
pub struct ImportRequest {
    pub format: Format,
    /// Where they are from, for the log.
    pub source: String,
    pub entries: Vec<ImportEntry>,
    /// Write what is taken.
    pub apply: bool,
}

/// The answer to an import.
#[derive(Debug, Clone)]
pub struct Imported {
    pub report: ImportView,
    /// Tokens of participants that were taken: the session, the mission, the token.
    pub tokens: Vec<(String, String, String)>,
}

impl Service<'_> {
    /// Judges entries of another system and, if asked to, takes them over.
    pub fn import(&mut self, here: &MissionPlace, request: &ImportRequest) -> Reply<Imported> {
        let mode = if request.apply {
            TxMode::Write
        } else {
            TxMode::Read
        };
        self.transact(mode, |ctx| {
            let mut import = Import {
                request,
                here,
                sessions: BTreeMap::new(),
                conversations: BTreeMap::new(),
                items: BTreeMap::new(),
                parents: BTreeMap::new(),
                tokens: Vec::new(),
            };
            import.all(ctx)
        })
    }
}

/// A session's id with its agent.
type Native = (AgentName, NativeId);

struct Import<'a> {
    request: &'a ImportRequest,
    here: &'a MissionPlace,
    /// Sessions so far; without `apply` those that are taken have no id.
    sessions: BTreeMap<Native, Option<SessionId>>,
    /// The native ids of the conversations taken so far.
    conversations: BTreeMap<(AgentName, WorkerRole, Key), NativeId>,
    /// Which item has a native id taken so far.
    items: BTreeMap<Native, String>,
    /// The parents of sessions so far, unless the store has them.
    parents: BTreeMap<Native, Native>,
    tokens: Vec<(String, String, String)>,
}

/// What is known of the parent that a session names.
enum Parent {
    /// It names none.
    Unnamed,
    /// It is here, or taken; without `apply` one that is taken has no id.
    Found(Option<SessionId>),
    /// Neither the store nor the entries have it.
    Missing(NativeId),
}

type ImportCheck = Result<Result<String, NotTaken>, Stop>;

impl Import<'_> {
    fn all(&mut self, ctx: &mut Ctx<'_>) -> Result<Imported, Stop> {
        let request = self.request;
        let mut entries = Vec::new();
        for at in parents_first(&request.entries) {
            let entry = &request.entries[at];
            let judged = match &entry.content {
                Ok(record) => self.one(ctx, record)?,
                Err(why) => Err(why.clone()),
            };
            let (verdict, became, why) = match judged {
                Ok(became) => ("taken", Some(became), None),
                Err(NotTaken::Refused(why)) => ("refused", None, Some(why)),
                Err(NotTaken::Left(why)) => ("left", None, Some(why)),
            };
            let view = ImportedView {
                name: entry.name.clone(),
                source: entry.source.clone(),
                verdict,
                became,
                why,
            };
            entries.push((at, view));
        }
        entries.sort_by_key(|(at, _)| *at);
        let entries: Vec<ImportedView> = entries.into_iter().map(|(_, view)| view).collect();
        let count = |verdict| entries.iter().filter(|one| one.verdict == verdict).count();
        let report = ImportView {
            format: request.format.as_str(),
            source: request.source.clone(),
            applied: request.apply,
            read: entries.len(),
            taken: count("taken"),
            refused: count("refused"),
            left: count("left"),
            entries,
        };
        if request.apply && report.taken > 0 {
            let evidence = format!(
                "{} from {}: {} taken, {} refused, {} left",
                report.format, report.source, report.taken, report.refused, report.left
            );
            ctx.log(&ctx.event(EventKind::Imported, None, "import", evidence))?;
        }
        Ok(Imported {
            report,
            tokens: std::mem::take(&mut self.tokens),
        })
    }

    fn one(&mut self, ctx: &mut Ctx<'_>, record: &Record) -> ImportCheck {
        match record {
            Record::Conversation(one) => self.conversation(ctx, one),
            Record::Session(one) => self.session(ctx, one),
            Record::Participant(one) => self.participant(ctx, one),
            Record::Pointer(mission) => self.pointer(ctx, mission),
        }
    }

    fn conversation(&mut self, ctx: &mut Ctx<'_>, one: &PastConversation) -> ImportCheck {
        let Some(home) = &one.home else {
            return Ok(NotTaken::refused("its directory is not on this machine"));
        };
        let worker = worker_name(one.agent.as_str(), one.role.label());
        let place = (
            one.agent.clone(),
            one.role.clone(),
            root_of(ctx, &one.item)?,
        );
        if let Some(taken) = self.conversations.get(&place) {
            if *taken == one.native_id {
                return Ok(NotTaken::left("it is there twice"));
            }
            return Ok(is_another(&worker, &one.item, taken));
        }
        let id = (one.agent.clone(), one.native_id.clone());
        if let Some(item) = self.items.get(&id) {
            let why = format!("{} is already the one of {item}", one.native_id);
            return Ok(NotTaken::refused(why));
        }
        let judged = import_conversation(ctx, one, home, self.request.apply)?;
        let is_taken = judged.is_ok();
        if is_taken {
            self.items.insert(id, one.item.to_string());
            self.conversations.insert(place, one.native_id.clone());
        }
        let became = format!("the conversation of {worker} on {}", one.item);
        Ok(judged.map(|()| became))
    }

    fn session(&mut self, ctx: &mut Ctx<'_>, one: &PastSession) -> ImportCheck {
        let id = (one.agent.clone(), one.native_id.clone());
        if self.sessions.contains_key(&id) {
            return Ok(NotTaken::left("it is there twice"));
        }
        if let Some(owner) = ctx.tx.native_owner(&one.agent, &one.native_id)? {
            self.sessions.insert(id, Some(owner));
            return self.known(ctx, owner, one);
        }
        let parent = self.parent(ctx, one)?;
        let past = Past {
            agent: &one.agent,
            native_id: &one.native_id,
            parent: match parent {
                Parent::Found(Some(id)) => Some(token(id)),
                _ => None,
            },
            workdir: Workdir {
                dir: one.dir.clone(),
                repo: None,
                branch: one.branch.clone(),
            },
            from: one.started_at,
            until: one.ended_at,
            why: &one.why,
        };
        let mut became = "a session that is over".to_owned();
        let mut created = None;
        if self.request.apply {
            let session = create(ctx, &past)?;
            self.label(ctx, session.id, one)?;
            became = format!("{}, a session that is over", session.handle);
            created = Some(session.id);
        }
        match parent {
            Parent::Missing(parent) => {
                became = format!("{became}; its parent {parent} is not known");
            }
            Parent::Found(_) => self.follows(one),
            Parent::Unnamed => {}
        }
        self.sessions.insert(id, created);
        Ok(Ok(became))
    }

    /// A session that the store knows gets the metadata that it does not have yet, and one that is over its parent.
    fn known(&mut self, ctx: &mut Ctx<'_>, owner: SessionId, one: &PastSession) -> ImportCheck {
        let session = ctx.session(owner)?;
        let present = ctx.metadata(owner)?;
        let is_new = |(name, _): &&(&str, String)| !present.keys().any(|key| key.as_str() == *name);
        let mut gets: Vec<&str> = one
            .metadata
            .iter()
            .filter(is_new)
            .map(|one| one.0)
            .collect();
        let parent = self.missed_parent(ctx, &session, one)?;
        if parent.is_some() {
            gets.push("the parent");
        }
        let handle = session.handle;
        if gets.is_empty() {
            return Ok(NotTaken::left(format!("it is here already, as {handle}")));
        }
        if self.request.apply {
            ctx.lock([Lock::Session(owner)])?;
            self.label(ctx, owner, one)?;
            if let Some(Some(parent)) = parent {
                let session = Session {
                    parent: Some(token(parent)),
                    ..ctx.session(owner)?
                };
                ctx.tx.update_session(&session)?;
            }
        }
        Ok(Ok(format!("{} of {handle}", gets.join(", "))))
    }

    /// The parent that a session which is over does not have yet.
    fn missed_parent(
        &mut self,
        ctx: &mut Ctx<'_>,
        session: &Session,
        one: &PastSession,
    ) -> Result<Option<Option<SessionId>>, Stop> {
        if session.is_open() || session.parent.is_some() {
            return Ok(None);
        }
        let Parent::Found(found) = self.parent(ctx, one)? else {
            return Ok(None);
        };
        if self.is_above(ctx, one)? {
            return Ok(None);
        }
        self.follows(one);
        Ok(Some(found))
    }

    /// Notes whose child a session is.
    fn follows(&mut self, one: &PastSession) {
        if let Some(parent) = &one.parent {
            let (child, parent) = (one.native_id.clone(), parent.clone());
            let parent = (one.agent.clone(), parent);
            self.parents.insert((one.agent.clone(), child), parent);
        }
    }

    /// Whether the parent that a session names descends from that session.
    fn is_above(&self, ctx: &mut Ctx<'_>, one: &PastSession) -> Result<bool, Stop> {
        let of_agent = |id: &NativeId| (one.agent.clone(), id.clone());
        let mut seen = BTreeSet::from([of_agent(&one.native_id)]);
        let mut above = one.parent.as_ref().map(of_agent);
        while let Some(id) = above {
            if !seen.insert(id.clone()) {
                return Ok(true);
            }
            above = match self.parents.get(&id) {
                Some(parent) => Some(parent.clone()),
                None => stored_parent(ctx, &id)?,
            };
        }
        Ok(false)
    }

    /// Stores the metadata that a session does not have yet.
    fn label(&self, ctx: &mut Ctx<'_>, id: SessionId, one: &PastSession) -> Result<(), Stop> {
        let present = ctx.metadata(id)?;
        for (name, value) in &one.metadata {
            let key = MetaKey::parse(name).map_err(crate::error::Error::from)?;
            if !present.contains_key(&key) {
                ctx.tx.set_metadata(id, &key, Some(value))?;
            }
        }
        Ok(())
    }

    fn parent(&self, ctx: &mut Ctx<'_>, one: &PastSession) -> Result<Parent, Stop> {
        let Some(native_id) = &one.parent else {
            return Ok(Parent::Unnamed);
        };
        if let Some(taken) = self.sessions.get(&(one.agent.clone(), native_id.clone())) {
            return Ok(Parent::Found(*taken));
        }
        let owner = ctx.tx.native_owner(&one.agent, native_id)?;
        Ok(match owner {
            Some(owner) => Parent::Found(Some(owner)),
            None => Parent::Missing(native_id.clone()),
        })
    }

    fn participant(&mut self, ctx: &mut Ctx<'_>, one: &PastParticipant) -> ImportCheck {
        let (mission, id) = (&one.mission, &one.participant);
        if self.request.apply {
            ctx.lock([Lock::Mission(mission.to_string())])?;
        }
        if !one.role.is_listed(&self.here.roles) {
            let why = format!("role {:?} is not among missions.roles", one.role.as_str());
            return Ok(NotTaken::refused(why));
        }
        let rows = ctx.tx.participants(mission.as_str())?;
        if rows.iter().any(|row| row.participant == id.as_str()) {
            return Ok(NotTaken::left("it is here already"));
        }
        if one.active_at > ctx.now.wall {
            return Ok(NotTaken::refused("its last activity is in the future"));
        }
        if self.request.apply {
            self.join(ctx, one)?;
        }
        Ok(Ok(format!("participant {id} of {mission}")))
    }

    /// A participant is a session: one that is over stands for the participant that joined there. Who joins here with the same
    /// participant id continues it.
    fn join(&mut self, ctx: &mut Ctx<'_>, one: &PastParticipant) -> Result<(), Stop> {
        let past = Past {
            agent: &AgentName::known("spec-kitty"),
            native_id: &NativeId::parse(&format!("{}:{}", one.mission, one.participant))
                .map_err(crate::error::Error::from)?,
            parent: None,
            workdir: Workdir::default(),
            from: one.joined_at,
            until: one.active_at,
            why: "a participant in spec-kitty",
        };
        let session = create(ctx, &past)?;
        ctx.tx.make_mission(&one.mission, one.joined_at)?;
        ctx.tx.insert_participant(&Participant {
            mission: one.mission.clone(),
            session: session.id,
            participant: one.participant.clone(),
            role: one.role.clone(),
            joined_at: one.joined_at,
            active_at: one.active_at,
            drive: one.drive,
            focus: one.focus.clone(),
            run_id: one.run_id.clone(),
            api_url: one.api_url.clone(),
            revision: 0,
        })?;
        if let Some(token) = &one.token {
            let mission = one.mission.to_string();
            self.tokens
                .push((session.id.to_string(), mission, token.clone()));
        }
        Ok(())
    }

    fn pointer(&mut self, ctx: &mut Ctx<'_>, mission: &MissionId) -> ImportCheck {
        let scope = PointerScope::User(self.here.user.clone());
        let before = ctx.tx.pointer(&scope)?;
        if let Some(before) = before {
            let why = format!("this user's active mission is {} here", before.mission);
            return Ok(NotTaken::left(why));
        }
        if self.request.apply {
            ctx.write()?;
            ctx.tx.set_pointer(&scope, Some(mission), ctx.now.wall)?;
        }
        Ok(Ok(format!("this user's active mission: {mission}")))
    }
}

fn token(id: SessionId) -> SessionToken {
    SessionToken {
        id,
        life: tenure_core::id::Life::FIRST,
    }
}

fn stored_parent(ctx: &mut Ctx<'_>, of: &Native) -> Result<Option<Native>, Stop> {
    let Some(owner) = ctx.tx.native_owner(&of.0, &of.1)? else {
        return Ok(None);
    };
    let Some(parent) = ctx.session(owner)?.parent else {
        return Ok(None);
    };
    let parent = ctx.tx.session(parent.id)?;
    Ok(parent.and_then(|parent| Some((parent.agent, parent.native_id?))))
}

/// The order in which entries are judged: theirs, but a session after its parent, wherever the file has that.
fn parents_first(entries: &[ImportEntry]) -> Vec<usize> {
    let session = |at: usize| match &entries[at].content {
        Ok(Record::Session(one)) => Some(one),
        _ => None,
    };
    let mut places = BTreeMap::new();
    for at in 0..entries.len() {
        if let Some(one) = session(at) {
            places.entry((&one.agent, &one.native_id)).or_insert(at);
        }
    }
    let mut order = Vec::new();
    let mut is_placed = vec![false; entries.len()];
    for start in 0..entries.len() {
        let mut line = Vec::new();
        let mut next = Some(start);
        while let Some(at) = next.filter(|at| !is_placed[*at]) {
            is_placed[at] = true;
            line.push(at);
            next = session(at).and_then(|one| {
                let parent = one.parent.as_ref()?;
                places.get(&(&one.agent, parent)).copied()
            });
        }
        order.extend(line.into_iter().rev());
    }
    order
}

/// A session that was over before it came here.
struct Past<'a> {
    agent: &'a AgentName,
    native_id: &'a NativeId,
    parent: Option<SessionToken>,
    workdir: Workdir,
    from: tenure_core::time::Timestamp,
    until: tenure_core::time::Timestamp,
    why: &'a str,
}

fn create(ctx: &mut Ctx<'_>, past: &Past<'_>) -> Result<Session, Stop> {
    ctx.lock([Lock::Native(past.agent.clone(), past.native_id.clone())])?;
    let (id, handle) = ctx.mint(past.agent)?;
    let lease = ctx.now.after(std::time::Duration::ZERO);
    let session = Session {
        native_id: Some(past.native_id.clone()),
        parent: past.parent,
        workdir: past.workdir.clone(),
        seen_at: past.until,
        closed: Some(Closed {
            at: past.until,
            by: ClosedBy::End,
            why: past.why.to_owned(),
            kind: EndKind::Left,
            dismissed_at: None,
        }),
        ..Session::new(id, handle, past.agent.clone(), past.from, lease)
    };
    ctx.tx.insert_session(&session)?;
    ctx.created.push(session.id);
    let at = past.from;
    ctx.tx
        .set_native_owner(past.agent, past.native_id, None, id, at)?;
    Ok(session)
}

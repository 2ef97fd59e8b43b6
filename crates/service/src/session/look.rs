//! Reading: lists, one session, the log. The only change is that a death found on the way is recorded.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::answer::Reader;
use crate::caller::{self, ActFor, Caller, Purpose};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::list::{Listed, MAX_COUNTED, counted, unless_damaged};
use crate::session::acts::no_such_value;
use crate::session::troubles::{self, Troubles};
use crate::session::view::{ResolvedView, SessionView};
use crate::transact::{Reply, Service};
use crate::unseen::Unseen;
use tenure_core::activity::ShownActivity;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::liveness::{Doubt, Liveness};
use tenure_core::order::{Facts, Rank, rank};
use tenure_core::process::Process;
use tenure_core::session::{Doing, MetaKey, Session, State, Workdir};
use tenure_core::store::{SessionFilter, TxMode};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Include those that ended.
    pub closed_too: bool,
    pub repo: Option<String>,
    /// A directory in a worktree of that repository, to include sessions that registered when it had another
    /// name.
    pub worktree: Option<String>,
    /// Only those in this directory or below.
    pub under: Option<String>,
    /// At most this many; zero means all.
    pub limit: usize,
}

impl ListRequest {
    /// Sessions in the repository of a directory; outside a repository, in that directory or below.
    pub fn around(workdir: &Workdir) -> Self {
        match &workdir.repo {
            Some(repo) => Self {
                repo: Some(repo.clone()),
                worktree: Some(workdir.dir.clone()),
                ..Self::default()
            },
            None => Self::below(workdir),
        }
    }

    /// Sessions in exactly this directory or below.
    pub fn below(workdir: &Workdir) -> Self {
        Self {
            under: Some(workdir.dir.clone()),
            ..Self::default()
        }
    }
}

/// The caller, and how it was identified.
#[derive(Debug, Clone)]
pub struct Whoami {
    pub session: SessionView,
    pub resolved: ResolvedView,
    pub metadata: BTreeMap<String, String>,
    pub parent: Option<String>,
}

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitGoal {
    /// The end or the death of a session.
    Ends,
    /// The same, or the end of its turn.
    Rests,
}

/// A session that someone waits for.
#[derive(Debug, Clone)]
pub struct Awaited {
    pub session: SessionView,
    /// Whether the condition is met.
    pub is_so: bool,
    /// The process to watch for its exit.
    pub process: Option<Process>,
    /// The agent's file for the conversation, if known.
    pub transcript: Option<String>,
}

impl Service<'_> {
    /// The caller's session, with what it holds.
    pub fn own_session(&mut self, act_for: &ActFor) -> Reply<Whoami> {
        self.transact(TxMode::Read, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Read)?;
            whoami(ctx, &caller)
        })
    }

    /// The other open sessions there.
    pub fn who(&mut self, act_for: &ActFor, request: &ListRequest) -> Reply<Listed<SessionView>> {
        let dir = request.worktree.as_ref().or(request.under.as_ref());
        if let Some(dir) = dir {
            self.repair_tree_locks(dir);
        }
        self.transact(TxMode::Read, |ctx| {
            // Without delivering notices, which belong to the answer.
            let me = match caller::require(ctx, act_for, Purpose::Peek) {
                Ok(caller) => Some(caller.session.handle.to_string()),
                Err(Stop::Refuse(_)) => None,
                Err(other) => return Err(other),
            };
            caller::identify(ctx)?;
            let mut rows = list_living(ctx, request)?;
            rows.retain(|row| !row.is_over() && Some(&row.view.handle) != me.as_ref());
            let found = rows.len();
            let rows = ordered(ctx, rows)?;
            listed_rows(ctx, request, rows, found)
        })
    }

    /// All details of one session. A person who reads them has seen the session.
    pub fn show(&mut self, name: &str) -> Reply<Whoami> {
        let mut read_by_person = None;
        let shown = self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let session = caller::find(ctx, name)?;
            let session = ctx.record_death_if_proved(session)?;
            ctx.ask_about_all(std::slice::from_ref(&session))?;
            let session = ctx.with_end(session);
            let caller = Caller {
                evidence: format!("given as {name}"),
                session,
                by: caller::ResolvedBy::Flag,
                itself_by: None,
                disagreements: Vec::new(),
                blind: false,
                actor: None,
                reason: None,
            };
            let is_person = matches!(ctx.effects.reader, Reader::Person | Reader::Newcomer);
            let is_news = is_person && caller.session.is_open();
            read_by_person = is_news.then(|| caller.session.id.to_string());
            let mut shown = whoami(ctx, &caller)?;
            if !caller.session.is_open() && shown.session.starting().is_none() {
                let left = ctx.survivors(&caller.session, caller.session.life)?;
                shown.session.add_survivors(&left);
            }
            Ok(shown)
        })?;
        if let Some(id) = read_by_person {
            // Reading succeeds even if the visit cannot be recorded.
            drop(self.attend(&id));
        }
        Ok(shown)
    }

    /// Whether a session is alive: yes, no, or an error if that is unknown.
    pub fn alive(&mut self, name: &str) -> Reply<(bool, SessionView)> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let session = caller::find(ctx, name)?;
            let session = ctx.record_death_if_proved(session)?;
            let view = ctx.view(&session)?;
            match ctx.liveness(&session)? {
                // Its machine reports that it runs.
                Liveness::Alive | Liveness::Unknown(Doubt::Watched { .. }) => Ok((true, view)),
                Liveness::Dead(_) if view.starting().is_some() => Ok((true, view)),
                Liveness::Dead(_) => Ok((false, view)),
                Liveness::Unknown(doubt) => Err(Error::CannotTell {
                    handle: session.handle.to_string(),
                    doubt,
                    key: None,
                }
                .into()),
            }
        })
    }

    /// Only the caller's handle: no notice is delivered and nothing is renewed.
    pub fn peek(&mut self, act_for: &ActFor) -> Reply<String> {
        self.transact(TxMode::Read, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Peek)?;
            Ok(caller.session.handle.to_string())
        })
    }

    /// Whether a person calls from a terminal, outside any session and any agent.
    pub fn is_newcomer(&mut self) -> Reply<bool> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            Ok(ctx.effects.reader == Reader::Newcomer)
        })
    }

    pub fn awaited(&mut self, name: &str, until: WaitGoal) -> Reply<Awaited> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let session = caller::find(ctx, name)?;
            let session = ctx.record_death_if_proved(session)?;
            ctx.ask_about_all(std::slice::from_ref(&session))?;
            let at_work = |doing: Doing| doing.is_in_turn() || doing == Doing::Suspended;
            let rests = (ctx.shown(&session)).is_some_and(|now| !at_work(now.doing));
            let transcript = match &session.native_id {
                Some(native_id) => ctx.tx.transcript_of(session.id, native_id)?,
                None => None,
            };
            let starting = ctx.starting(&session)?;
            let is_over = !session.is_open() && starting.is_none();
            Ok(Awaited {
                transcript: transcript.map(|known| known.file().to_owned()),
                is_so: is_over || (until == WaitGoal::Rests && rests && session.is_open()),
                session: ctx.view(&session)?,
                process: match starting {
                    Some(process) => Some(process),
                    None => ctx.watched(&session)?,
                },
            })
        })
    }

    /// The processes of open sessions, newest first, to watch for their exit.
    pub fn open_processes(&mut self, limit: usize) -> Reply<Vec<Process>> {
        self.transact(TxMode::Read, |ctx| {
            let filter = SessionFilter {
                limit,
                ..SessionFilter::default()
            };
            let open = ctx.tx.list_sessions(&filter)?;
            let mut watched = Vec::new();
            for session in open {
                // If the window of a conversation is gone, the daemon is watched.
                match session.daemon {
                    Some(_) => watched.extend(ctx.watched(&session)?),
                    None => watched.extend(session.process),
                }
            }
            Ok(watched)
        })
    }

    /// A session's metadata values, or one of them.
    pub fn metadata(
        &mut self,
        act_for: &ActFor,
        key: Option<&MetaKey>,
    ) -> Reply<BTreeMap<String, String>> {
        self.transact(TxMode::Read, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Read)?;
            let mut kept = plain(ctx.metadata(caller.session.id)?);
            if let Some(key) = key {
                let value = kept
                    .remove(key.as_str())
                    .ok_or_else(|| no_such_value(key))?;
                kept = BTreeMap::from([(key.as_str().to_owned(), value)]);
            }
            Ok(kept)
        })
    }
}

fn plain(kept: BTreeMap<MetaKey, String>) -> BTreeMap<String, String> {
    kept.into_iter()
        .map(|(key, value)| (key.as_str().to_owned(), value))
        .collect()
}

pub(crate) fn whoami(ctx: &mut Ctx<'_>, caller: &Caller) -> Result<Whoami, Stop> {
    let session = &caller.session;
    ctx.look_at_branches(std::slice::from_ref(session))?;
    let liveness = ctx.liveness(session)?;
    let parent = match session.parent {
        Some(token) => Some(ctx.session(token.id)?.handle.to_string()),
        None => None,
    };
    Ok(Whoami {
        session: ctx.view_as(session, &liveness)?,
        resolved: ResolvedView {
            by: caller.by.as_str(),
            evidence: caller.evidence.clone(),
            disagreements: caller
                .disagreements
                .iter()
                .map(ToString::to_string)
                .collect(),
            store: ctx.location.clone(),
            token: caller.is_itself().then(|| session.token().to_string()),
        },
        metadata: plain(ctx.metadata(session.id)?),
        parent,
    })
}

pub(crate) fn filter_of(request: &ListRequest) -> SessionFilter {
    SessionFilter {
        closed_too: request.closed_too,
        repo: request.repo.clone(),
        under: request.under.clone(),
        readable_only: true,
        limit: request.limit,
        ..SessionFilter::default()
    }
}

/// Rows in display order, each with its rank.
pub(crate) fn ordered(
    ctx: &mut Ctx<'_>,
    mut rows: Vec<ListedSession>,
) -> Result<Vec<ListedSession>, Stop> {
    let seen: Vec<(&Session, bool)> = rows
        .iter()
        .map(|row| (&row.session, row.is_over()))
        .collect();
    let troubles = troubles::of(ctx, &seen)?;
    rows.sort_by_cached_key(|row| row.rank(&troubles));
    let handles: HashMap<SessionId, String> = rows
        .iter()
        .map(|row| (row.session.id, row.view.handle.clone()))
        .collect();
    for row in &mut rows {
        row.view.rank = Some(row.rank(&troubles).0.as_str());
        let others = troubles.collides.get(&row.session.id);
        let others = others.into_iter().flatten();
        let named = others.filter_map(|id| handles.get(id).cloned());
        row.view.collides_with = Some(named.collect());
        let lost = troubles.lost.get(&row.session.id);
        row.view.lost = Some(lost.cloned().unwrap_or_default());
    }
    Ok(rows)
}

/// The rows in order, of which the request's own filter found this many.
pub(crate) fn listed_rows(
    ctx: &mut Ctx<'_>,
    request: &ListRequest,
    mut rows: Vec<ListedSession>,
    found: usize,
) -> Result<Listed<SessionView>, Stop> {
    let limit = request.limit;
    let mut more = if limit > 0 && found >= limit {
        let filter = SessionFilter {
            count_to: found + MAX_COUNTED + 1,
            ..filter_of(request)
        };
        ctx.tx.count_sessions(&filter)?.saturating_sub(found)
    } else {
        0
    };
    if limit > 0 && rows.len() > limit {
        more += rows.len() - limit;
        rows.truncate(limit);
    }
    let (more, more_is_least) = counted(more);
    Ok(Listed {
        items: rows.into_iter().map(|row| row.view).collect(),
        more,
        more_is_least,
    })
}

/// A session in a list: its record decides, its view is shown.
pub(crate) struct ListedSession {
    pub session: Session,
    state: State,
    shown: Option<ShownActivity>,
    pub view: SessionView,
}

impl ListedSession {
    /// Whether it was cut off recently, with something left to resume.
    pub fn is_cut_off(&self) -> bool {
        self.view.resume.is_some()
    }

    pub fn new(ctx: &mut Ctx<'_>, session: Session) -> Result<Self, Stop> {
        let liveness = ctx.liveness(&session)?;
        let view = ctx.view_as(&session, &liveness)?;
        Ok(Self {
            state: match view.starting() {
                Some(_) => State::Live,
                None => ctx.state(&session, &liveness),
            },
            shown: ctx.shown(&session).filter(|_| view.starting().is_none()),
            view,
            session,
        })
    }

    fn conversation(&self) -> Option<(AgentName, NativeId)> {
        let native_id = self.session.native_id.clone()?;
        Some((self.session.agent.clone(), native_id))
    }

    /// Whether it ended or died, recorded or not.
    pub fn is_over(&self) -> bool {
        let is_closed = !self.session.is_open() || self.state == State::Dead;
        is_closed && self.view.starting().is_none()
    }

    /// Whether it is alive and waits for a person's answer.
    pub fn waits_for_a_person(&self) -> bool {
        self.view.waits_for_a_person()
    }

    fn rank(&self, troubles: &Troubles) -> (Rank, i64) {
        let shown = self.shown.as_ref();
        let closed = self.session.closed.as_ref();
        rank(&Facts {
            state: self.state,
            doing: match self.view.starting() {
                Some(_) => Some(Doing::Starting),
                None => shown.map(|shown| shown.doing),
            },
            since: shown.map(|shown| shown.since),
            finished: self.view.finished,
            died_with_work: self.is_cut_off() || troubles.died_with_work.contains(&self.session.id),
            lost_claim: troubles.lost.contains_key(&self.session.id),
            collides: troubles.collides.contains_key(&self.session.id),
            started_at: self.session.started_at,
            ended_at: closed.map(|closed| closed.at),
        })
    }
}

pub(crate) fn list(ctx: &mut Ctx<'_>, request: &ListRequest) -> Result<Vec<ListedSession>, Stop> {
    rows(ctx, request, false)
}

/// The same without those that are found dead. Their deaths are still recorded.
pub(crate) fn list_living(
    ctx: &mut Ctx<'_>,
    request: &ListRequest,
) -> Result<Vec<ListedSession>, Stop> {
    rows(ctx, request, true)
}

fn rows(
    ctx: &mut Ctx<'_>,
    request: &ListRequest,
    living: bool,
) -> Result<Vec<ListedSession>, Stop> {
    let filter = filter_of(request);
    let mut sessions = ctx.tx.list_sessions(&filter)?;
    if let Some(dir) = &request.worktree {
        add_renamed(ctx, &mut sessions, &filter, dir)?;
    }
    if request.worktree.is_some() || request.under.is_some() {
        sessions.retain(|session| ctx.is_beside(session));
    }
    let damage = ctx.tx.take_damage();
    ctx.effects.damage.extend(damage);
    let starting = ctx.starting_sessions(&filter, &sessions)?;
    sessions.extend(starting);
    ctx.read_open_runs()?;
    ctx.look_at_all(&sessions)?;
    ctx.look_at_branches(&sessions)?;
    ctx.ask_about_all(&sessions)?;
    let mut shown = Vec::new();
    for session in &sessions {
        let is_dead = matches!(ctx.liveness(session)?, Liveness::Dead(_));
        if !living || !is_dead || ctx.starting(session)?.is_some() {
            shown.push(session);
        }
    }
    ctx.read_batch(&shown)?;
    let mut rows = Vec::with_capacity(sessions.len());
    let mut unseen = Unseen::default();
    for session in sessions {
        let handle = session.handle.to_string();
        let session = ctx.record_death_later(session);
        let session = session.map(|session| ctx.with_end(session));
        let row = session.and_then(|session| match ctx.liveness(&session)? {
            Liveness::Dead(_) if living && ctx.starting(&session)?.is_none() => Ok(None),
            _ => ListedSession::new(ctx, session).map(Some),
        });
        if let Some(row) = unless_damaged(ctx, &handle, row).transpose() {
            rows.extend(unseen.gather(row)?.flatten());
        }
    }
    unseen.look()?;
    mark_twins(ctx, &mut rows)?;
    Ok(rows)
}

/// Marks the sessions that are open in the same conversation.
fn mark_twins(ctx: &mut Ctx<'_>, rows: &mut [ListedSession]) -> Result<(), Stop> {
    let listed: HashSet<SessionId> = rows.iter().map(|row| row.session.id).collect();
    let mut open: HashMap<(AgentName, NativeId), Vec<String>> = HashMap::new();
    for row in rows.iter().filter(|row| !row.is_over()) {
        if let Some(conversation) = row.conversation() {
            let handle = row.session.handle.to_string();
            open.entry(conversation).or_default().push(handle);
        }
    }
    for row in rows.iter_mut().filter(|row| !row.is_over()) {
        let beside = row.conversation().and_then(|own| open.get(&own));
        let own = row.session.handle.as_str();
        let beside = beside.into_iter().flatten();
        let mut twins: Vec<String> = beside.filter(|other| *other != own).cloned().collect();
        if let Some(id) = row.session.twin_of.filter(|id| !listed.contains(id)) {
            let other = ctx.session(id)?;
            let is_in_it = other.is_open() && other.native_id == row.session.native_id;
            if is_in_it && !ctx.standing(&other)?.is_gone() {
                twins.push(other.handle.to_string());
            }
        }
        row.view.twins = Some(twins);
    }
    Ok(())
}

/// Adds the sessions of a repository that know it under another name than the filter: by its directory or its
/// current remote, and all in the same worktree.
pub(crate) fn add_renamed(
    ctx: &mut Ctx<'_>,
    sessions: &mut Vec<Session>,
    filter: &SessionFilter,
    dir: &str,
) -> Result<(), Stop> {
    let Some(here) = ctx.file(dir)? else {
        return Ok(());
    };
    let dir = here.repository.home.dir_on(&ctx.observer.host);
    let names = [dir.map(str::to_owned), here.repository.remote.clone()];
    for name in names.into_iter().flatten() {
        let named = SessionFilter {
            repo: Some(name),
            ..filter.clone()
        };
        sessions.extend(ctx.tx.list_sessions(&named)?);
    }
    let mut beside = ctx.tx.list_sessions(&SessionFilter {
        repo: None,
        under: Some(here.root.clone()),
        ..filter.clone()
    })?;
    let known: HashSet<SessionId> = sessions.iter().map(|session| session.id).collect();
    beside.retain(|other| !known.contains(&other.id) && !ctx.is_elsewhere(other));
    let dirs: Vec<String> = beside
        .iter()
        .map(|other| other.workdir.dir.clone())
        .collect();
    ctx.look_at_files(&dirs)?;
    for other in beside {
        // A nested repository is a different one.
        let there = ctx.file(&other.workdir.dir)?;
        if there.is_some_and(|there| there.root == here.root) {
            sessions.push(other);
        }
    }
    sessions.sort_by_key(|session| std::cmp::Reverse((session.started_at, session.id)));
    sessions.dedup_by_key(|session| session.id);
    if filter.limit > 0 {
        sessions.truncate(filter.limit);
    }
    Ok(())
}

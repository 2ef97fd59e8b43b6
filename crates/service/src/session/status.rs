//! The status of a caller: its session, its claims, the other sessions here, and what needs attention.
//!
//! People and models read a status when they start work. A glance is one line, drawn again and again next to a
//! conversation. A glance delivers and renews nothing; notices stay pending until the model reads them.

use std::time::Duration;

use crate::caller::present::speaking;
use crate::caller::{self, ActFor, Caller, Purpose};
use crate::claim::view::ClaimView;
use crate::context::{Ctx, Stop};
use crate::conversation;
use crate::conversation::view::ConversationView;
use crate::session::cut_off::{cut_off_here, handles_cut_off_here};
use crate::session::look::{self, ListRequest, filter_of, list_living, ordered};
use crate::session::view::{SessionView, WroteView};
use crate::transact::{Reply, Service};
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::process::Process;
use tenure_core::session::{Doing, Session};
use tenure_core::store::{ClaimFilter, LostHolds, SessionFilter, TxMode};
use tenure_core::text;
use tenure_core::time::Timestamp;

/// How old an event may be and still cause a warning.
pub const WARNED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How many dead sessions are checked for processes that they left running.
const MAX_DEAD: usize = 20;
/// How many conversations are checked in the agents' files.
const MAX_POINTERS: usize = 200;
/// How many files of a session are listed.
const MAX_FILES: usize = 8;

#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct Status {
    /// The caller, if it is a session.
    pub me: Option<SessionView>,
    /// Why it is not a session, otherwise.
    pub no_session: Option<String>,
    pub claims: Vec<ClaimView>,
    /// Others that are open in the same repository or directory, with the files that they wrote recently.
    pub others: Vec<SessionView>,
    /// Those of them that wait for a person, by their handles.
    pub waiting: Vec<String>,
    /// Those that were cut off here within a day, newest first, with how to resume each.
    pub cut_off: Vec<SessionView>,
    /// How many more were cut off elsewhere.
    pub cut_off_elsewhere: usize,
    pub warnings: Vec<String>,
}

/// The session of a glance: by the agent's process, or by its conversation if no process was found.
#[derive(Debug, Clone)]
pub struct Glancer {
    pub agent: Option<AgentName>,
    pub process: Option<Process>,
    pub native_id: Option<NativeId>,
}

#[derive(Debug, Clone)]
pub struct Glance {
    pub handle: String,
    pub repo: Option<String>,
    pub holds: Vec<String>,
    /// The keys that it lost, with their current holders.
    pub lost: Vec<(String, String)>,
    /// Other sessions in the same conversation.
    pub twins: Vec<String>,
    /// Others in the same repository or directory that wait for a person.
    pub waiting: Vec<String>,
    /// Others there that were cut off within a day.
    pub cut_off: Vec<String>,
}

impl Service<'_> {
    pub fn status(&mut self, act_for: &ActFor, here: &ListRequest) -> Reply<Status> {
        self.transact(TxMode::Read, |ctx| {
            let found = caller::require(ctx, act_for, Purpose::Read);
            let (caller, no_session) = match found {
                Ok(caller) => (Some(caller), None),
                Err(Stop::Refuse(error)) if act_for.session.is_none() => {
                    (None, Some(error.to_string()))
                }
                Err(other) => return Err(other),
            };
            status(ctx, caller.as_ref(), no_session, here)
        })
    }

    /// The same on one line, for an agent that asks often; none if the agent is not a session.
    pub fn glance(&mut self, who: &Glancer) -> Reply<Option<Glance>> {
        self.transact(TxMode::Read, |ctx| {
            let (agent, native_id) = (who.agent.as_ref(), who.native_id.as_ref());
            let session = speaking(ctx, agent, who.process.as_ref(), native_id)?;
            session.map(|session| glance(ctx, &session)).transpose()
        })
    }
}

fn status(
    ctx: &mut Ctx<'_>,
    caller: Option<&Caller>,
    no_session: Option<String>,
    here: &ListRequest,
) -> Result<Status, Stop> {
    let me = match caller {
        Some(caller) => Some(look::whoami(ctx, caller)?.session),
        None => None,
    };
    let mut own = Vec::new();
    let mut warnings = Vec::new();
    if let Some(caller) = caller {
        warnings.extend(caller.disagreements.iter().map(ToString::to_string));
        let filter = ClaimFilter {
            session: Some(caller.session.id),
            ..ClaimFilter::default()
        };
        own = crate::claim::claims(ctx, &filter)?;
        for (key, handle) in lost(ctx, &caller.session)? {
            warnings.push(format!("this session lost {key}: {handle} holds it now"));
        }
        for twin in twins(ctx, &caller.session)? {
            warnings.push(format!("this conversation is also open in {twin}"));
        }
    }
    if let Some((at, news)) = ctx.tx.store_news()?
        && at.age_at(ctx.now.wall) < WARNED_FOR
    {
        warnings.push(news);
    }
    for failure in ctx.tx.mirror_failures()? {
        warnings.push(format!(
            "could not write the mirror {}; {}",
            text::name(&failure.path),
            failure.why
        ));
    }
    warnings.extend(dead_pointers(ctx)?);
    let mine = caller.map(|caller| caller.session.id);
    let mut others = list_living(ctx, here)?;
    // After the list, so that sessions just found dead are included.
    warnings.extend(left_running(ctx, here)?);
    let cut_off = cut_off_here(ctx, here)?;
    let everywhere = cut_off_here(ctx, &ListRequest::default())?;
    others.retain(|other| Some(other.session.id) != mine && !other.is_over());
    for other in &mut others {
        other.view.wrote = Some(wrote(ctx, other.session.id)?);
    }
    let others = ordered(ctx, others)?;
    let waiting = others.iter().filter(|other| other.waits_for_a_person());
    Ok(Status {
        waiting: waiting
            .map(|other| other.session.handle.to_string())
            .collect(),
        me,
        no_session,
        claims: own,
        others: others.into_iter().map(|other| other.view).collect(),
        cut_off_elsewhere: everywhere.len().saturating_sub(cut_off.len()),
        cut_off: cut_off.into_iter().map(|row| row.view).collect(),
        warnings,
    })
}

/// Conversations that their agents have deleted.
fn dead_pointers(ctx: &mut Ctx<'_>) -> Result<Vec<String>, Stop> {
    let dead = conversation::dead_pointers(ctx, MAX_POINTERS)?;
    let warning = |one: ConversationView| {
        let (agent, item) = (one.agent, one.root);
        format!("{agent} no longer has its conversation of {item}: the next run begins a new one")
    };
    Ok(dead.into_iter().map(warning).collect())
}

/// The files that a session wrote recently, newest first.
fn wrote(ctx: &mut Ctx<'_>, session: SessionId) -> Result<Vec<WroteView>, Stop> {
    let writes = ctx.tx.writes_of(session, MAX_FILES)?;
    let lately = |at: Timestamp| at.age_at(ctx.now.wall) < ctx.policy.recent_writes;
    Ok(writes
        .into_iter()
        .filter(|write| lately(write.at))
        .map(|write| WroteView {
            path: write.path,
            at: write.at,
        })
        .collect())
}

/// Keys that a session lost within a day and that another holds, with its handle.
fn lost(ctx: &mut Ctx<'_>, session: &Session) -> Result<Vec<(String, String)>, Stop> {
    let mut found = Vec::new();
    let since = ctx.now.wall.minus(WARNED_FOR);
    for hold in ctx.tx.lost_holds(session.id, LostHolds::Since(since))? {
        let Some(record) = ctx.tx.claim(&hold.key)? else {
            continue;
        };
        let holder = record.current().map(|current| current.session);
        if let Some(holder) = holder.filter(|_| record.was_lost(&hold)) {
            let handle = ctx.session(holder)?.handle.to_string();
            found.push((hold.key.to_string(), handle));
        }
    }
    Ok(found)
}

/// Other open sessions in a session's conversation.
fn twins(ctx: &mut Ctx<'_>, session: &Session) -> Result<Vec<String>, Stop> {
    let Some(native_id) = &session.native_id else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for other in ctx.in_conversation(&session.agent, native_id)? {
        let is_in_it = other.is_open() && other.native_id.as_ref() == Some(native_id);
        if other.id != session.id && is_in_it && !ctx.standing(&other)?.is_gone() {
            found.push(other.handle.to_string());
        }
    }
    Ok(found)
}

/// Processes that sessions left running when they died here.
fn left_running(ctx: &mut Ctx<'_>, here: &ListRequest) -> Result<Vec<String>, Stop> {
    ctx.record_deaths_found()?;
    let died = ctx.tx.list_sessions(&SessionFilter {
        died_since: Some(ctx.now.wall.minus(WARNED_FOR)),
        repo: here.repo.clone(),
        under: here.under.clone(),
        limit: MAX_DEAD,
        ..SessionFilter::default()
    })?;
    let mut warnings = Vec::new();
    for (session, left) in died.iter().zip(ctx.survivors_of_all(&died)?) {
        for survivor in left.shown() {
            warnings.push(format!(
                "{} died but left pid {} running, which may still write: {}",
                session.handle,
                survivor.pid,
                text::quoted(&survivor.command)
            ));
        }
    }
    Ok(warnings)
}

fn glance(ctx: &mut Ctx<'_>, session: &Session) -> Result<Glance, Stop> {
    let place = &session.workdir;
    let here = ListRequest {
        repo: place.repo.clone(),
        under: place.repo.is_none().then(|| place.dir.clone()),
        ..ListRequest::default()
    };
    // Only sessions that report waiting are read and observed, because a line that is drawn often must be cheap.
    let mut asking = ctx.tx.list_sessions(&SessionFilter {
        doing: Some(Doing::Waiting),
        ..filter_of(&here)
    })?;
    asking.retain(|other| other.id != session.id && ctx.is_beside(other));
    ctx.look_at_all(&asking)?;
    ctx.ask_what_they_do(&asking)?;
    let mut waiting = Vec::new();
    for other in &asking {
        let waits = ctx
            .shown(other)
            .is_some_and(|now| now.doing == Doing::Waiting);
        if waits && !ctx.standing(other)?.is_gone() {
            waiting.push(other.handle.to_string());
        }
    }
    let holds = ctx.tx.open_holds(session.id)?;
    Ok(Glance {
        handle: session.handle.to_string(),
        repo: session.workdir.repo.clone(),
        holds: holds.iter().map(|hold| hold.key.to_string()).collect(),
        lost: lost(ctx, session)?,
        twins: twins(ctx, session)?,
        waiting,
        cut_off: handles_cut_off_here(ctx, &here)?,
    })
}

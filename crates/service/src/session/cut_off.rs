//! Sessions that were cut off and still matter: listed for a day, until someone resumes or dismisses them.
//!
//! Most ends leave nothing behind. Listed are sessions whose conversation can be resumed, and sessions that
//! held something that no one has taken since. A script that died with neither is noise.
//!
//! An agent that was killed before its first prompt wrote no transcript and has nothing to resume. So lists
//! check for the files, in bounded time; the status line, which is drawn often, relies on the record alone.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::list::Listed;
use crate::session::look::{
    ListRequest, ListedSession, add_renamed, filter_of, list, listed_rows, ordered,
};
use crate::session::resume::{files_of, held, remains, resumes};
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use crate::unseen::Unseen;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::session::{Closed, EndKind, Session};
use tenure_core::store::{SessionFilter, TxMode};

/// How long it is listed.
pub const SHOWN_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How many sessions of a list are searched for what they left running.
const MAX_SEARCHED: usize = 50;

impl Service<'_> {
    /// Sessions, with those that need a person first.
    pub fn list(&mut self, request: &ListRequest) -> Reply<Listed<SessionView>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let mut rows = list(ctx, request)?;
            let found = rows.len();
            add_cut_off(ctx, request, &mut rows)?;
            let mut rows = ordered(ctx, rows)?;
            add_survivors(ctx, &mut rows)?;
            listed_rows(ctx, request, rows, found)
        })
    }
}

/// Adds what the newest sessions that ended or died lately left running.
fn add_survivors(ctx: &mut Ctx<'_>, rows: &mut [ListedSession]) -> Result<(), Stop> {
    let ended = |row: &ListedSession| match &row.session.closed {
        Some(closed) => closed.at,
        None => ctx.now.wall,
    };
    let is_new = |row: &ListedSession| ended(row).age_at(ctx.now.wall) < SHOWN_FOR;
    let mut over: Vec<&mut ListedSession> = rows
        .iter_mut()
        .filter(|row| row.is_over() && is_new(row))
        .collect();
    over.sort_by_key(|row| std::cmp::Reverse(ended(row)));
    over.truncate(MAX_SEARCHED);
    let sessions: Vec<Session> = over.iter().map(|row| row.session.clone()).collect();
    let left = ctx.survivors_of_all(&sessions)?;
    for (row, left) in over.into_iter().zip(&left) {
        row.view.add_survivors(left);
    }
    Ok(())
}

/// Adds recently cut-off sessions to a list of open ones, and removes those that left or left nothing behind.
/// If the list includes ended sessions anyway, they are only marked.
fn add_cut_off(
    ctx: &mut Ctx<'_>,
    request: &ListRequest,
    rows: &mut Vec<ListedSession>,
) -> Result<(), Stop> {
    if !request.closed_too {
        let known: BTreeSet<SessionId> = rows.iter().map(|row| row.session.id).collect();
        for session in cut_off(ctx, request)? {
            if !known.contains(&session.id) {
                rows.push(ListedSession::new(ctx, session)?);
            }
        }
    }
    mark(ctx, rows)?;
    if !request.closed_too {
        rows.retain(|row| !row.is_over() || row.is_cut_off());
    }
    Ok(())
}

/// Sessions that were recently cut off here, newest first.
pub(crate) fn cut_off_here(
    ctx: &mut Ctx<'_>,
    request: &ListRequest,
) -> Result<Vec<ListedSession>, Stop> {
    let mut rows = Vec::new();
    for session in cut_off(ctx, request)? {
        rows.push(ListedSession::new(ctx, session)?);
    }
    rows.retain(ListedSession::is_over);
    mark(ctx, &mut rows)?;
    rows.retain(ListedSession::is_cut_off);
    Ok(rows)
}

/// The same by handle, for a line that is drawn often: only the rows are read, and the open sessions, which may be in
/// those conversations, only if there are any.
pub(crate) fn handles_cut_off_here(
    ctx: &mut Ctx<'_>,
    request: &ListRequest,
) -> Result<Vec<String>, Stop> {
    let recorded = recorded(ctx, request)?;
    if recorded.is_empty() {
        return Ok(Vec::new());
    }
    let mut open = ctx.tx.list_sessions(&filter_of(request))?;
    open.retain(|other| ctx.is_beside(other));
    let conversation = |one: &Session| Some((one.agent.clone(), one.native_id.clone()?));
    let mut taken: HashSet<(AgentName, NativeId)> = open.iter().filter_map(conversation).collect();
    let mut shown = Vec::new();
    for session in recorded {
        let free = conversation(&session).filter(|own| !taken.contains(own));
        let goes_on = free.is_some() && resumes(&session);
        if (goes_on || !held(ctx, &session)?.is_empty()) && ctx.starting(&session)?.is_none() {
            taken.extend(free);
            shown.push(session.handle.to_string());
        }
    }
    Ok(shown)
}

/// What was recorded as cut off, without what the agents' own files show to be stopped.
fn cut_off(ctx: &mut Ctx<'_>, request: &ListRequest) -> Result<Vec<Session>, Stop> {
    let sessions = recorded(ctx, request)?;
    ctx.without_stopped(sessions)
}

fn recorded(ctx: &mut Ctx<'_>, request: &ListRequest) -> Result<Vec<Session>, Stop> {
    let filter = SessionFilter {
        cut_off_since: Some(ctx.now.wall.minus(SHOWN_FOR)),
        ..filter_of(request)
    };
    let mut sessions = ctx.tx.list_sessions(&filter)?;
    if let Some(dir) = &request.worktree {
        add_renamed(ctx, &mut sessions, &filter, dir)?;
    }
    if request.worktree.is_some() || request.under.is_some() {
        sessions.retain(|session| ctx.is_beside(session));
    }
    let damage = ctx.tx.take_damage();
    ctx.effects.damage.extend(damage);
    sessions = ctx.without_runs(sessions)?;
    sessions.sort_by_key(|session| std::cmp::Reverse(session.closed.as_ref().map(|end| end.at)));
    Ok(sessions)
}

/// Adds what is left of the recently cut-off sessions.
fn mark(ctx: &mut Ctx<'_>, rows: &mut [ListedSession]) -> Result<(), Stop> {
    let mut lately = Vec::new();
    let mut unseen = Unseen::default();
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.is_over()) {
        let was_cut_off = was_cut_off_lately(ctx, &row.session);
        if unseen.gather(was_cut_off)? == Some(true) {
            lately.push(at);
        }
    }
    unseen.look()?;
    let mut paths = Vec::new();
    for at in &lately {
        paths.extend(files_of(ctx, &rows[*at].session)?);
    }
    ctx.look_at_paths(&paths)?;
    let mut named: HashSet<(AgentName, Option<NativeId>)> = HashSet::new();
    for at in lately {
        let session = &rows[at].session;
        let conversation = (session.agent.clone(), session.native_id.clone());
        let is_named = session.twin_of.is_some() && named.contains(&conversation);
        rows[at].view.resume = remains(ctx, session, is_named)?;
        if rows[at].is_cut_off() {
            named.insert(conversation);
        }
    }
    Ok(())
}

fn was_cut_off_lately(ctx: &mut Ctx<'_>, session: &Session) -> Result<bool, Stop> {
    let Some(Closed {
        at,
        kind,
        dismissed_at,
        ..
    }) = &session.closed
    else {
        let is_cut_off = ctx.death_kind(session)? == EndKind::CutOff;
        return Ok(is_cut_off && ctx.run_of_session(session)?.is_none());
    };
    let is_new = at.age_at(ctx.now.wall) < SHOWN_FOR;
    let is_cut_off = *kind == EndKind::CutOff && dismissed_at.is_none() && is_new;
    Ok(is_cut_off && ctx.run_of_session(session)?.is_none())
}

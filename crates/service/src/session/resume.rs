//! What can be resumed: sessions that are gone and whose conversation no session is in.
//!
//! Resuming a live session is refused, because two processes in one conversation mix their messages. "All"
//! means the sessions that were *cut off* recently, have a conversation to resume, and were not dismissed. A
//! session that left is not started again, and a conversation in which two were cut off is listed once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::{Blocker, Error};
use crate::session::view::{CutOffView, HeldView, SessionView};
use crate::transact::{Reply, Service};
use tenure_core::agent::spec_of;
use tenure_core::end::is_untouched;
use tenure_core::hint::Hint;
use tenure_core::id::NativeId;
use tenure_core::key::Key;
use tenure_core::session::{ClosedBy, Session, Standing};
use tenure_core::store::{SessionFilter, TxMode};
use tenure_core::text;
use tenure_core::witness::TerminalPlace;

/// A session that can be resumed.
#[derive(Debug, Clone)]
pub struct Resumable {
    pub session: SessionView,
    pub native_id: NativeId,
    /// The item whose conversation it is, if one is.
    pub item: Option<Key>,
    /// Flags of its last process that the agent does not restore.
    pub flags: Vec<String>,
    /// What it held and would be granted again.
    pub held: Vec<HeldView>,
    /// Why it cannot be resumed, if so.
    pub problem: Option<String>,
}

impl Resumable {
    /// Whether it cannot be resumed and held nothing.
    fn has_nothing(&self) -> bool {
        self.problem.is_some() && self.held.is_empty()
    }
}

impl Service<'_> {
    pub fn resumable(&mut self, name: &str) -> Reply<Resumable> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let session = caller::find(ctx, name)?;
            let session = ctx.record_death_if_proved(session)?;
            resumable(ctx, &session)
        })
    }

    /// Refuses to let an agent start every session that was cut off, because models run what they read.
    pub fn may_start_all(&mut self) -> Reply<()> {
        self.transact(TxMode::Read, |ctx| {
            if caller::is_agents(ctx)? {
                let what = "start every session that was cut off";
                Err(Error::PersonOnly { what }.into())
            } else {
                Ok(())
            }
        })
    }

    /// Every session that was cut off within this time and not dismissed, newest first.
    pub fn all_resumable(&mut self, within: Duration) -> Reply<Vec<Resumable>> {
        // After a reboot no caller has recorded the deaths yet.
        let unrecorded = self.record_all_deaths()?;
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let filter = SessionFilter {
                cut_off_since: Some(ctx.now.wall.minus(within)),
                ..SessionFilter::default()
            };
            ctx.effects.damage = unrecorded.values().cloned().collect();
            let sessions = ctx.tx.list_sessions(&filter)?;
            let sessions = ctx.without_runs(sessions)?;
            let sessions = ctx.without_stopped(sessions)?;
            let mut paths = Vec::new();
            for session in &sessions {
                paths.extend(files_of(ctx, session)?);
            }
            ctx.look_at_paths(&paths)?;
            let mut found = Vec::new();
            for session in sessions {
                match resumable(ctx, &session) {
                    // A window in which nobody typed: there is no conversation.
                    Ok(one) if is_untouched(&session) && one.has_nothing() => {}
                    Ok(one) => found.push(one),
                    Err(Stop::Refuse(_)) => {}
                    Err(other) => return Err(other),
                }
            }
            Ok(once_each(found))
        })
    }
}

/// A conversation is resumed once, however many sessions died in it: as its owner, not as a twin.
fn once_each(all: Vec<Resumable>) -> Vec<Resumable> {
    let mut places: HashMap<(String, NativeId), usize> = HashMap::new();
    let mut found: Vec<Resumable> = Vec::new();
    for one in all {
        match places.entry((one.session.agent.clone(), one.native_id.clone())) {
            Entry::Vacant(place) => {
                place.insert(found.len());
                found.push(one);
            }
            Entry::Occupied(place) => {
                let other = &mut found[*place.get()];
                if other.session.twin_of.is_some() {
                    *other = one;
                }
            }
        }
    }
    found
}

fn resumable(ctx: &mut Ctx<'_>, session: &Session) -> Result<Resumable, Stop> {
    let found = conversation(ctx, session)?;
    let start = session.start.as_ref();
    let of = ctx.tx.conversation_with(&session.agent, &found.native_id)?;
    Ok(Resumable {
        session: ctx.view(session)?,
        item: of.map(|conversation| conversation.item),
        native_id: found.native_id,
        flags: start.map_or_else(Vec::new, |start| start.flags.clone()),
        held: held(ctx, session)?,
        problem: found.problem,
    })
}

/// A conversation without a session in it.
struct Conversation {
    native_id: NativeId,
    /// Why it cannot be resumed, if so.
    problem: Option<String>,
}

/// The conversation of a session, if it has one and no session is in it.
fn conversation(ctx: &mut Ctx<'_>, session: &Session) -> Result<Conversation, Stop> {
    let handle = session.handle.to_string();
    let Some(native_id) = session.native_id.clone() else {
        return Err(Error::NotFound {
            what: format!("{handle} has no conversation to resume"),
            hint: Hint::run("show", [&handle], "for details"),
        }
        .into());
    };
    if session
        .closed
        .as_ref()
        .is_some_and(|closed| closed.by == ClosedBy::Moved)
    {
        return Err(Error::NotLive {
            handle,
            state: "continued in another session".into(),
        }
        .into());
    }
    let mut others = ctx.in_conversation(&session.agent, &native_id)?;
    others.push(session.clone());
    for other in others {
        let is_in_it = other.is_open() && other.native_id.as_ref() == Some(&native_id);
        if is_in_it {
            refuse_living(ctx, &other)?;
        }
    }
    let problem = if !resumes(session) {
        Some(format!(
            "tenure cannot resume {} conversations",
            session.agent
        ))
    } else if let Some(host) = ctx.other_machine(session)? {
        Some(format!("it ran on {host}; resume it there"))
    } else {
        missing(ctx, session)?
    };
    Ok(Conversation { native_id, problem })
}

/// Why a session that is over can never come back; none if it can be resumed.
pub(crate) fn never_returns(ctx: &mut Ctx<'_>, session: &Session) -> Result<Option<String>, Stop> {
    match conversation(ctx, session) {
        // Its own machine can have what it needs.
        Ok(_) if resumes(session) && ctx.is_elsewhere(session) => Ok(None),
        Ok(found) => Ok(found.problem),
        Err(Stop::Refuse(error)) => Ok(Some(error.to_string())),
        Err(other) => Err(other),
    }
}

/// Whether tenure has a command to resume conversations of its agent.
pub(crate) fn resumes(session: &Session) -> bool {
    spec_of(&session.agent).is_some_and(|spec| spec.resumes)
}

/// A file that a session needs in order to continue and that is missing.
fn missing(ctx: &mut Ctx<'_>, session: &Session) -> Result<Option<String>, Stop> {
    let files = files_of(ctx, session)?;
    ctx.look_at_paths(&files)?;
    let [dir, transcripts @ ..] = files.as_slice() else {
        return Ok(None);
    };
    for file in transcripts {
        if !ctx.is_there(file)? {
            let file = text::name(file);
            return Ok(Some(format!("its transcript {file} is missing")));
        }
    }
    Ok(if ctx.is_there(dir)? {
        None
    } else {
        Some(format!(
            "its directory {} no longer exists",
            text::name(dir)
        ))
    })
}

fn refuse_living(ctx: &mut Ctx<'_>, session: &Session) -> Result<(), Stop> {
    let handle = session.handle.to_string();
    match ctx.standing(session)? {
        Standing::Live => {
            let (_, decides) = ctx.seen_to_live_by(session)?;
            let pid = decides.as_ref().map_or(0, |process| process.pid);
            ctx.ask_about_all(std::slice::from_ref(session))?;
            let testimony = ctx.evidence.testimony(session.id);
            let place = testimony.and_then(|testimony| testimony.place.as_ref());
            let running = if session.is_left_to(decides.as_ref()) {
                Blocker::Daemon
            } else if place == Some(&TerminalPlace::Gone) {
                Blocker::Unreachable
            } else {
                Blocker::Process
            };
            Err(Error::StillRunning {
                handle,
                pid,
                running,
            }
            .into())
        }
        Standing::Trusted { doubt, .. } | Standing::Suspect { doubt, .. } => {
            Err(Error::CannotTell {
                handle,
                doubt,
                key: None,
            }
            .into())
        }
        Standing::Gone(_) | Standing::Expired(_) => Ok(()),
    }
}

/// The files that must exist for a session to be resumed.
pub(crate) fn files_of(ctx: &mut Ctx<'_>, session: &Session) -> Result<Vec<String>, Stop> {
    let mut files = vec![session.workdir.dir.clone()];
    if let Some(native_id) = &session.native_id {
        files.extend(ctx.transcript_path(session.id, native_id)?);
    }
    Ok(files)
}

/// What is left of a session that was cut off; none if it has nothing to resume and held nothing.
pub(crate) fn remains(
    ctx: &mut Ctx<'_>,
    session: &Session,
    is_named: bool,
) -> Result<Option<CutOffView>, Stop> {
    let problem = match conversation(ctx, session) {
        Ok(found) => found.problem,
        Err(Stop::Refuse(error)) => {
            let said = error.to_string();
            let own = said.strip_prefix(session.handle.as_str());
            Some(own.map_or(said.clone(), |rest| format!("it{rest}")))
        }
        Err(other) => return Err(other),
    };
    let held = held(ctx, session)?;
    if held.is_empty() && (problem.is_some() || is_named) {
        return Ok(None);
    }
    let command = format!("tenure resume {}", session.handle);
    Ok(Some(CutOffView {
        command: problem.is_none().then_some(command),
        problem,
        held,
    }))
}

/// What a session held in its last life and would be granted again.
pub(crate) fn held(ctx: &mut Ctx<'_>, session: &Session) -> Result<Vec<HeldView>, Stop> {
    let mut holds = ctx.newest_holds(session.id)?;
    holds.retain(|hold| hold.life == session.life);
    if holds.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<Key> = holds.iter().map(|hold| hold.key.clone()).collect();
    let mut held = Vec::new();
    for (hold, record) in holds.iter().zip(ctx.claim_records(&keys)?) {
        if hold.ended.is_none() || record.is_regrantable(hold) {
            held.push(HeldView {
                key: hold.key.to_string(),
                epoch: hold.epoch.0,
            });
        }
    }
    Ok(held)
}

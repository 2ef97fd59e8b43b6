//! Which transcript belongs to which session: checked at every write and at every use.

use crate::caller::{self, ActFor, Purpose};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Failure, Reply, Service};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::hint::Hint;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::repository::without_machine;
use tenure_core::session::Session;
use tenure_core::store::{Lock, TxMode};
use tenure_core::transcript::{
    Contamination, LineProblem, MAX_PROBLEMS, Transcript, TranscriptLayout, check_lines,
    check_path, is_subagent_id, layout_of,
};

/// A session's transcript, as far as the store can vouch for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vouched {
    File(Box<VouchedFile>),
    /// None is known, or the known one was wrong: derive it from the conversation's id.
    Derive(Box<Derivation>),
}

/// A file that the store vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VouchedFile {
    pub path: String,
    pub handle: String,
    pub native_id: NativeId,
}

/// What is needed to derive a transcript's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derivation {
    pub agent: AgentName,
    pub native_id: NativeId,
    /// Where the agent keeps its transcripts; none if it has no rule.
    pub layout: Option<TranscriptLayout>,
    pub dir: String,
    /// What was wrong with the stored path, if there was one.
    pub quarantined: Option<String>,
}

impl Service<'_> {
    /// The transcript of a session, for reading.
    pub fn transcript(&mut self, name: &str) -> Reply<Vouched> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let session = caller::find(ctx, name)?;
            vouch(ctx, &session)
        })
    }

    /// The same for writing, which is allowed to the session, its parent, or with a reason. `what` is logged if another
    /// session does it.
    pub fn transcript_to_write(&mut self, act_for: &ActFor, what: &str) -> Reply<Vouched> {
        self.transact(TxMode::Read, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Act)?;
            let vouched = vouch(ctx, &caller.session)?;
            if !caller.is_itself() {
                ctx.write()?;
                ctx.log(&NewEvent {
                    actor: caller.actor,
                    reason: caller.reason_text(),
                    ..ctx.event(
                        EventKind::Changed,
                        Some(caller.session.id),
                        "transcript",
                        what.to_owned(),
                    )
                })?;
            }
            Ok(vouched)
        })
    }

    /// Logs that a transcript was repaired.
    pub fn transcript_repaired(&mut self, act_for: &ActFor, what: &str) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Act)?;
            ctx.log(&NewEvent {
                actor: caller.actor,
                reason: caller.reason_text(),
                ..ctx.event(
                    EventKind::Changed,
                    Some(caller.session.id),
                    "transcript",
                    what.to_owned(),
                )
            })
        })
    }

    /// Checks lines before they are appended to a transcript. Lines of another conversation are logged.
    pub fn check_appended(
        &mut self,
        act_for: &ActFor,
        file: &VouchedFile,
        lines: &[u8],
    ) -> Result<Vec<LineProblem>, Failure> {
        let problems = check_lines(&file.native_id, lines, MAX_PROBLEMS);
        let foreign = problems.iter().find(|problem| problem.kind == "foreign");
        if let Some(LineProblem { line, what, .. }) = foreign {
            self.foreign_lines_refused(act_for, &format!("line {line}: {what}"))?;
        }
        Ok(problems)
    }

    fn foreign_lines_refused(&mut self, act_for: &ActFor, what: &str) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            let caller = caller::require(ctx, act_for, Purpose::Act)?;
            ctx.log(&NewEvent {
                actor: caller.actor,
                reason: caller.reason_text(),
                ..ctx.event(
                    EventKind::Contamination,
                    Some(caller.session.id),
                    "transcript",
                    format!("lines were not appended to its transcript: {what}"),
                )
            })
        })
    }

    /// Stores the path that was derived for a session, if it passes the checks.
    pub fn keep_transcript(&mut self, name: &str, path: &str) -> Reply<VouchedFile> {
        self.transact(TxMode::Write, |ctx| {
            let session = caller::find(ctx, name)?;
            let native_id = conversation(&session)?;
            set(ctx, &session, &native_id, path)?;
            Ok(file(&session, &native_id, path.to_owned()))
        })
    }
}

fn file(session: &Session, native_id: &NativeId, path: String) -> VouchedFile {
    VouchedFile {
        path,
        handle: session.handle.to_string(),
        native_id: native_id.clone(),
    }
}

fn conversation(session: &Session) -> Result<NativeId, Stop> {
    session.native_id.clone().ok_or_else(|| {
        Error::NotFound {
            what: format!(
                "{} has no conversation, so it has no transcript",
                session.handle
            ),
            hint: Hint::step(format!(
                "run `tenure register --native-id ID` in {} to set its conversation",
                session.handle
            )),
        }
        .into()
    })
}

/// The stored path if it is right; otherwise it is set aside and must be derived again.
fn vouch(ctx: &mut Ctx<'_>, session: &Session) -> Result<Vouched, Stop> {
    let native_id = conversation(session)?;
    let owner = match ctx.tx.native_owner(&session.agent, &native_id)? {
        Some(owner) if owner != session.id => ctx.session(owner)?,
        _ => session.clone(),
    };
    let mut quarantined = None;
    if let Some(stored) = ctx.tx.transcript_of(owner.id, &native_id)? {
        match examine(ctx, &owner, &native_id, (stored.file(), &stored.path))? {
            Ok(()) => {
                let path = stored.file().to_owned();
                return Ok(Vouched::File(Box::new(file(session, &native_id, path))));
            }
            Err(wrong) => {
                ctx.lock([Lock::Transcript(stored.path.clone())])?;
                let why = record(ctx, &owner, &stored.path, &wrong)?;
                ctx.tx.quarantine_transcript(&stored, &why, ctx.now.wall)?;
                quarantined = Some(why);
            }
        }
    }
    Ok(Vouched::Derive(Box::new(Derivation {
        agent: session.agent.clone(),
        layout: layout_of(&session.agent),
        native_id,
        dir: session.workdir.dir.clone(),
        quarantined,
    })))
}

/// Checks a path for a session: by its name, and by its owner. It is given with its name in the store.
fn examine(
    ctx: &mut Ctx<'_>,
    session: &Session,
    native_id: &NativeId,
    (path, stored): (&str, &str),
) -> Result<Result<(), Contamination>, Stop> {
    if let Err(wrong) = check_path(&session.agent, native_id, path) {
        return Ok(Err(wrong));
    }
    Ok(match ctx.tx.transcript_owner(stored)? {
        Some(owner) if owner != session.id => Err(Contamination::ForeignOwner(owner)),
        _ => Ok(()),
    })
}

/// Logs the fault with both sessions, and returns it as one sentence.
fn record(
    ctx: &mut Ctx<'_>,
    session: &Session,
    stored: &str,
    wrong: &Contamination,
) -> Result<String, Stop> {
    let path = without_machine(stored);
    let (why, other) = match wrong {
        Contamination::ForeignName { expected } => (
            format!("{path} is not the file of its conversation; expected a file named {expected}"),
            None,
        ),
        Contamination::ForeignOwner(owner) => {
            let handle = ctx.session(*owner)?.handle;
            (
                format!("{path} is the transcript of {handle}"),
                Some(*owner),
            )
        }
        Contamination::Subagent => (format!("{path} is a subagent's transcript"), None),
        Contamination::NotAPath => (format!("{path:?} is not an absolute file path"), None),
    };
    let other = match other {
        Some(owner) => Some(owner),
        None => named_conversation_owner(ctx, session, stored)?,
    };
    ctx.log(&NewEvent {
        actor: other,
        ..ctx.event(
            EventKind::Contamination,
            Some(session.id),
            "transcript",
            why.clone(),
        )
    })?;
    Ok(why)
}

/// The session of the conversation that the file's name refers to, if it does.
fn named_conversation_owner(
    ctx: &mut Ctx<'_>,
    session: &Session,
    stored: &str,
) -> Result<Option<SessionId>, Stop> {
    if let Some(owner) = ctx
        .tx
        .transcript_owner(stored)?
        .filter(|owner| *owner != session.id)
    {
        return Ok(Some(owner));
    }
    let owner = conversation_named_by(ctx, &session.agent, stored)?;
    Ok(owner.filter(|owner| *owner != session.id))
}

/// The session of a conversation whose id is the whole name of a file.
fn conversation_named_by(
    ctx: &mut Ctx<'_>,
    agent: &AgentName,
    path: &str,
) -> Result<Option<SessionId>, Stop> {
    let stem = path
        .rsplit('/')
        .next()
        .and_then(|file| file.strip_suffix(".jsonl"));
    match stem.and_then(|stem| NativeId::parse(stem).ok()) {
        Some(native_id) => Ok(ctx.tx.native_owner(agent, &native_id)?),
        None => Ok(None),
    }
}

/// Stores a path as a session's transcript, or refuses it and logs why.
pub fn set(
    ctx: &mut Ctx<'_>,
    session: &Session,
    native_id: &NativeId,
    path: &str,
) -> Result<(), Stop> {
    let visits = ctx
        .tx
        .native_owner(&session.agent, native_id)?
        .is_some_and(|owner| owner != session.id);
    if visits {
        return Ok(());
    }
    let stored = ctx.path_here(path);
    if let Err(wrong) = examine(ctx, session, native_id, (path, &stored))? {
        let what = record(ctx, session, &stored, &wrong)?;
        return Err(contaminated(what).into());
    }
    ctx.lock([
        Lock::Native(session.agent.clone(), native_id.clone()),
        Lock::Transcript(stored.clone()),
    ])?;
    ctx.tx.set_transcript(&Transcript {
        path: stored,
        session: session.id,
        native_id: native_id.clone(),
        at: ctx.now.wall,
    })?;
    Ok(())
}

/// Refuses and logs a path of another conversation, before anything else is written.
pub fn refuse_foreign(
    ctx: &mut Ctx<'_>,
    agent: &AgentName,
    native_id: &NativeId,
    path: &str,
) -> Result<(), Stop> {
    let owner = ctx.tx.native_owner(agent, native_id)?;
    let stored = ctx.path_here(path);
    let holder = ctx
        .tx
        .transcript_owner(&stored)?
        .filter(|holder| Some(*holder) != owner);
    let checked = check_path(agent, native_id, path);
    let is_path = checked != Err(Contamination::NotAPath);
    let what = match (checked, holder) {
        (Ok(()), None) => return Ok(()),
        (Ok(()), Some(holder)) => {
            let handle = ctx.session(holder)?.handle;
            format!("{path} is the transcript of {handle}")
        }
        (Err(Contamination::ForeignName { expected }), _) => {
            format!(
                "{path} is not the file of conversation {native_id}; expected a file named {expected}"
            )
        }
        (Err(Contamination::Subagent), _) => format!("{path} is a subagent's transcript"),
        (Err(_), _) => format!("{path:?} is not an absolute file path"),
    };
    ctx.write()?;
    let other = match holder {
        Some(holder) => Some(holder),
        None => conversation_named_by(ctx, agent, path)?.filter(|other| Some(*other) != owner),
    };
    ctx.log(&NewEvent {
        actor: other,
        ..ctx.event(EventKind::Contamination, owner, "register", what.clone())
    })?;
    let hint = match other {
        Some(_) => return Err(contaminated(what).into()),
        None if is_path => "pass the file of this conversation; nothing was stored",
        None => "pass the absolute path of the file; nothing was stored",
    };
    let hint = Hint::step(hint);
    Err(Error::Invalid { what, hint }.into())
}

/// Refuses and logs a subagent's id as a session's conversation, before anything else is written.
pub fn refuse_subagent(
    ctx: &mut Ctx<'_>,
    agent: &AgentName,
    native_id: Option<&NativeId>,
) -> Result<(), Stop> {
    let Some(native_id) = native_id.filter(|native_id| is_subagent_id(agent, native_id)) else {
        return Ok(());
    };
    let what = format!("{native_id} is a subagent's id, not a conversation of its own");
    ctx.write()?;
    ctx.log(&ctx.event(EventKind::Contamination, None, "register", what.clone()))?;
    Err(contaminated(what).into())
}

fn contaminated(what: String) -> Error {
    Error::Invalid {
        what,
        hint: Hint::verb("log", "to see both sessions; nothing was stored"),
    }
}

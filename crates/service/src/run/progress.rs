//! What a runner records while its agent works.

use tenure_core::claim::Means;
use tenure_core::conversation::Home;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{NativeId, RunId, SessionToken};
use tenure_core::process::Ancestor;
use tenure_core::registration::RegistrationSource;
use tenure_core::run::{Run, Trigger};
use tenure_core::session::Workdir;
use tenure_core::store::{Lock, TxMode};

use super::claims;
use super::error::RunError;
use super::start::resumed;
use super::view::RunView;
use crate::claim::regrant;
use crate::context::{Ctx, Stop};
use crate::conversation;
use crate::error::Error;
use crate::queue::step as queue;
use crate::session::new_session::begin_life;
use crate::session::register::{RegisterRequest, Subject, register};
use crate::transact::{Reply, Service};

/// The next process of a run whose first process did not know its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextProcess {
    pub run: RunId,
    /// The conversation that the agent no longer has.
    pub unknown: NativeId,
    /// The waiting process and its ancestors.
    pub chain: Vec<Ancestor>,
    /// The id of the new conversation, if the agent lets us choose it.
    pub intended: Option<NativeId>,
    pub prompt_hash: String,
}

impl Service<'_> {
    /// Records that the agent of a run is being started.
    pub fn run_begins(&mut self, id: &RunId) -> Reply<RunView> {
        self.transact(TxMode::Write, |ctx| {
            let known = open(ctx, id)?;
            let mut locks = vec![Lock::Run(id.clone())];
            if known.trigger == Trigger::Queue {
                locks.extend(queue::locks(&known));
            }
            ctx.lock(locks)?;
            let mut run = open(ctx, id)?;
            if run.begun_at.is_none() {
                queue::began(ctx, &run)?;
                run.begun_at = Some(ctx.now.wall);
                ctx.update_run(&mut run)?;
                log(ctx, &run, EventKind::RunBegun, run.id.to_string())?;
            }
            ctx.run_view(&run)
        })
    }

    /// Records the conversation that the agent of a run reports.
    ///
    /// Refused if it belongs to another conversation record or another live session; the run then
    /// keeps the one it had.
    pub fn run_is_named(
        &mut self,
        id: &RunId,
        native_id: &NativeId,
        chain: &[Ancestor],
        home: &Home,
    ) -> Reply<RunView> {
        self.transact(TxMode::Write, |ctx| {
            let known = open(ctx, id)?;
            let agent = known.agent.clone();
            ctx.lock([
                Lock::Conversation(known.root),
                Lock::Run(id.clone()),
                Lock::Native(agent, native_id.clone()),
            ])?;
            let mut run = open(ctx, id)?;
            let author = claims::author(&run);
            conversation::set_by_run(ctx, &run, native_id, home, author)?;
            let chain = as_it_is(ctx, &run, chain)?;
            register(ctx, &enters(&run, native_id, chain))?;
            if run.after.as_ref() != Some(native_id) || run.intended.is_some() {
                run.after = Some(native_id.clone());
                run.intended = None;
                ctx.update_run(&mut run)?;
            }
            ctx.run_view(&run)
        })
    }

    /// The same for a run whose runner and agent are both proved dead: the conversation in its log
    /// that the runner did not record in time.
    pub fn dead_run_is_named(
        &mut self,
        id: &RunId,
        native_id: &NativeId,
        home: &Home,
    ) -> Reply<RunView> {
        self.transact(TxMode::Write, |ctx| {
            let run = named_late(ctx, id, native_id)?;
            if !ctx.run_life(&run)?.is_over() {
                let state = "is still running".to_owned();
                return Err(Error::from(RunError::NotRunning { run: run.id, state }).into());
            }
            // Another session may have been in it since then.
            let owns = ctx.tx.native_owner(&run.agent, native_id)?.is_none();
            was_in(ctx, run, native_id, home, owns)
        })
    }

    /// Records the conversation of a run whose agent is gone and never named it.
    ///
    /// Refused if it belongs to another conversation record or another live session.
    pub fn run_was_in(&mut self, id: &RunId, native_id: &NativeId, home: &Home) -> Reply<RunView> {
        self.transact(TxMode::Write, |ctx| {
            let run = named_late(ctx, id, native_id)?;
            was_in(ctx, run, native_id, home, true)
        })
    }

    /// The agent did not know its conversation, so the same run continues in a new one, as the next
    /// process of the same session. The session keeps everything it holds. None if that session has
    /// continued in another process.
    pub fn run_falls_back(&mut self, next: &NextProcess) -> Reply<Option<(RunView, SessionToken)>> {
        self.transact(TxMode::Write, |ctx| {
            let known = open(ctx, &next.run)?;
            let mut locks = vec![
                Lock::Conversation(known.root.clone()),
                Lock::Run(known.id.clone()),
                Lock::Native(known.agent.clone(), next.unknown.clone()),
            ];
            locks.extend(known.session.map(|token| Lock::Session(token.id)));
            ctx.lock(locks)?;
            let mut run = open(ctx, &next.run)?;
            let Some(previous) = ctx.session_of_run(&run)? else {
                return Ok(None);
            };
            let mut session = resumed(ctx, &previous, &next.chain);
            session.native_id = None;
            ctx.tx.update_session(&session)?;
            session.revision += 1;
            begin_life(ctx, &session)?;
            let token = session.token();
            if !previous.is_open() {
                // A caller that does not know about runs has recorded the first process as dead.
                regrant(ctx, &previous, &session, Means::Resume)?;
            }
            claims::forget(ctx, &run, &next.unknown)?;
            run.session = Some(token);
            run.fell_back = true;
            run.after = None;
            run.intended.clone_from(&next.intended);
            run.prompt_hash = Some(next.prompt_hash.clone());
            run.begun_at = None;
            ctx.update_run(&mut run)?;
            let evidence = format!("{}: {} is unknown to {}", run.id, next.unknown, run.agent);
            log(ctx, &run, EventKind::RunFellBack, evidence)?;
            Ok(Some((ctx.run_view(&run)?, token)))
        })
    }
}

/// A run whose agent is gone, locked together with its conversation.
fn named_late(ctx: &mut Ctx<'_>, id: &RunId, native_id: &NativeId) -> Result<Run, Stop> {
    let known = open(ctx, id)?;
    let mut locks = vec![
        Lock::Conversation(known.root),
        Lock::Run(id.clone()),
        Lock::Native(known.agent, native_id.clone()),
    ];
    locks.extend(known.session.map(|token| Lock::Session(token.id)));
    ctx.lock(locks)?;
    open(ctx, id)
}

/// Records the conversation that a run was in. `owns` means that no later session was in it.
fn was_in(
    ctx: &mut Ctx<'_>,
    mut run: Run,
    native_id: &NativeId,
    home: &Home,
    owns: bool,
) -> Result<RunView, Stop> {
    let (agent, author) = (run.agent.clone(), claims::author(&run));
    conversation::set_by_run(ctx, &run, native_id, home, author)?;
    if let Some(mut session) = ctx.session_of_run(&run)?.filter(|_| owns) {
        let (before, at) = (ctx.tx.native_owner(&agent, native_id)?, ctx.now.wall);
        ctx.tx
            .set_native_owner(&agent, native_id, before, session.id, at)?;
        session.native_id = Some(native_id.clone());
        ctx.tx.update_session(&session)?;
    }
    run.after = Some(native_id.clone());
    run.intended = None;
    ctx.update_run(&mut run)?;
    ctx.run_view(&run)
}

/// A run without a recorded end.
pub(super) fn open(ctx: &mut Ctx<'_>, id: &RunId) -> Result<Run, Stop> {
    let run = ctx.run_of(id)?;
    match &run.end {
        None => Ok(run),
        Some(end) => {
            let state = format!("has ended: {}", end.outcome.as_str());
            Err(Error::from(RunError::NotRunning { run: run.id, state }).into())
        }
    }
}

/// The current process of the run's session: the one that the runner started, or the agent below
/// it.
fn as_it_is(ctx: &mut Ctx<'_>, run: &Run, chain: &[Ancestor]) -> Result<Vec<Ancestor>, Stop> {
    let mut chain = chain.to_vec();
    let session = ctx.session_of_run(run)?;
    if let (Some(own), Some(process)) = (
        chain.first_mut(),
        session.and_then(|session| session.process),
    ) {
        own.process = process;
    }
    Ok(chain)
}

/// A registration that moves the run's process into this conversation, as the agent's hooks would
/// do.
fn enters(run: &Run, native_id: &NativeId, chain: Vec<Ancestor>) -> RegisterRequest {
    RegisterRequest {
        subject: Subject::Given(chain),
        agent: Some(run.agent.clone()),
        native_id: Some(native_id.clone()),
        transcript: None,
        source: RegistrationSource::Start,
        hosted: false,
        workdir: Workdir::default(),
        place_named: false,
        title: None,
        parent: None,
        reason: None,
        metadata: Default::default(),
    }
}

pub(super) fn log(
    ctx: &mut Ctx<'_>,
    run: &Run,
    kind: EventKind,
    evidence: String,
) -> Result<(), Stop> {
    let session = run.session.map(|token| token.id);
    ctx.log(&NewEvent {
        key: Some(run.item.clone()),
        ..ctx.event(kind, session, "run", evidence)
    })
}

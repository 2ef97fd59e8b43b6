//! Starting a run: session, conversation, directory and the record, in one transaction.
//!
//! The agent's process waits meanwhile and has not executed anything. So a refusal leaves no trace, and
//! an agent never runs without its record.

use std::time::Duration;

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{Life, NativeId, RunId, SessionId, SessionToken};
use tenure_core::liveness::Liveness;
use tenure_core::process::{Ancestor, LeftProcess, Process, StartTicks, Survivor};
use tenure_core::run::{Run, Trigger, Usage};
use tenure_core::session::{Session, Standing, Start, Title, Workdir};
use tenure_core::store::{CutOff, Lock, SessionFilter, TxMode};
use tenure_core::text;

use super::claims;
use super::error::{Resource, RunError};
use super::plan::{Begin, Planned, planned};
use super::view::RunView;
use crate::caller::{self, Caller};
use crate::claim::{ClaimOutcome, Wait, WaitingCaller};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::evidence::Want;
use crate::queue::step::{self as queue, JobRef};
use crate::session::new_session::{NewSession, begin_life, create_session};
use crate::session::register::close_gone;
use crate::session::resume::held;
use crate::session::view::HeldView;
use crate::transact::{Reply, Service};

/// How many sessions of a directory are checked for work in it.
const NEWEST: usize = 64;

/// A run that is ready to start. Its agent's process waits.
#[derive(Debug, Clone, PartialEq)]
pub struct StartRun {
    pub id: RunId,
    pub planned: Planned,
    pub begin: Begin,
    /// The id of a new conversation, if the agent lets us choose it.
    pub intended: Option<NativeId>,
    /// The agent's process and its ancestors.
    pub chain: Vec<Ancestor>,
    pub runner: Process,
    pub workdir: Workdir,
    pub shares_dir: bool,
    /// Whether it claims its item.
    pub exclusive: bool,
    /// How long its agent may run.
    pub timeout: Option<Duration>,
    pub trigger: Trigger,
    pub goes_on: Option<RunId>,
    pub skill: Option<String>,
    pub prompt_hash: String,
    pub log: String,
    /// The job that it is for.
    pub job: Option<JobRef>,
}

/// The outcome of starting a run.
#[derive(Debug, Clone)]
pub enum StartTurn {
    Started(Box<Started>),
    /// Another run or session has what it needs, until one of these processes exits.
    Held {
        error: Box<Error>,
        watch: Vec<Process>,
    },
    /// It waits in line for its item.
    Wait(Wait),
    /// This run is over, and its end must be recorded first.
    Settle(RunId),
    /// The conversation has changed, so the run must be planned again.
    Replan,
}

/// A run whose agent may be started.
#[derive(Debug, Clone)]
pub struct Started {
    pub run: RunView,
    /// The session of its agent.
    pub token: SessionToken,
    /// What the session held before and is not granted again.
    pub released: Vec<HeldView>,
    /// Handles of other sessions that work in the directory.
    pub neighbours: Vec<String>,
}

impl Service<'_> {
    /// Starts a run whose agent's process waits. With a waiter, a claimed item is waited for in
    /// line.
    pub fn start_run(
        &mut self,
        request: &StartRun,
        waiting: Option<&WaitingCaller>,
    ) -> Reply<StartTurn> {
        self.transact(TxMode::Read, |ctx| start(ctx, request, waiting))
    }
}

fn start(
    ctx: &mut Ctx<'_>,
    request: &StartRun,
    waiting: Option<&WaitingCaller>,
) -> Result<StartTurn, Stop> {
    let caller = caller::identify(ctx)?;
    let Planned {
        agent, role, item, ..
    } = &request.planned;
    let now = planned(ctx, agent, role, item)?;
    if now.root != request.planned.root || now.revision != request.planned.revision {
        return Ok(StartTurn::Replan);
    }
    if let Some(job) = &request.job {
        queue::check(ctx, job, &request.runner)?;
    }
    if let Some(turn) = occupied(ctx, request)? {
        claims::let_others_go_first(ctx, caller.as_ref(), item, waiting)?;
        return Ok(turn);
    }
    refuse_survivors(ctx, request)?;
    let owner = match request.begin.replaced_or_resumed() {
        Some(native_id) => match owner_of(ctx, request, native_id)? {
            Owner::Gone(session) => Some(*session),
            Owner::Nobody => None,
            Owner::Lives { error, process } => {
                claims::let_others_go_first(ctx, caller.as_ref(), item, waiting)?;
                let error = Box::new(Error::from(error));
                let watch = process.into_iter().collect();
                return Ok(StartTurn::Held { error, watch });
            }
        },
        None => None,
    };
    let mut claim = None;
    if request.exclusive {
        match claims::ask_for(ctx, caller.as_ref(), owner.as_ref(), item, waiting)? {
            ClaimOutcome::Ready(ready) => claim = Some(ready),
            ClaimOutcome::Covered => {}
            ClaimOutcome::Wait(wait) => return Ok(StartTurn::Wait(wait)),
            ClaimOutcome::Refused {
                error,
                waits: true,
                watch,
            } => return Ok(StartTurn::Held { error, watch }),
            ClaimOutcome::Refused { error, .. } => return Err(Stop::Refuse(error)),
        }
    }
    lock(ctx, request, owner.as_ref())?;
    let released = match &owner {
        Some(owner) => held(ctx, owner)?,
        None => Vec::new(),
    };
    let session = match owner {
        Some(owner) => next_life(ctx, owner, request, caller.as_ref())?,
        None => new_session(ctx, request, caller.as_ref())?,
    };
    let exclusive = claim.is_some();
    if let Some(ready) = claim {
        claims::grant_to(ctx, &session, caller.as_ref(), ready, item, waiting)?;
    }
    let run = record(ctx, request, &session, caller.as_ref(), exclusive)?;
    if let Some(job) = &request.job {
        queue::started(ctx, job, &run)?;
    }
    if let Begin::InPlaceOf(native_id) = &request.begin {
        claims::forget(ctx, &run, native_id)?;
    }
    let released = released.into_iter();
    Ok(StartTurn::Started(Box::new(Started {
        token: session.token(),
        released: released
            .filter(|held| !exclusive || held.key != item.as_str())
            .collect(),
        neighbours: neighbours(ctx, &session)?,
        run: ctx.run_view(&run)?,
    })))
}

fn lock(ctx: &mut Ctx<'_>, request: &StartRun, owner: Option<&Session>) -> Result<(), Stop> {
    let mut locks = vec![
        Lock::Conversation(request.planned.root.clone()),
        Lock::Run(request.id.clone()),
    ];
    if let Some(native_id) = request.begin.replaced_or_resumed() {
        locks.push(Lock::Native(
            request.planned.agent.clone(),
            native_id.clone(),
        ));
    }
    locks.extend(owner.map(|owner| Lock::Session(owner.id)));
    ctx.lock(locks)
}

/// Finds a run that has the conversation or the directory.
fn occupied(ctx: &mut Ctx<'_>, request: &StartRun) -> Result<Option<StartTurn>, Stop> {
    let planned = &request.planned;
    let mut others = Vec::new();
    let Planned {
        agent, role, root, ..
    } = planned;
    if let Some(run) = ctx.tx.open_run_of(agent, role, root)? {
        others.push((Resource::Conversation, run));
    }
    if !request.shares_dir {
        let host = ctx.observer.host.clone();
        let there = ctx.tx.open_runs_in(&host, &request.workdir.dir)?;
        let alone = there.into_iter().filter(|run| !run.shares_dir);
        others.extend(alone.map(|run| (Resource::Directory, run)));
    }
    if let Some((wanted, run)) = others.into_iter().next() {
        let life = ctx.run_life(&run)?;
        if life.is_over() {
            return Ok(Some(StartTurn::Settle(run.id)));
        }
        if !life.is_live()
            && let Some(doubt) = life.doubt()
        {
            let why = doubt.to_string();
            return Err(Error::from(RunError::CannotTell { run: run.id, why }).into());
        }
        let watch = run.runner.iter().chain(&life.process).cloned().collect();
        let run = Box::new(ctx.run_view(&run)?);
        let error = Box::new(Error::from(RunError::Held { wanted, run }));
        return Ok(Some(StartTurn::Held { error, watch }));
    }
    Ok(None)
}

/// Refuses to replace a run that was cut off while some of its processes still run.
fn refuse_survivors(ctx: &mut Ctx<'_>, request: &StartRun) -> Result<(), Stop> {
    let planned = &request.planned;
    let (host, boot) = (ctx.observer.host.clone(), ctx.observer.boot.clone());
    let of = CutOff::Of(&planned.agent, &planned.role, &planned.root);
    let mut cut_off = ctx.tx.runs_cut_off(&host, &boot, of)?;
    if !request.shares_dir {
        let here = CutOff::In(&request.workdir.dir);
        cut_off.extend(ctx.tx.runs_cut_off(&host, &boot, here)?);
    }
    look_for_carriers(ctx, &cut_off)?;
    for run in cut_off {
        let left = ctx.run_survivors(&run)?;
        if !left.ours.is_empty() {
            let survivors = left
                .ours
                .into_iter()
                .map(|(_, survivor)| survivor)
                .collect();
            return Err(Error::from(RunError::Survivors {
                run: run.id,
                survivors,
            })
            .into());
        }
        if let Some(why) = left.doubt {
            return Err(Error::from(RunError::SurvivorsUnknown { run: run.id, why }).into());
        }
    }
    Ok(())
}

/// Makes sure that the processes that these runs left have been searched for, in one pass.
fn look_for_carriers(ctx: &Ctx<'_>, runs: &[Run]) -> Result<(), Stop> {
    let mut unseen: Vec<(String, StartTicks)> = Vec::new();
    for run in runs {
        let is_new = unseen.iter().all(|(other, _)| other != run.id.as_str());
        if is_new
            && ctx.evidence.carriers(run.id.as_str()).is_none()
            && let Some(since) = began(ctx, run)
        {
            unseen.push((run.id.to_string(), since));
        }
    }
    if unseen.is_empty() {
        Ok(())
    } else {
        Err(Stop::Look(Want::Carriers(unseen)))
    }
}

/// The earliest possible start of a run's processes: its runner started before all of them. None if
/// it ran in an earlier boot or elsewhere.
fn began(ctx: &Ctx<'_>, run: &Run) -> Option<StartTicks> {
    let runner = run.runner.as_ref()?;
    let is_here = runner.boot == ctx.observer.boot && runner.host == ctx.observer.host;
    is_here.then_some(runner.start)
}

/// The processes that carry a run's variable.
#[derive(Debug, Default)]
pub(crate) struct RunSurvivors {
    /// Those that only the run can have started.
    pub ours: Vec<(Process, Survivor)>,
    /// Those that are another session, or run below one.
    pub others: Vec<Survivor>,
    pub doubt: Option<String>,
}

impl Ctx<'_> {
    /// The processes that carry a run's variable, apart from its agent.
    pub(crate) fn run_survivors(&mut self, run: &Run) -> Result<RunSurvivors, Stop> {
        let Some(token) = run.session else {
            return Ok(RunSurvivors::default());
        };
        let session = self.session(token.id)?;
        let Some(own) = session.process.clone() else {
            return Ok(RunSurvivors::default());
        };
        let Some(since) = began(self, run) else {
            return Ok(RunSurvivors::default());
        };
        let Some(found) = self.evidence.carriers(run.id.as_str()).cloned() else {
            let wanted = vec![(run.id.to_string(), since)];
            return Err(Stop::Look(Want::Carriers(wanted)));
        };
        let mut sorted = RunSurvivors {
            doubt: found.doubt,
            ..RunSurvivors::default()
        };
        for carrier in found.found {
            let is_agent = session.life == token.life && carrier.process.same_as(&own);
            if is_agent {
                continue;
            }
            if self.is_of_another(&carrier, session.id)? {
                sorted.others.push(carrier.shown);
            } else {
                sorted.ours.push((carrier.process, carrier.shown));
            }
        }
        Ok(sorted)
    }

    /// Whether a process that was left running, or the nearest session above it, is another session.
    pub(crate) fn is_of_another(
        &mut self,
        left: &LeftProcess,
        own: SessionId,
    ) -> Result<bool, Stop> {
        for process in std::iter::once(&left.process).chain(&left.above) {
            let here = self.tx.sessions_at_any(&[process.into()])?;
            let mut same = here.iter().filter(|session| {
                let its = session.process.as_ref();
                its.is_some_and(|its| its.same_as(process))
            });
            if let Some(session) = same.next() {
                return Ok(session.id != own);
            }
        }
        Ok(false)
    }
}

/// The owner of a conversation that will be resumed, or replaced because its agent lost it.
enum Owner {
    Nobody,
    /// Its session is over, so the run becomes that session's next process.
    Gone(Box<Session>),
    Lives {
        error: RunError,
        process: Option<Process>,
    },
}

fn owner_of(ctx: &mut Ctx<'_>, request: &StartRun, native_id: &NativeId) -> Result<Owner, Stop> {
    let agent = &request.planned.agent;
    let owner = ctx.tx.native_owner(agent, native_id)?;
    let mut there = ctx.tx.native_visitors(agent, native_id)?;
    there.extend(owner);
    for id in there {
        let session = ctx.session(id)?;
        let is_in_it = session.is_open() && session.native_id.as_ref() == Some(native_id);
        if is_in_it && let Some(lives) = lives(ctx, request, &session)? {
            return Ok(lives);
        }
    }
    let Some(owner) = owner else {
        return Ok(Owner::Nobody);
    };
    let owner = ctx.session(owner)?;
    // That session continues in another conversation.
    if owner.is_open() && lives(ctx, request, &owner)?.is_some() {
        return Ok(Owner::Nobody);
    }
    Ok(Owner::Gone(Box::new(close_gone(ctx, owner)?)))
}

fn lives(ctx: &mut Ctx<'_>, request: &StartRun, session: &Session) -> Result<Option<Owner>, Stop> {
    let state = match ctx.standing(session)? {
        Standing::Gone(_) | Standing::Expired(_) => return Ok(None),
        Standing::Live => "live",
        Standing::Trusted { .. } | Standing::Suspect { .. } => "perhaps live",
    };
    let error = RunError::InUse {
        agent: request.planned.agent.clone(),
        item: request.planned.item.clone(),
        handle: session.handle.to_string(),
        state,
        pid: session.process.as_ref().map_or(0, |process| process.pid),
        dir: text::name(&session.workdir.dir).into_owned(),
    };
    let process = session.process.clone();
    Ok(Some(Owner::Lives { error, process }))
}

/// How a run's process was started: for one turn. A resume repeats nothing of its command line.
fn headless() -> Option<Start> {
    Some(Start {
        headless: true,
        flags: Vec::new(),
    })
}

fn new_session(
    ctx: &mut Ctx<'_>,
    request: &StartRun,
    caller: Option<&Caller>,
) -> Result<Session, Stop> {
    let new = NewSession {
        agent: request.planned.agent.clone(),
        native_id: request.begin.resumed().cloned(),
        fork_of: None,
        parent: caller.map(|caller| caller.session.token()),
        twin_of: None,
        title: Some(title(request)),
        workdir: request.workdir.clone(),
        hosted: false,
        process: request.chain.first().map(|own| own.process.clone()),
        start: headless(),
        daemon: None,
    };
    let session = create_session(ctx, new)?;
    if let Some(native_id) = &session.native_id {
        let before = ctx.tx.native_owner(&session.agent, native_id)?;
        let at = ctx.now.wall;
        ctx.tx
            .set_native_owner(&session.agent, native_id, before, session.id, at)?;
    }
    enter(ctx, &session, EventKind::Registered, request, caller)?;
    Ok(session)
}

/// Makes the run's process the next one of a session that is over. Nothing is granted to it again.
#[allow(clippy::needless_pass_by_value)] // the earlier life is of no use afterwards
fn next_life(
    ctx: &mut Ctx<'_>,
    previous: Session,
    request: &StartRun,
    caller: Option<&Caller>,
) -> Result<Session, Stop> {
    ctx.lock([Lock::Session(previous.id)])?;
    let mut session = resumed(ctx, &previous, &request.chain);
    session.native_id = request.begin.resumed().cloned();
    session.parent = caller.map(|caller| caller.session.token());
    session.workdir = request.workdir.clone();
    session.title = Some(title(request));
    ctx.tx.update_session(&session)?;
    session.revision += 1;
    begin_life(ctx, &session)?;
    enter(ctx, &session, EventKind::Resumed, request, caller)?;
    Ok(session)
}

/// A session in its next life, not written yet.
pub(super) fn resumed(ctx: &Ctx<'_>, previous: &Session, chain: &[Ancestor]) -> Session {
    Session {
        life: previous.life.next(),
        process: chain.first().map(|own| own.process.clone()),
        daemon: None,
        hosted: false,
        start: headless(),
        closed: None,
        activity: None,
        seen_at: ctx.now.wall,
        lease: ctx.now.after(ctx.policy.lease),
        ..previous.clone()
    }
}

fn title(request: &StartRun) -> Title {
    let item = request.planned.item.as_str();
    Title::person(text::clipped(&format!("run of {item}"), text::MAX_TITLE))
}

fn enter(
    ctx: &mut Ctx<'_>,
    session: &Session,
    kind: EventKind,
    request: &StartRun,
    caller: Option<&Caller>,
) -> Result<(), Stop> {
    ctx.own = Some(session.id);
    ctx.move_tree(session, true);
    let (run, item) = (&request.id, &request.planned.item);
    let life = match session.life {
        Life::FIRST => String::new(),
        life => format!(", life {life}"),
    };
    ctx.log(&NewEvent {
        actor: caller.map(|caller| caller.session.id),
        ..ctx.event(
            kind,
            Some(session.id),
            "run",
            format!("{run} for {item}{life}"),
        )
    })
}

fn record(
    ctx: &mut Ctx<'_>,
    request: &StartRun,
    session: &Session,
    caller: Option<&Caller>,
    exclusive: bool,
) -> Result<Run, Stop> {
    let planned = &request.planned;
    let before = request.begin.replaced_or_resumed().cloned();
    let run = Run {
        id: request.id.clone(),
        agent: planned.agent.clone(),
        role: planned.role.clone(),
        item: planned.item.clone(),
        root: planned.root.clone(),
        host: ctx.observer.host.clone(),
        session: Some(session.token()),
        runner: Some(request.runner.clone()),
        before,
        intended: request.intended.clone(),
        after: request.begin.resumed().cloned(),
        dir: request.workdir.dir.clone(),
        shares_dir: request.shares_dir,
        timeout: request.timeout,
        exclusive,
        trigger: request.trigger,
        skill: request.skill.clone(),
        prompt_hash: Some(request.prompt_hash.clone()),
        log: Some(request.log.clone()),
        goes_on: request.goes_on.clone(),
        created_at: ctx.now.wall,
        begun_at: None,
        fell_back: matches!(request.begin, Begin::InPlaceOf(_)),
        stop: None,
        usage: Usage::default(),
        end: None,
        revision: 0,
    };
    ctx.tx.insert_run(&run)?;
    let how = match &request.begin {
        Begin::Fresh => "a fresh conversation".to_owned(),
        Begin::InPlaceOf(gone) => format!("a fresh conversation: {gone} is gone"),
        Begin::Resume(native_id) => format!("conversation {native_id}"),
    };
    let evidence = format!("{} in {}, {how}", run.id, run.dir);
    ctx.log(&NewEvent {
        actor: caller.map(|caller| caller.session.id),
        key: Some(run.item.clone()),
        ..ctx.event(EventKind::RunStarting, Some(session.id), "run", evidence)
    })?;
    Ok(run)
}

/// Other live sessions that work in the same directory. They are reported and block nothing.
fn neighbours(ctx: &mut Ctx<'_>, own: &Session) -> Result<Vec<String>, Stop> {
    let there = ctx.tx.list_sessions(&SessionFilter {
        under: Some(own.workdir.dir.clone()),
        readable_only: true,
        limit: NEWEST,
        ..SessionFilter::default()
    })?;
    ctx.look_at_all(&there)?;
    let mut found = Vec::new();
    for session in there {
        let is_there = session.id != own.id
            && session.workdir.dir == own.workdir.dir
            && !ctx.is_elsewhere(&session);
        if is_there && ctx.liveness(&session)? == Liveness::Alive {
            found.push(session.handle.to_string());
        }
    }
    Ok(found)
}

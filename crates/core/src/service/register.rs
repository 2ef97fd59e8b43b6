//! Registering: finding out which session a process is, and writing that down.
//!
//! [`crate::registration`] decides; this module gathers what it needs to know and carries out its plan.
//! Registering never ends, robs or renames another session: the only session that it may close is one
//! that is gone and whose conversation moves.

use std::collections::BTreeMap;

use super::caller;
use super::claims::regrant;
use super::context::{Ctx, Stop};
use super::{Reply, Service};
use crate::agent;
use crate::claim::Means;
use crate::error::Error;
use crate::event::{EventKind, NewEvent};
use crate::id::{AgentName, Life, NativeId, SessionId, SessionToken};
use crate::notice::NoticeKind;
use crate::process::{Ancestor, Looks, Process};
use crate::registration::{Arrival, Here, NativeMove, Owner, Plan, Source, View, plan};
use crate::session::{ClosedBy, META_KEYS, MetaKey, Place, Session, Standing};
use crate::store::Mode;
use crate::view::{HeldView, SessionView};

/// Which process registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The session, the agent, or the person's shell that the caller runs in.
    Nearest,
    /// The first process of this chain; the rest are the processes above it.
    Given(Vec<Ancestor>),
    /// One that could not be established: the session lives by its lease alone.
    Unverified,
}

/// A registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterRequest {
    /// Which process.
    pub subject: Subject,
    /// The agent, where the process does not tell.
    pub agent: Option<AgentName>,
    /// The conversation that it is in.
    pub native_id: Option<NativeId>,
    /// What made it register.
    pub source: Source,
    /// Whether the process speaks for several conversations.
    pub hosted: bool,
    /// Where it works.
    pub place: Place,
    /// Whether the place was named, and so replaces the one that is known.
    pub place_named: bool,
    /// What people may call its work.
    pub title: Option<String>,
    /// Its parent, where that is not the session above it.
    pub parent: Option<String>,
    /// Why, where that takes a reason.
    pub reason: Option<String>,
    /// Small values to keep.
    pub metadata: BTreeMap<MetaKey, String>,
}

/// What a registration came to.
#[derive(Debug, Clone)]
pub struct Registered {
    /// The session.
    pub session: SessionView,
    /// What TENURE_SESSION must be to name it in this life.
    pub token: String,
    /// Claims that it was granted again.
    pub regranted: Vec<HeldView>,
    /// Claims that others took meanwhile, with who has them.
    pub taken: Vec<String>,
}

/// The process that registers, and what is above it.
struct Candidate {
    process: Option<Process>,
    looks: Looks,
    above: Vec<Ancestor>,
    is_person: bool,
}

impl Service<'_> {
    /// Registers a process as a session, or finds the session that it is.
    pub fn register(&mut self, request: &RegisterRequest) -> Reply<Registered> {
        self.run(Mode::Write, |ctx| register(ctx, request))
    }
}

fn register(ctx: &mut Ctx<'_>, request: &RegisterRequest) -> Result<Registered, Stop> {
    let candidate = find_candidate(ctx, request)?;
    let (view, known) = gather(ctx, request, candidate.process.as_ref())?;
    let agent = agent_of(request, &candidate, known.as_ref())?;
    let spec = agent::spec_of(&agent);
    let arrival = Arrival {
        native_id: request.native_id.clone(),
        source: request.source,
        fork_flag: spec.is_some_and(|spec| agent::started_as_fork(spec, &candidate.looks)),
        hosted: request.hosted || spec.is_some_and(|spec| spec.hosts),
    };
    let view = with_owner(ctx, view, &agent, request.native_id.as_ref())?;
    let plan = plan(&arrival, &view);
    check_metadata(ctx, &plan, request)?;
    let mut work = Work {
        request,
        candidate: &candidate,
        agent,
        hosted: arrival.hosted,
        regranted: Vec::new(),
        taken: Vec::new(),
    };
    let session = work.carry_out(ctx, &plan)?;
    for (key, value) in &request.metadata {
        ctx.tx.set_metadata(session.id, key, Some(value))?;
    }
    let told = ctx.tx.take_notices(session.id, ctx.now.wall)?;
    ctx.notices.extend(told);
    let mut shown = ctx.view_as(&session, &crate::liveness::Liveness::Alive)?;
    if candidate.process.is_none() {
        shown = ctx.view(&session)?;
    }
    shown.registered = Some(plan.word());
    Ok(Registered {
        token: session.token().to_string(),
        session: shown,
        regranted: work.regranted,
        taken: work.taken,
    })
}

fn find_candidate(ctx: &mut Ctx<'_>, request: &RegisterRequest) -> Result<Candidate, Stop> {
    let chain = match &request.subject {
        Subject::Unverified => {
            return Ok(Candidate {
                process: None,
                looks: Looks::default(),
                above: ctx.facts.chain.clone(),
                is_person: false,
            });
        }
        Subject::Given(chain) => return Ok(candidate_at(chain, 0, false)),
        Subject::Nearest => &ctx.facts.chain,
    };
    for (height, ancestor) in chain.iter().enumerate() {
        let lives = ctx.tx.lives_at((&ancestor.process).into())?;
        let is_session = lives
            .iter()
            .any(|(_, process)| process.same_as(&ancestor.process));
        if is_session || agent::recognise(&ancestor.looks).is_some() {
            return Ok(candidate_at(chain, height, false));
        }
    }
    let shell = chain
        .iter()
        .position(|a| a.leads_terminal && agent::is_shell(&a.looks));
    match shell {
        Some(height) if ctx.facts.has_terminal => Ok(candidate_at(chain, height, true)),
        _ => Err(Error::Usage {
            what: "no agent and no interactive shell was found above this process".into(),
            hint:
                "say which process registers, for a script: tenure register --agent NAME --pid $$"
                    .into(),
        }
        .into()),
    }
}

fn candidate_at(chain: &[Ancestor], height: usize, is_person: bool) -> Candidate {
    let this = &chain[height];
    Candidate {
        process: Some(this.process.clone()),
        looks: this.looks.clone(),
        above: chain[height + 1..].to_vec(),
        is_person,
    }
}

/// What the store knows about the process, and the session that it is, if it is one.
fn gather(
    ctx: &mut Ctx<'_>,
    request: &RegisterRequest,
    process: Option<&Process>,
) -> Result<(View, Option<Session>), Stop> {
    let mut view = View::default();
    let mut known = None;
    let Some(process) = process else {
        return Ok((view, known));
    };
    for (token, recorded) in ctx.tx.lives_at(process.into())? {
        if !recorded.same_as(process) {
            continue;
        }
        let session = ctx.session(token.id)?;
        match (session.life == token.life, session.is_open()) {
            (true, true) => view.here.push(Here {
                id: session.id,
                native_id: session.native_id.clone(),
                fork_of: session.fork_of.clone(),
                hosted: session.hosted,
            }),
            (true, false)
                if session.native_id.is_none() || session.native_id == request.native_id =>
            {
                view.ended_here.get_or_insert(session.id);
            }
            (true, false) if request.native_id.is_none() => {
                view.ended_here.get_or_insert(session.id);
            }
            (true, false) => {}
            (false, _) => {
                view.superseded.get_or_insert(session.id);
            }
        }
        known.get_or_insert(session);
    }
    if !view.here.is_empty() {
        view.superseded = None;
    }
    Ok((view, known))
}

fn with_owner(
    ctx: &mut Ctx<'_>,
    mut view: View,
    agent: &AgentName,
    native_id: Option<&NativeId>,
) -> Result<View, Stop> {
    if let Some(native_id) = native_id
        && let Some(id) = ctx.tx.native_owner(agent, native_id)?
    {
        let owner = ctx.session(id)?;
        let gone = ctx.standing(&owner)?.is_gone();
        view.owner = Some(Owner { id, gone });
    }
    Ok(view)
}

/// The agent's name: what the request says, what the session is, or what the process looks like.
fn agent_of(
    request: &RegisterRequest,
    candidate: &Candidate,
    known: Option<&Session>,
) -> Result<AgentName, Stop> {
    if let Some(session) = known.filter(|session| session.is_open()) {
        if let Some(named) = request
            .agent
            .as_ref()
            .filter(|named| **named != session.agent)
        {
            return Err(Error::Invalid {
                what: format!(
                    "this process is {}, which is {}, not {named}",
                    session.handle, session.agent
                ),
                hint:
                    "a worker of its own names its process: tenure register --agent NAME --pid PID"
                        .into(),
            }
            .into());
        }
        return Ok(session.agent.clone());
    }
    if let Some(named) = &request.agent {
        return Ok(named.clone());
    }
    if candidate.is_person {
        return Ok(AgentName::known("human"));
    }
    if let Some(spec) = agent::recognise(&candidate.looks) {
        return Ok(AgentName::known(spec.name));
    }
    match known {
        Some(session) => Ok(session.agent.clone()),
        None => Ok(agent::name_from_looks(&candidate.looks)),
    }
}

/// Refuses before anything is written what would exceed a session's room for small values.
fn check_metadata(ctx: &mut Ctx<'_>, plan: &Plan, request: &RegisterRequest) -> Result<(), Stop> {
    let mut keys: std::collections::BTreeSet<MetaKey> = request.metadata.keys().cloned().collect();
    if let Plan::Same(id) | Plan::First(id, _) | Plan::Rotated(id, _) | Plan::Resumed(id) = plan {
        keys.extend(ctx.tx.metadata(*id)?.into_keys());
    }
    if keys.len() > META_KEYS {
        return Err(Error::Invalid {
            what: format!(
                "a session keeps at most {META_KEYS} values; this would make {}",
                keys.len()
            ),
            hint: "tenure meta unset KEY makes room".into(),
        }
        .into());
    }
    Ok(())
}

/// Carrying out a plan.
struct Work<'a> {
    request: &'a RegisterRequest,
    candidate: &'a Candidate,
    agent: AgentName,
    hosted: bool,
    regranted: Vec<HeldView>,
    taken: Vec<String>,
}

impl Work<'_> {
    fn carry_out(&mut self, ctx: &mut Ctx<'_>, plan: &Plan) -> Result<Session, Stop> {
        let word = plan.word();
        let native_id = self.request.native_id.clone();
        match plan {
            Plan::Same(id) => self.keep(ctx, *id),
            Plan::First(id, moves) => self.enter(ctx, *id, *moves, "first"),
            Plan::Rotated(id, moves) => self.enter(ctx, *id, *moves, "rotated"),
            Plan::Resumed(id) => self.resume(ctx, *id),
            Plan::Twin { of, visits } => self.twin(ctx, *of, *visits),
            Plan::Forked { own_native } => {
                let (own, fork_of) = if *own_native {
                    (native_id, None)
                } else {
                    (None, native_id)
                };
                self.create(ctx, word, own, fork_of, None)
            }
            Plan::New | Plan::Healed | Plan::Hosted => {
                self.create(ctx, word, native_id, None, None)
            }
            Plan::Ambiguous => Err(Error::Ambiguous {
                what: "this process speaks for several sessions".into(),
                candidates: self.hosted_here(ctx)?,
            }
            .into()),
        }
    }

    fn hosted_here(&self, ctx: &mut Ctx<'_>) -> Result<Vec<String>, Stop> {
        let Some(process) = &self.candidate.process else {
            return Ok(Vec::new());
        };
        let sessions = ctx.tx.sessions_at(process.into())?;
        Ok(sessions
            .iter()
            .map(|session| session.handle.to_string())
            .collect())
    }

    /// A session that was not known.
    fn create(
        &mut self,
        ctx: &mut Ctx<'_>,
        word: &'static str,
        native_id: Option<NativeId>,
        fork_of: Option<NativeId>,
        twin_of: Option<SessionId>,
    ) -> Result<Session, Stop> {
        let (id, handle) = ctx.mint(&self.agent)?;
        let session = Session {
            id,
            handle,
            agent: self.agent.clone(),
            native_id,
            fork_of,
            parent: self.parent(ctx)?,
            twin_of,
            title: self.request.title.clone(),
            place: self.request.place.clone(),
            hosted: self.hosted,
            life: Life::FIRST,
            process: self.candidate.process.clone(),
            activity: None,
            started_at: ctx.now.wall,
            seen_at: ctx.now.wall,
            lease: ctx.now.after(ctx.policy.lease),
            closed: None,
            revision: 0,
        };
        ctx.tx.insert_session(&session)?;
        self.begin_life(ctx, &session)?;
        match (&session.native_id, twin_of) {
            (Some(native_id), Some(_)) => {
                ctx.tx
                    .add_visit(&session.agent, native_id, id, ctx.now.wall)?;
            }
            (Some(native_id), None) => {
                ctx.tx
                    .set_native_owner(&session.agent, native_id, id, ctx.now.wall)?;
            }
            (None, _) => {}
        }
        let evidence = self.evidence(session.native_id.as_ref());
        ctx.log(&NewEvent {
            actor: session.parent.map(|token| token.id),
            reason: self.request.reason.clone(),
            ..ctx.event(EventKind::Registered, Some(id), word, evidence)
        })?;
        Ok(session)
    }

    fn begin_life(&self, ctx: &mut Ctx<'_>, session: &Session) -> Result<(), Stop> {
        if let Some(process) = &session.process {
            ctx.tx.insert_life(session.token(), process, ctx.now.wall)?;
        }
        Ok(())
    }

    /// The session above the process, or the one that was named.
    fn parent(&self, ctx: &mut Ctx<'_>) -> Result<Option<SessionToken>, Stop> {
        let above = nearest_session(ctx, &self.candidate.above)?;
        let Some(name) = &self.request.parent else {
            return Ok(above);
        };
        let named = caller::find(ctx, name)?;
        if above.is_some_and(|token| token.id == named.id) {
            return Ok(above);
        }
        if self.request.reason.is_none() {
            return Err(Error::Usage {
                what: format!(
                    "{} is not the session that this process runs in",
                    named.handle
                ),
                hint: "add --reason \"why\" to make it the parent all the same; it is recorded"
                    .into(),
            }
            .into());
        }
        Ok(Some(named.token()))
    }

    fn evidence(&self, native_id: Option<&NativeId>) -> String {
        let process = match &self.candidate.process {
            Some(process) => format!(
                "pid {} started at tick {}",
                process.pid, process.start.ticks
            ),
            None => "its process could not be established".into(),
        };
        match native_id {
            Some(native_id) => format!("{process}, conversation {native_id}"),
            None => process,
        }
    }

    /// The process is the session already: what the request names is merged, the rest stays.
    fn keep(&mut self, ctx: &mut Ctx<'_>, id: SessionId) -> Result<Session, Stop> {
        let mut session = ctx.session(id)?;
        caller::renew(ctx, &mut session)?;
        let mut changed = self.merged(&session);
        let owns = |named: &NativeId| changed.fork_of.as_ref() != Some(named);
        if let Some(native_id) = self.request.native_id.as_ref().filter(|named| owns(named)) {
            changed.native_id = Some(native_id.clone());
        }
        if changed == session {
            return Ok(session);
        }
        ctx.tx.update_session(&changed)?;
        changed.revision += 1;
        let evidence = self.evidence(changed.native_id.as_ref());
        ctx.log(&ctx.event(EventKind::Changed, Some(id), "register", evidence))?;
        Ok(changed)
    }

    fn merged(&self, session: &Session) -> Session {
        let mut merged = session.clone();
        if self.request.title.is_some() {
            merged.title.clone_from(&self.request.title);
        }
        if self.request.place_named || merged.place.dir.is_empty() {
            merged.place = self.request.place.clone();
        }
        merged
    }

    /// The session enters a conversation: its claims stay.
    fn enter(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: SessionId,
        moves: NativeMove,
        mechanism: &'static str,
    ) -> Result<Session, Stop> {
        let mut session = ctx.session(id)?;
        caller::renew(ctx, &mut session)?;
        let mut changed = self.merged(&session);
        changed.native_id.clone_from(&self.request.native_id);
        ctx.tx.update_session(&changed)?;
        changed.revision += 1;
        let evidence = self.evidence(changed.native_id.as_ref());
        ctx.log(&ctx.event(EventKind::Rotated, Some(id), mechanism, evidence))?;
        let Some(native_id) = changed.native_id.clone() else {
            return Ok(changed);
        };
        match moves {
            NativeMove::Own => {
                ctx.tx
                    .set_native_owner(&changed.agent, &native_id, id, ctx.now.wall)?;
            }
            NativeMove::Visit(owner) => {
                ctx.tx
                    .add_visit(&changed.agent, &native_id, id, ctx.now.wall)?;
                let owner = ctx.session(owner)?;
                tell_twins(ctx, &owner, &changed)?;
            }
            NativeMove::Take(former) => {
                self.take_from(ctx, former, &changed)?;
                ctx.tx
                    .set_native_owner(&changed.agent, &native_id, id, ctx.now.wall)?;
            }
        }
        Ok(changed)
    }

    /// A gone session's conversation, and what it would be granted again, go to `heir`.
    fn take_from(
        &mut self,
        ctx: &mut Ctx<'_>,
        former: SessionId,
        heir: &Session,
    ) -> Result<(), Stop> {
        let former = ctx.session(former)?;
        let former = close_gone(ctx, former)?;
        let outcome = regrant(ctx, &former, heir, Means::Moved)?;
        self.regranted.extend(outcome.regranted);
        self.taken.extend(outcome.taken);
        let why = format!("its conversation went on in {}", heir.handle);
        let mut moved = former.clone();
        moved.closed = Some(crate::session::Closed {
            at: ctx.now.wall,
            by: ClosedBy::Moved,
            why: why.clone(),
        });
        ctx.tx.update_session(&moved)?;
        ctx.log(&NewEvent {
            actor: Some(heir.id),
            ..ctx.event(EventKind::Moved, Some(former.id), "moved", why)
        })
    }

    /// The next process of a session that is gone.
    fn resume(&mut self, ctx: &mut Ctx<'_>, id: SessionId) -> Result<Session, Stop> {
        let former = ctx.session(id)?;
        let former = close_gone(ctx, former)?;
        let mut session = self.merged(&former);
        session.life = former.life.next();
        session.process.clone_from(&self.candidate.process);
        session.hosted = self.hosted;
        session.parent = self.parent(ctx)?;
        session.closed = None;
        session.activity = None;
        session.seen_at = ctx.now.wall;
        session.lease = ctx.now.after(ctx.policy.lease);
        if self.request.native_id.is_some() {
            session.native_id.clone_from(&self.request.native_id);
        }
        ctx.tx.update_session(&session)?;
        session.revision += 1;
        self.begin_life(ctx, &session)?;
        let evidence = format!(
            "{}, life {}",
            self.evidence(session.native_id.as_ref()),
            session.life
        );
        ctx.log(&ctx.event(EventKind::Resumed, Some(id), "resumed", evidence))?;
        let outcome = regrant(ctx, &former, &session, Means::Resume)?;
        self.regranted = outcome.regranted;
        self.taken = outcome.taken;
        Ok(session)
    }

    /// A second live process in one conversation: a session of its own, and both are told.
    fn twin(&mut self, ctx: &mut Ctx<'_>, of: SessionId, visits: bool) -> Result<Session, Stop> {
        let native_id = self.request.native_id.clone();
        let (visited, own) = if visits {
            (native_id, None)
        } else {
            (None, native_id)
        };
        let mut twin = self.create(ctx, "twin", visited, None, Some(of))?;
        if let Some(own) = own {
            twin.native_id = Some(own.clone());
            ctx.tx.update_session(&twin)?;
            twin.revision += 1;
            ctx.tx
                .set_native_owner(&twin.agent, &own, twin.id, ctx.now.wall)?;
        }
        let owner = ctx.session(of)?;
        tell_twins(ctx, &owner, &twin)?;
        Ok(twin)
    }
}

fn tell_twins(ctx: &mut Ctx<'_>, owner: &Session, visitor: &Session) -> Result<(), Stop> {
    let native = visitor
        .native_id
        .as_ref()
        .map_or("its conversation".into(), |id| format!("conversation {id}"));
    let place = |session: &Session| match &session.process {
        Some(process) => format!(
            "{} (pid {} in {})",
            session.handle, process.pid, session.place.dir
        ),
        None => format!("{} (in {})", session.handle, session.place.dir),
    };
    let to_owner = format!(
        "{} is in {native} too; what both write there will mix",
        place(visitor)
    );
    ctx.notify(owner.id, NoticeKind::Twin, to_owner, Some(visitor.id), None)?;
    let to_visitor = format!(
        "{native} is open in {} as well; what both write there will mix",
        place(owner)
    );
    ctx.notify(
        visitor.id,
        NoticeKind::Twin,
        to_visitor,
        Some(owner.id),
        None,
    )
}

/// Closes a session that is gone but was not recorded as such.
fn close_gone(ctx: &mut Ctx<'_>, session: Session) -> Result<Session, Stop> {
    if !session.is_open() {
        return Ok(session);
    }
    match ctx.standing(&session)? {
        Standing::Gone(proof) => ctx.record_death(&session, &proof.to_string()),
        Standing::Expired(doubt) => {
            super::claims::end_by_lease(
                ctx,
                &session,
                &format!("{doubt}; its lease and the lock-delay are over"),
            )?;
            ctx.session(session.id)
        }
        Standing::Live | Standing::Trusted { .. } | Standing::Suspect { .. } => Ok(session),
    }
}

/// The nearest session among these processes, in its present life.
fn nearest_session(ctx: &mut Ctx<'_>, above: &[Ancestor]) -> Result<Option<SessionToken>, Stop> {
    for ancestor in above {
        for (token, recorded) in ctx.tx.lives_at((&ancestor.process).into())? {
            if !recorded.same_as(&ancestor.process) {
                continue;
            }
            let session = ctx.session(token.id)?;
            if session.life == token.life && session.is_open() {
                return Ok(Some(token));
            }
        }
        if agent::recognise(&ancestor.looks).is_some() {
            return Ok(None);
        }
    }
    Ok(None)
}

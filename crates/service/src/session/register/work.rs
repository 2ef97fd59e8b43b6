//! Carrying out a registration plan.

use super::request::{Candidate, RegisterRequest};
use crate::caller;
use crate::caller::present::{AncestorRole, below, nearest, sessions_of};
use crate::claim::{end_by_lease, regrant};
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::session::new_session::{NewSession, begin_life, create_session, move_to_window};
use crate::session::title::{keep_beneath, keep_present};
use crate::session::view::HeldView;
use tenure_core::claim::Means;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::hint::Hint;
use tenure_core::id::{AgentName, NativeId, SessionId, SessionToken};
use tenure_core::notice::NoticeKind;
use tenure_core::process::{Ancestor, Process};
use tenure_core::registration::{NativeMove, Plan};
use tenure_core::session::{ClosedBy, Session, Standing, Start, Title};
use tenure_core::store::Lock;
use tenure_core::{agent, text, title};

pub(super) struct Work<'a> {
    pub(super) request: &'a RegisterRequest,
    pub(super) candidate: &'a Candidate,
    pub(super) agent: AgentName,
    pub(super) hosted: bool,
    /// The session that owns the conversation.
    pub(super) owner: Option<SessionId>,
    /// Whether the registering process is the caller.
    pub(super) is_own: bool,
    /// The calling session, if it is another one.
    pub(super) actor: Option<SessionId>,
    pub(super) regranted: Vec<HeldView>,
    pub(super) taken: Vec<String>,
}

impl Work<'_> {
    pub(super) fn carry_out(&mut self, ctx: &mut Ctx<'_>, plan: &Plan) -> Result<Session, Stop> {
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
                what: "this process hosts several sessions".into(),
                by_name: false,
                candidates: self.hosted_here(ctx)?,
            }
            .into()),
        }
    }

    fn hosted_here(&self, ctx: &mut Ctx<'_>) -> Result<Vec<String>, Stop> {
        let Some(process) = &self.candidate.process else {
            return Ok(Vec::new());
        };
        let here = match &self.candidate.daemon {
            Some(daemon) => below(ctx, daemon)?,
            None => sessions_of(ctx, process)?,
        };
        Ok(here
            .iter()
            .map(|session| session.handle.to_string())
            .collect())
    }

    fn create(
        &mut self,
        ctx: &mut Ctx<'_>,
        word: &'static str,
        native_id: Option<NativeId>,
        fork_of: Option<NativeId>,
        twin_of: Option<SessionId>,
    ) -> Result<Session, Stop> {
        let new = NewSession {
            agent: self.agent.clone(),
            native_id,
            fork_of,
            parent: self.parent(ctx)?,
            twin_of,
            title: self.request.title.clone().map(Title::person),
            workdir: self.request.workdir.clone(),
            hosted: self.hosted,
            process: self.candidate.process.clone(),
            start: self.start(),
            daemon: self.candidate.daemon.clone(),
        };
        let session = create_session(ctx, new)?;
        let id = session.id;
        match (&session.native_id, twin_of) {
            (Some(native_id), Some(_)) => {
                ctx.tx
                    .add_visit(&session.agent, native_id, id, ctx.now.wall)?;
            }
            (Some(native_id), None) => {
                self.own(ctx, &session, native_id)?;
            }
            (None, _) => {}
        }
        let evidence = self.evidence(session.native_id.as_ref());
        let parent = session.parent.map(|token| token.id);
        self.log(ctx, id, EventKind::Registered, word, evidence, parent)?;
        Ok(session)
    }

    /// Makes a session the owner of a conversation whose owner was read before.
    fn own(&self, ctx: &mut Ctx<'_>, session: &Session, native: &NativeId) -> Result<(), Stop> {
        let (agent, at) = (&session.agent, ctx.now.wall);
        Ok(ctx
            .tx
            .set_native_owner(agent, native, self.owner, session.id, at)?)
    }

    /// The session above the process, or the one that the caller named.
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
                hint: Hint::step("add --reason REASON to make it the parent anyway (logged)"),
            }
            .into());
        }
        Ok(Some(named.token()))
    }

    /// The same for a session that is known already. A circle of parents would cover each other's claims.
    fn parent_of(
        &self,
        ctx: &mut Ctx<'_>,
        session: &Session,
    ) -> Result<Option<SessionToken>, Stop> {
        let parent = self.parent(ctx)?;
        let mut above = parent;
        for _ in 0..64 {
            let Some(token) = above else {
                return Ok(parent);
            };
            let one = ctx.session(token.id)?;
            if one.life != token.life {
                // Nothing is covered across lives.
                return Ok(parent);
            }
            if one.id == session.id {
                let named = ctx.session(parent.unwrap_or(token).id)?;
                return Err(Error::Usage {
                    what: below_itself(session, &named),
                    hint: Hint::step("name a session that was not started by this one"),
                }
                .into());
            }
            above = one.parent;
        }
        Ok(parent)
    }

    fn evidence(&self, native_id: Option<&NativeId>) -> String {
        let process = match &self.candidate.process {
            Some(process) => format!(
                "pid {} started at tick {}",
                process.pid, process.start.ticks
            ),
            None => "its process could not be identified".into(),
        };
        match native_id {
            Some(native_id) => format!("{process}, conversation {native_id}"),
            None => process,
        }
    }

    fn log(
        &self,
        ctx: &mut Ctx<'_>,
        session: SessionId,
        kind: EventKind,
        means: &'static str,
        evidence: String,
        parent: Option<SessionId>,
    ) -> Result<(), Stop> {
        ctx.log(&NewEvent {
            actor: self.actor.or(parent).filter(|actor| *actor != session),
            reason: self.request.reason.clone().map(String::from),
            ..ctx.event(kind, Some(session), means, evidence)
        })
    }

    /// Whether the plan does more to a known session than find it.
    pub(super) fn changes(&self, plan: &Plan) -> bool {
        let request = self.request;
        let names = request.title.is_some()
            || request.place_named
            || request.parent.is_some()
            || request.transcript.is_some()
            || !request.metadata.is_empty();
        names || !matches!(plan, Plan::Same(_))
    }

    /// Renews the lease; only the session itself does.
    fn renew(&self, ctx: &mut Ctx<'_>, session: &mut Session) -> Result<(), Stop> {
        if self.is_own {
            caller::renew(ctx, session)
        } else {
            Ok(())
        }
    }

    /// The process is the session already: what the request gives is merged, the rest stays.
    fn keep(&mut self, ctx: &mut Ctx<'_>, id: SessionId) -> Result<Session, Stop> {
        let mut session = ctx.session(id)?;
        self.renew(ctx, &mut session)?;
        if let Some(window) = self.found_window(&session) {
            move_to_window(ctx, &mut session, window, &self.candidate.looks)?;
        }
        let mut changed = self.merged(ctx, &session);
        if self.request.parent.is_some() {
            changed.parent = self.parent_of(ctx, &session)?;
        }
        let owns = |named: &NativeId| changed.fork_of.as_ref() != Some(named);
        if let Some(native_id) = self.request.native_id.as_ref().filter(|named| owns(named)) {
            changed.native_id = Some(native_id.clone());
        }
        if changed == session {
            return Ok(session);
        }
        ctx.lock([Lock::Session(id)])?;
        if self.request.title.is_some() {
            keep_present(ctx, &session)?;
        }
        ctx.tx.update_session(&changed)?;
        changed.revision += 1;
        let evidence = self.evidence(changed.native_id.as_ref());
        self.log(ctx, id, EventKind::Changed, "register", evidence, None)?;
        Ok(changed)
    }

    /// The registering window, if only the session's daemon was known so far.
    fn found_window(&self, session: &Session) -> Option<&Process> {
        let (process, daemon) = (self.candidate.process.as_ref()?, session.daemon.as_ref()?);
        let lives_with_it = session.process.as_ref() == Some(daemon);
        (lives_with_it && !process.same_as(daemon)).then_some(process)
    }

    /// How the registering process was started.
    fn start(&self) -> Option<Start> {
        agent::started(&self.agent, &self.candidate.looks)
    }

    fn merged(&self, ctx: &Ctx<'_>, session: &Session) -> Session {
        let mut merged = session.clone();
        if merged.start.is_none() {
            merged.start = self.start();
        }
        if self.request.title.is_some() {
            merged.title = self.request.title.clone().map(Title::person);
        }
        if self.request.place_named || merged.workdir.dir.is_empty() {
            merged.workdir = self.request.workdir.clone();
            merged.branch_at = Some(ctx.now.wall);
        }
        merged
    }

    /// The session enters another conversation and keeps its claims.
    fn enter(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: SessionId,
        moves: NativeMove,
        mechanism: &'static str,
    ) -> Result<Session, Stop> {
        ctx.lock([Lock::Session(id)])?;
        let mut session = ctx.session(id)?;
        self.renew(ctx, &mut session)?;
        let mut changed = self.merged(ctx, &session);
        if self.request.parent.is_some() {
            changed.parent = self.parent_of(ctx, &session)?;
        }
        changed.native_id.clone_from(&self.request.native_id);
        if self.candidate.daemon.is_some() {
            changed.daemon.clone_from(&self.candidate.daemon);
            changed.hosted = self.hosted;
        }
        if session.native_id.is_some() {
            // The title named the previous conversation.
            keep_beneath(ctx, id, None)?;
            if self.request.title.is_none() {
                changed.title = title::after_rotation(changed.title);
            }
        } else if self.request.title.is_some() {
            keep_present(ctx, &session)?;
        }
        ctx.tx.update_session(&changed)?;
        changed.revision += 1;
        let evidence = self.evidence(changed.native_id.as_ref());
        self.log(ctx, id, EventKind::Rotated, mechanism, evidence, None)?;
        let Some(native_id) = changed.native_id.clone() else {
            return Ok(changed);
        };
        match moves {
            NativeMove::Own => self.own(ctx, &changed, &native_id)?,
            NativeMove::Visit(owner) => {
                ctx.tx
                    .add_visit(&changed.agent, &native_id, id, ctx.now.wall)?;
                let owner = ctx.session(owner)?;
                tell_twins(ctx, &owner, &changed)?;
            }
            NativeMove::Take(previous) => {
                self.take_from(ctx, previous, &changed)?;
                self.own(ctx, &changed, &native_id)?;
            }
        }
        Ok(changed)
    }

    /// Moves the conversation of a gone session, and what it would be granted again, to `heir`.
    fn take_from(
        &mut self,
        ctx: &mut Ctx<'_>,
        previous: SessionId,
        heir: &Session,
    ) -> Result<(), Stop> {
        ctx.lock([Lock::Session(previous)])?;
        let previous = ctx.session(previous)?;
        let previous = close_gone(ctx, previous)?;
        let outcome = regrant(ctx, &previous, heir, Means::Moved)?;
        self.regranted.extend(outcome.regranted);
        self.taken.extend(outcome.taken);
        let why = format!("its conversation continued in {}", heir.handle);
        let mut moved = previous.clone();
        moved.closed = Some(tenure_core::session::Closed {
            at: ctx.now.wall,
            by: ClosedBy::Moved,
            why: why.clone(),
            kind: ClosedBy::Moved.usual_kind(),
            dismissed_at: None,
        });
        ctx.tx.update_session(&moved)?;
        ctx.log(&NewEvent {
            actor: Some(heir.id),
            ..ctx.event(EventKind::Moved, Some(previous.id), "moved", why)
        })
    }

    /// The next process of a session that is gone.
    fn resume(&mut self, ctx: &mut Ctx<'_>, id: SessionId) -> Result<Session, Stop> {
        ctx.lock([Lock::Session(id)])?;
        let previous = ctx.session(id)?;
        let previous = close_gone(ctx, previous)?;
        let mut session = self.merged(ctx, &previous);
        session.life = previous.life.next();
        session.process.clone_from(&self.candidate.process);
        session.daemon.clone_from(&self.candidate.daemon);
        session.hosted = self.hosted;
        session.parent = self.parent(ctx)?;
        session.start = self.start();
        session.closed = None;
        session.activity = None;
        session.seen_at = ctx.now.wall;
        session.lease = ctx.now.after(ctx.policy.lease);
        if self.request.native_id.is_some() {
            session.native_id.clone_from(&self.request.native_id);
        }
        ctx.tx.update_session(&session)?;
        session.revision += 1;
        begin_life(ctx, &session)?;
        let evidence = format!(
            "{}, life {}",
            self.evidence(session.native_id.as_ref()),
            session.life
        );
        self.log(ctx, id, EventKind::Resumed, "resumed", evidence, None)?;
        let outcome = regrant(ctx, &previous, &session, Means::Resume)?;
        self.regranted = outcome.regranted;
        self.taken = outcome.taken;
        Ok(session)
    }

    /// A second live process in one conversation becomes a session of its own; both are notified.
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
            self.own(ctx, &twin, &own)?;
        }
        let owner = ctx.session(of)?;
        tell_twins(ctx, &owner, &twin)?;
        Ok(twin)
    }
}

fn below_itself(session: &Session, named: &Session) -> String {
    if named.id == session.id {
        format!("{} cannot be its own parent", session.handle)
    } else {
        let (parent, child) = (&named.handle, &session.handle);
        format!("{parent} cannot be the parent of {child}: it is below {child} itself")
    }
}

pub(super) fn tell_twins(
    ctx: &mut Ctx<'_>,
    owner: &Session,
    visitor: &Session,
) -> Result<(), Stop> {
    let native = visitor
        .native_id
        .as_ref()
        .map_or("this conversation".into(), |id| {
            format!("conversation {}", text::name(id.as_str()))
        });
    let place = |session: &Session| match &session.process {
        Some(process) => format!(
            "{} (pid {} in {})",
            session.handle,
            process.pid,
            text::name(&session.workdir.dir)
        ),
        None => format!(
            "{} (in {})",
            session.handle,
            text::name(&session.workdir.dir)
        ),
    };
    let to_owner = format!(
        "{} is also in {native}; messages from both will be mixed there",
        place(visitor)
    );
    ctx.notify(owner.id, NoticeKind::Twin, to_owner, Some(visitor.id), None)?;
    let seen = format!("{native} is also open in {}", owner.handle);
    ctx.log(&ctx.event(EventKind::Twin, Some(visitor.id), "register", seen))?;
    let to_visitor = format!(
        "{native} is also open in {}; messages from both will be mixed there",
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
pub(crate) fn close_gone(ctx: &mut Ctx<'_>, session: Session) -> Result<Session, Stop> {
    if !session.is_open() {
        return Ok(session);
    }
    match ctx.standing(&session)? {
        Standing::Gone(_) => Err(ctx.record_death_first(session.id)),
        Standing::Expired(doubt) => {
            end_by_lease(
                ctx,
                &session,
                &format!("{doubt}; its lease and the lock delay have expired"),
            )?;
            ctx.session(session.id)
        }
        Standing::Live | Standing::Trusted { .. } | Standing::Suspect { .. } => Ok(session),
    }
}

/// The nearest session among these processes, in its current life.
pub(super) fn nearest_session(
    ctx: &mut Ctx<'_>,
    above: &[Ancestor],
) -> Result<Option<SessionToken>, Stop> {
    // A session that ended here does not separate a process from the session further up; an agent does.
    let is_agent = |ended: &Ancestor| agent::agent_of(&ended.looks).is_some();
    let one = match nearest(ctx, above, is_agent)? {
        Some((_, AncestorRole::Sessions(here))) => here.one(),
        Some((_, AncestorRole::Agent(_) | AncestorRole::Past(..))) | None => None,
    };
    Ok(one.map(|session| session.token()))
}

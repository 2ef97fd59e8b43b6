//! Finding out what registers, and what is known about it.

use super::request::{Candidate, Enrolled, RegisterRequest, Registered, Subject};
use super::work::Work;
use crate::caller::present::{below, nearest, past_of, sessions_of, unverified};
use crate::context::{Ctx, Stop};
use crate::error::{Error, register_script};
use crate::run::program;
use crate::session::acts::refuse_reserved;
use crate::transact::{Reply, Service};
use crate::{caller, transcript};
use tenure_core::behalf::Relation;
use tenure_core::hint::Hint;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::process::{Ancestor, Process, ProcessAppearance};
use tenure_core::registration::{Arrival, ConversationOwner, OpenSession, Plan, View, plan};
use tenure_core::session::{META_KEYS, MetaKey, Session};
use tenure_core::store::{Lock, TxMode};
use tenure_core::{agent, text};

impl Service<'_> {
    /// Registers a process as a session, or finds its existing session.
    pub fn register(&mut self, request: &RegisterRequest) -> Reply<Registered> {
        if let Some(title) = &request.title {
            text::check_length("title", title, text::MAX_TITLE).map_err(Error::from)?;
        }
        self.transact(TxMode::Write, |ctx| {
            let done = register(ctx, request)?;
            if done.token.is_some() {
                let me = caller::itself(ctx)?;
                if me.is_some_and(|me| me.session.id == done.session.id) {
                    ctx.tell(done.session.id)?;
                }
            }
            let mut session = ctx.view(&done.session)?;
            session.registered = Some(done.word);
            Ok(Registered {
                session,
                token: done.token.map(|token| token.to_string()),
                regranted: done.regranted,
                taken: done.taken,
            })
        })
    }
}

/// Registers without delivering notices.
pub fn register(ctx: &mut Ctx<'_>, request: &RegisterRequest) -> Result<Enrolled, Stop> {
    let candidate = find_candidate(ctx, request)?;
    if let Subject::Given(chain) = &request.subject {
        program::step(ctx, chain)?;
    }
    let (view, known) = gather(
        ctx,
        request,
        candidate.process.as_ref(),
        candidate.daemon.as_ref(),
    )?;
    let agent = agent_of(request, &candidate, known.as_ref())?;
    transcript::refuse_subagent(ctx, &agent, request.native_id.as_ref())?;
    check_transcript(ctx, &agent, request)?;
    let spec = agent::spec_of(&agent);
    let arrival = Arrival {
        native_id: request.native_id.clone(),
        source: request.source,
        // A window's command line shows how its first conversation began; a daemon reports it for each.
        fork_flag: candidate.daemon.is_none()
            && spec.is_some_and(|spec| agent::started_as_fork(spec, &candidate.looks)),
        hosted: request.hosted
            || candidate.daemon.is_some()
            || spec.is_some_and(|spec| agent::hosts(spec, &candidate.looks)),
        in_window: candidate.daemon.is_some() && candidate.daemon != candidate.process,
    };
    if let Some(native_id) = &request.native_id {
        ctx.lock([Lock::Native(agent.clone(), native_id.clone())])?;
    }
    let view = with_owner(ctx, view, &agent, request.native_id.as_ref())?;
    let plan = plan(&arrival, &view);
    check_metadata(ctx, &plan, request)?;
    let before = match plan.known() {
        Some(id) => Some(ctx.session(id)?),
        None => None,
    };
    let (relation, actor) = relation(ctx, request, &candidate, before.as_ref())?;
    let mut work = Work {
        request,
        candidate: &candidate,
        agent,
        hosted: arrival.hosted,
        owner: view.owner.as_ref().map(|owner| owner.id),
        is_own: relation.is_own(),
        actor,
        regranted: Vec::new(),
        taken: Vec::new(),
    };
    if let Some(before) = before.as_ref().filter(|_| work.changes(&plan)) {
        caller::permit(relation, before, request.reason.as_ref())?;
        if !relation.is_own() {
            refuse_title(before, request)?;
        }
    }
    let session = work.carry_out(ctx, &plan)?;
    if let Some(before) = before.filter(|before| before.workdir.dir != session.workdir.dir) {
        ctx.move_tree(&before, false);
    }
    ctx.move_tree(&session, true);
    if !request.metadata.is_empty() {
        ctx.lock([Lock::Session(session.id)])?;
    }
    for (key, value) in &request.metadata {
        ctx.tx.set_metadata(session.id, key, Some(value))?;
    }
    if let (Some(path), Some(native_id)) = (&request.transcript, &session.native_id) {
        transcript::set(ctx, &session, native_id, path)?;
    }
    if relation.is_own() && candidate.process.is_some() {
        ctx.own = Some(session.id);
    }
    Ok(Enrolled {
        token: relation.is_own().then(|| session.token()),
        word: plan.word(),
        session,
        regranted: work.regranted,
        taken: work.taken,
    })
}

/// Registering another session does not rename it.
fn refuse_title(known: &Session, request: &RegisterRequest) -> Result<(), Error> {
    let present = known.title.as_ref().map(|title| title.text.as_str());
    match request.title.as_deref() {
        Some(title) if present != Some(title) => Err(Error::Invalid {
            what: format!(
                "{} is another session; --title does not rename it",
                known.handle
            ),
            hint: Hint::run(
                "rename",
                [known.handle.as_str(), title, "--reason", "REASON"],
                "to rename it (logged)",
            ),
        }),
        _ => Ok(()),
    }
}

fn find_candidate(ctx: &mut Ctx<'_>, request: &RegisterRequest) -> Result<Candidate, Stop> {
    let chain = match &request.subject {
        Subject::Unverified => {
            return Ok(Candidate {
                process: None,
                daemon: None,
                looks: ProcessAppearance::default(),
                above: ctx.facts.chain.clone(),
                is_person: false,
            });
        }
        Subject::Given(chain) | Subject::Named(chain) => {
            return Ok(candidate_at(chain, 0, false));
        }
        Subject::Below(daemon, chain) => {
            return Ok(Candidate {
                daemon: Some(daemon.clone()),
                ..candidate_at(chain, 0, false)
            });
        }
        Subject::Nearest => &ctx.facts.chain,
    };
    if let Some((height, _)) = nearest(ctx, chain, |_| true)? {
        return Ok(candidate_at(chain, height, false));
    }
    let shell = chain
        .iter()
        .position(|a| a.leads_terminal && agent::is_shell(&a.looks));
    match shell {
        Some(height) if ctx.facts.has_terminal => Ok(candidate_at(chain, height, true)),
        _ => Err(Error::Usage {
            what: "found no agent and no interactive shell above this process".into(),
            hint: register_script(),
        }
        .into()),
    }
}

/// How the registering process relates to the caller, and which session calls if it is another one. The caller
/// is that process if it runs in or below it.
fn relation(
    ctx: &mut Ctx<'_>,
    request: &RegisterRequest,
    candidate: &Candidate,
    known: Option<&Session>,
) -> Result<(Relation, Option<SessionId>), Stop> {
    let (Subject::Named(_), Some(process)) = (&request.subject, &candidate.process) else {
        return Ok((Relation::Own, None));
    };
    let mut chain = ctx.facts.chain.iter();
    if chain.any(|above| above.process.same_as(process)) {
        return Ok((Relation::Own, None));
    }
    let caller = caller::itself(ctx)?.map(|caller| caller.session);
    let actor = caller.as_ref().map(|me| me.id);
    let relation = match known {
        Some(session) => caller::relation(ctx, session, caller.as_ref())?,
        // No session yet, so registering it takes nothing from anyone.
        None => Relation::Descendant,
    };
    Ok((relation, actor))
}

fn candidate_at(chain: &[Ancestor], height: usize, is_person: bool) -> Candidate {
    let this = &chain[height];
    Candidate {
        process: Some(this.process.clone()),
        daemon: agent::daemon_of(&this.looks).map(|_| this.process.clone()),
        looks: this.looks.clone(),
        above: chain[height + 1..].to_vec(),
        is_person,
    }
}

/// What the store knows about the process, and its session, if it has one.
fn gather(
    ctx: &mut Ctx<'_>,
    request: &RegisterRequest,
    process: Option<&Process>,
    daemon: Option<&Process>,
) -> Result<(View, Option<Session>), Stop> {
    let mut view = View::default();
    let mut known = None;
    let Some(process) = process else {
        if let Some(session) = unverified(ctx, request.agent.as_ref(), request.native_id.as_ref())?
        {
            view.here.push(here(&session));
            known = Some(session);
        }
        return Ok((view, known));
    };
    let mut open = sessions_of(ctx, process)?;
    if let Some(daemon) = daemon {
        open.extend(adrift(ctx, request, process, daemon)?);
    }
    for session in open {
        view.here.push(here(&session));
        known.get_or_insert(session);
    }
    for (session, life) in past_of(ctx, process)? {
        let goes_on_here = |now: &Process| now.same_as(process);
        if session.life == life {
            let native_id = session.native_id.as_ref();
            let fits = native_id.is_none()
                || request.native_id.is_none()
                || native_id == request.native_id.as_ref();
            if fits {
                view.ended_here.get_or_insert(session.id);
            }
        } else if view.here.is_empty()
            // A daemon only stood in for the window that was found later.
            && !daemon.is_some_and(|daemon| daemon.same_as(process))
            && !session.process.as_ref().is_some_and(goes_on_here)
            // Another conversation of a window belongs to another session.
            && (daemon.is_none() || session.native_id == request.native_id)
        {
            // A session that ended here and came back here was this process in its earlier lives too.
            view.superseded.get_or_insert(session.id);
        }
        known.get_or_insert(session);
    }
    Ok((view, known))
}

/// Other sessions of a daemon to which an event may belong, because nothing shows that they are in another
/// window. A session whose window is gone starts again.
fn adrift(
    ctx: &mut Ctx<'_>,
    request: &RegisterRequest,
    process: &Process,
    daemon: &Process,
) -> Result<Vec<Session>, Stop> {
    let mut found = Vec::new();
    for session in below(ctx, daemon)? {
        let is_at = |place: &Process| {
            let its = session.process.as_ref();
            its.is_some_and(|its| its.same_as(place))
        };
        let may_be = process.same_as(daemon) || is_at(daemon);
        let is_meant = request.native_id.is_none() || session.native_id == request.native_id;
        if may_be && is_meant && !is_at(process) && !ctx.standing(&session)?.is_gone() {
            found.push(session);
        }
    }
    Ok(found)
}

fn here(session: &Session) -> OpenSession {
    OpenSession {
        id: session.id,
        native_id: session.native_id.clone(),
        fork_of: session.fork_of.clone(),
        hosted: session.hosted,
    }
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
        view.owner = Some(ConversationOwner { id, gone });
    }
    Ok(view)
}

/// The agent's name: from the request, the session, or the appearance of the process.
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
                    "this process is {} (agent {}), not {named}",
                    session.handle, session.agent
                ),
                hint: Hint::run(
                    "register",
                    ["--agent", "NAME", "--pid", "PID"],
                    "to register another process as a session of its own",
                ),
            }
            .into());
        }
        return Ok(session.agent.clone());
    }
    if let Some(named) = &request.agent {
        return Ok(named.clone());
    }
    if candidate.is_person {
        return Ok(AgentName::known(agent::HUMAN));
    }
    if let Some(spec) = agent::agent_of(&candidate.looks) {
        return Ok(AgentName::known(spec.name));
    }
    match known {
        Some(session) => Ok(session.agent.clone()),
        None => Ok(agent::name_from_looks(&candidate.looks)),
    }
}

/// Refuses a transcript of another conversation, before anything is written.
fn check_transcript(
    ctx: &mut Ctx<'_>,
    agent: &AgentName,
    request: &RegisterRequest,
) -> Result<(), Stop> {
    // Without a conversation id, the path is checked against the one that the session has, when it is stored.
    match (&request.transcript, &request.native_id) {
        (Some(path), Some(native_id)) => transcript::refuse_foreign(ctx, agent, native_id, path),
        _ => Ok(()),
    }
}

/// Refuses metadata that would exceed a session's limit, before anything is written.
fn check_metadata(ctx: &mut Ctx<'_>, plan: &Plan, request: &RegisterRequest) -> Result<(), Stop> {
    let mut keys: std::collections::BTreeSet<MetaKey> = request.metadata.keys().cloned().collect();
    if let Plan::Same(id) | Plan::First(id, _) | Plan::Rotated(id, _) | Plan::Resumed(id) = plan {
        keys.extend(ctx.metadata(*id)?.into_keys());
    }
    for key in &keys {
        refuse_reserved(key)?;
    }
    if keys.len() > META_KEYS {
        return Err(Error::Invalid {
            what: format!(
                "a session can have at most {META_KEYS} metadata values; this would make {}",
                keys.len()
            ),
            hint: Hint::run("meta", ["unset", "KEY"], "to make room"),
        }
        .into());
    }
    Ok(())
}

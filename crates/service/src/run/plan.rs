//! What a run would continue: planned before anything is started, and again in the transaction that
//! starts it.

use tenure_core::conversation::fitness::{Existence, Fitness, Left, fitness};
use tenure_core::conversation::{Conversation, Current, Elsewhere, Home};
use tenure_core::id::{AgentName, NativeId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::run::Park;
use tenure_core::store::TxMode;

use super::error::RunError;
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

/// A run to plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    pub agent: AgentName,
    pub role: WorkerRole,
    pub item: Key,
    /// Where it would run; the directory in it is ignored.
    pub here: Home,
    /// Whether to start a new conversation even if there is one.
    pub fresh: bool,
}

/// What a run can continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub agent: AgentName,
    pub role: WorkerRole,
    pub item: Key,
    pub root: Key,
    /// The record's revision; zero if there is no record.
    pub revision: u64,
    /// What would be resumed.
    pub current: Option<Current>,
    /// What the newest run of that conversation left in it.
    pub left: Option<Left>,
    /// How many times in a row the agent was parked here without a time from its provider.
    pub parked: u32,
}

/// How a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    Fresh,
    /// In a new conversation, because the agent no longer has this one.
    InPlaceOf(NativeId),
    Resume(NativeId),
}

impl Begin {
    pub fn resumed(&self) -> Option<&NativeId> {
        match self {
            Begin::Resume(native_id) => Some(native_id),
            Begin::Fresh | Begin::InPlaceOf(_) => None,
        }
    }

    /// The conversation that it continues from, whether or not the agent still has it.
    pub(super) fn replaced_or_resumed(&self) -> Option<&NativeId> {
        match self {
            Begin::Resume(native_id) | Begin::InPlaceOf(native_id) => Some(native_id),
            Begin::Fresh => None,
        }
    }
}

impl Service<'_> {
    /// What a run would continue. Refused if its conversation is elsewhere, or its agent is parked.
    pub fn plan_run(&mut self, request: &PlanRequest) -> Reply<Planned> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let mut planned = planned(ctx, &request.agent, &request.role, &request.item)?;
            if request.fresh {
                planned.current = None;
                planned.left = None;
            }
            if let Some(current) = &planned.current
                && let Err(place) = current.home.is_here(&request.here)
            {
                let home = &current.home;
                let kept = match (&home.agent_home, place) {
                    (Some(dir), Elsewhere::AgentHome) => format!(", kept in {dir}"),
                    (None, Elsewhere::AgentHome) => ", kept in the usual place".to_owned(),
                    (_, Elsewhere::Repository) => format!(
                        ", in a clone from {}, not from {}",
                        home.repo_host.as_deref().unwrap_or_default(),
                        request.here.repo_host.as_deref().unwrap_or_default()
                    ),
                    _ => String::new(),
                };
                let error = RunError::Elsewhere {
                    agent: request.agent.clone(),
                    item: request.item.clone(),
                    place,
                    home: format!(
                        "{} of uid {} on host {}{kept}",
                        home.dir, home.user, home.host
                    ),
                };
                return Err(Error::from(error).into());
            }
            Ok(planned)
        })
    }
}

impl Planned {
    /// How the run begins, given whether the agent still has the conversation.
    pub fn begin(&self, existence: Existence) -> Result<Begin, Error> {
        let Some(current) = &self.current else {
            return Ok(Begin::Fresh);
        };
        let native_id = current.native_id.clone();
        let (agent, item) = (self.agent.clone(), self.item.clone());
        match fitness(self.left, existence) {
            Fitness::Resume => Ok(Begin::Resume(native_id)),
            Fitness::Unknown if existence == Existence::Absent => Ok(Begin::InPlaceOf(native_id)),
            Fitness::Unknown => Err(RunError::NotFoundLastTime {
                agent,
                item,
                native_id,
            }
            .into()),
            Fitness::Unusable => Err(RunError::Unusable {
                agent,
                item,
                native_id,
            }
            .into()),
        }
    }
}

/// What is recorded about the conversation of an agent in a role and an item.
pub(super) fn planned(
    ctx: &mut Ctx<'_>,
    agent: &AgentName,
    role: &WorkerRole,
    item: &Key,
) -> Result<Planned, Stop> {
    refuse_parked(ctx, agent)?;
    let state = ctx.tx.item_state(item)?;
    let root = state.map_or_else(|| item.clone(), |state| state.root().clone());
    let record = ctx.tx.conversation(agent, role, &root)?;
    let revision = record.as_ref().map_or(0, |record| record.revision);
    let current = record.as_ref().and_then(Conversation::open).cloned();
    let left = match &current {
        Some(current) => ctx.tx.newest_left(agent, &current.native_id)?,
        None => None,
    };
    let park = park_of(ctx, agent)?;
    Ok(Planned {
        agent: agent.clone(),
        role: role.clone(),
        item: item.clone(),
        root,
        revision,
        current,
        left: left.map(|(_, left)| left),
        parked: park.map_or(0, |park| park.count),
    })
}

pub(super) fn park_of(ctx: &mut Ctx<'_>, agent: &AgentName) -> Result<Option<Park>, Stop> {
    let host = ctx.observer.host.clone();
    Ok(ctx.tx.park(agent, &host)?)
}

fn refuse_parked(ctx: &mut Ctx<'_>, agent: &AgentName) -> Result<(), Stop> {
    let now = ctx.now.wall;
    match park_of(ctx, agent)?.filter(|park| park.until > now) {
        None => Ok(()),
        Some(park) => Err(Error::from(RunError::Parked {
            agent: park.agent,
            until: park.until,
            why: park.why,
        })
        .into()),
    }
}

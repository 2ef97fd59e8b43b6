//! The other lists, and one of each.

use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use tenure_app::conversation::any_here;
use tenure_core::id::{AgentName, JobId, RunId, SessionId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::mission::MissionId;
use tenure_core::store::{ClaimFilter, DeliveryFilter};
use tenure_core::time::Timestamp;
use tenure_runs::{provider, settle};
use tenure_service::view::{
    ClaimView, ConversationView, DeliveryView, HoldView, JobView, MissionView, ParticipantView,
    RunView, WhyView,
};
use tenure_service::{ActFor, ListConversations, ListJobs, ListRuns, TimelineRequest};

use super::answer::{Fault, Refusal, RouteAnswer, RouteResult};
use super::events::since;
use super::request::{ApiCall, PageQuery, Parts, Request, Spec, page_parts};

fn key(text: Option<&String>) -> Result<Option<Key>, Fault> {
    Ok(text.map(|text| Key::parse(text)).transpose()?)
}

fn agent(text: Option<&String>) -> Result<Option<AgentName>, Fault> {
    Ok(text.map(|text| AgentName::parse(text)).transpose()?)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// Include what is free or done.
    all: Option<bool>,
    /// Only keys that begin with this.
    prefix: Option<String>,
    /// Only what this session holds.
    session: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

impl Request for Claims {
    const SPEC: Spec = Spec::get("/api/v1/claims", "List claimed items and their holders");

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        page_parts::<ClaimView>("claims", shapes)
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let page = PageQuery::of(self.limit, self.after.as_deref())?;
        let session = match &self.session {
            Some(name) => {
                let found = call.context.service().show(name)?.value;
                Some(SessionId::parse(&found.session.id)?)
            }
            None => None,
        };
        let filter = ClaimFilter {
            free_too: self.all == Some(true),
            prefix: self.prefix,
            session,
            ..ClaimFilter::default()
        };
        let mut answer = call.context.service().claims(None, &filter)?;
        let items = std::mem::take(&mut answer.value.items);
        Ok(page
            .cut("claims", items, |one| one.key.clone())?
            .told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {}

impl Request for Claim {
    const SPEC: Spec = Spec::get(
        "/api/v1/claims/{key}",
        "Explain why an item is held or free",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![
            ("claim", shapes.subschema_for::<ClaimView>()),
            ("why", shapes.subschema_for::<WhyView>()),
        ]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let key = Key::parse(call.name())?;
        let answer = call.context.service().why(&key)?;
        Ok(RouteAnswer::new("claim", &answer.value.claim)
            .with("why", &answer.value.why)
            .told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Missions {
    /// Include missions without participants.
    all: Option<bool>,
    limit: Option<usize>,
    after: Option<String>,
}

impl Request for Missions {
    const SPEC: Spec = Spec::get("/api/v1/missions", "List missions");

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        page_parts::<MissionView>("missions", shapes)
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let page = PageQuery::of(self.limit, self.after.as_deref())?;
        let here = call.context.here();
        let mut service = call.context.service();
        let mut answer = service.missions(&ActFor::default(), &here, self.all == Some(true))?;
        let items = std::mem::take(&mut answer.value);
        Ok(page
            .cut("missions", items, |one| one.id.clone())?
            .told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mission {}

impl Request for Mission {
    const SPEC: Spec = Spec::get(
        "/api/v1/missions/{mission}",
        "Show the participants of a mission",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![
            ("mission", shapes.subschema_for::<MissionView>()),
            (
                "participants",
                shapes.subschema_for::<Vec<ParticipantView>>(),
            ),
            ("warnings", shapes.subschema_for::<Vec<String>>()),
        ]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let mission = MissionId::parse(call.name())?;
        let here = call.context.here();
        let mut service = call.context.service();
        let answer = service.roster(&ActFor::default(), &here, Some(&mission))?;
        let found = &answer.value;
        let warnings: Vec<String> = found.faults.iter().map(ToString::to_string).collect();
        Ok(RouteAnswer::new("mission", &found.mission)
            .with("participants", &found.participants)
            .with("warnings", &warnings)
            .told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conversations {
    /// Only conversations of this item.
    item: Option<String>,
    /// Only conversations of this agent.
    agent: Option<String>,
    /// Only conversations of this role; empty for those without one.
    role: Option<String>,
    /// Include closed conversations.
    all: Option<bool>,
    limit: Option<usize>,
    after: Option<String>,
}

impl Request for Conversations {
    const SPEC: Spec = Spec::get(
        "/api/v1/conversations",
        "List conversations and whether they can be resumed",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        page_parts::<ConversationView>("conversations", shapes)
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let page = PageQuery::of(self.limit, self.after.as_deref())?;
        let request = ListConversations {
            item: key(self.item.as_ref())?,
            agent: agent(self.agent.as_ref())?,
            role: self.role.as_deref().map(WorkerRole::parse).transpose()?,
            all: self.all == Some(true),
            limit: 0,
        };
        let here = any_here(call.context);
        let mut answer = call.context.service().conversations(&request, &here)?;
        let items = std::mem::take(&mut answer.value.items);
        let id = |one: &ConversationView| {
            let role = one.role.as_deref().unwrap_or_default();
            format!("{} {role} {}", one.agent, one.item)
        };
        Ok(page.cut("conversations", items, id)?.told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// Only runs on this item.
    item: Option<String>,
    /// Only runs of this agent.
    agent: Option<String>,
    /// Only runs that failed.
    failed: Option<bool>,
    limit: Option<usize>,
    after: Option<String>,
}

impl Request for Runs {
    const SPEC: Spec = Spec::get("/api/v1/runs", "List the runs of agents, newest first");

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        page_parts::<RunView>("runs", shapes)
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let page = PageQuery::of(self.limit, self.after.as_deref())?;
        let mut request = ListRuns {
            item: key(self.item.as_ref())?,
            agent: agent(self.agent.as_ref())?,
            failed: self.failed == Some(true),
            limit: page.one_more(),
        };
        settle::all(call.context)?;
        let before = page
            .after
            .as_deref()
            .map(|after| run_place(call, after))
            .transpose()?;
        let mut service = call.context.service();
        let mut answer = service.runs_page(&request, before.as_ref())?;
        let mut runs = std::mem::take(&mut answer.value.items);
        // One transaction reads less than the largest page.
        while let (Some(next), true) = (answer.value.next.take(), runs.len() < page.one_more()) {
            request.limit = page.one_more() - runs.len();
            answer = service.runs_page(&request, Some(&next))?;
            runs.append(&mut answer.value.items);
        }
        provider::look(runs.iter_mut());
        Ok(page.full("runs", runs, |run| run.id.clone()).told(&answer))
    }
}

/// The place of a run in the list.
fn run_place(call: &mut ApiCall<'_>, id: &str) -> Result<(Timestamp, RunId), Fault> {
    let id = RunId::parse(id).map_err(|_| Refusal::BadCursor)?;
    let found = call.context.service().show_run(id.as_str());
    let found = found.map_err(|_| Refusal::BadCursor)?.value;
    Ok((found.created_at, id))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {}

impl Request for Run {
    const SPEC: Spec = Spec::get("/api/v1/runs/{run}", "Show one run");

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![("run", shapes.subschema_for::<RunView>())]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        settle::all(call.context)?;
        let name = call.name();
        let mut answer = call.context.service().show_run(name)?;
        provider::look([&mut answer.value]);
        Ok(RouteAnswer::new("run", &answer.value).told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Only jobs for this item.
    item: Option<String>,
    /// Only jobs of this agent.
    agent: Option<String>,
    /// Include jobs that are over.
    all: Option<bool>,
    limit: Option<usize>,
    after: Option<String>,
}

impl Request for Jobs {
    const SPEC: Spec = Spec::get(
        "/api/v1/jobs",
        "List the jobs of the queue, and deliveries that wait",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        let mut parts = page_parts::<JobView>("jobs", shapes);
        parts.push(("deliveries", shapes.subschema_for::<Vec<DeliveryView>>()));
        parts
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let page = PageQuery::of(self.limit, self.after.as_deref())?;
        let request = ListJobs {
            item: key(self.item.as_ref())?,
            agent: agent(self.agent.as_ref())?,
            all: self.all == Some(true),
            limit: page.one_more(),
        };
        let behind = page
            .after
            .as_deref()
            .map(|after| job_place(call, after))
            .transpose()?;
        let mut answer = call
            .context
            .service()
            .jobs_behind(&request, behind.as_ref())?;
        let mut waiting = call.context.service().waiting_deliveries()?.value;
        if let Some(item) = &request.item {
            waiting.retain(|one| one.item.as_deref() == Some(item.as_str()));
        }
        let items = std::mem::take(&mut answer.value.items);
        Ok(page
            .full("jobs", items, |one| one.id.clone())
            .with("deliveries", &waiting)
            .told(&answer))
    }
}

/// The place of a job in the list.
fn job_place(call: &mut ApiCall<'_>, id: &str) -> Result<(Timestamp, JobId), Fault> {
    let id = JobId::parse(id).map_err(|_| Refusal::BadCursor)?;
    let found = call.context.service().show_job(id.as_str());
    let found = found.map_err(|_| Refusal::BadCursor)?.value;
    Ok((found.created_at, id))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deliveries {
    /// Only deliveries about this item.
    item: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

impl Request for Deliveries {
    const SPEC: Spec = Spec::get(
        "/api/v1/deliveries",
        "List webhook deliveries, newest first, and what became of them",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        page_parts::<DeliveryView>("deliveries", shapes)
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let page = PageQuery::of(self.limit, self.after.as_deref())?;
        let filter = DeliveryFilter {
            item: key(self.item.as_ref())?,
            before: page
                .after
                .as_deref()
                .map(|after| delivery_place(call, after))
                .transpose()?,
            limit: page.one_more(),
        };
        let mut answer = call.context.service().list_deliveries(&filter)?;
        let items = std::mem::take(&mut answer.value);
        Ok(page
            .full("deliveries", items, |one| one.id.to_string())
            .told(&answer))
    }
}

/// The number of a delivery of this store, which may have been forgotten.
fn delivery_place(call: &mut ApiCall<'_>, id: &str) -> Result<i64, Fault> {
    let id: i64 = id.parse().map_err(|_| Refusal::BadCursor)?;
    let newest = DeliveryFilter {
        limit: 1,
        ..DeliveryFilter::default()
    };
    let newest = call.context.service().list_deliveries(&newest)?.value;
    if newest.first().is_some_and(|newest| id <= newest.id) {
        Ok(id)
    } else {
        Err(Refusal::BadCursor.into())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// What ended before is left out: a duration (7d) or a time; a day if it is not given.
    since: Option<String>,
    /// Only this item.
    key: Option<String>,
    /// Only what this session held.
    session: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

impl Request for Timeline {
    const SPEC: Spec = Spec::get(
        "/api/v1/timeline",
        "Show who held which item from when to when, and how each claim ended",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![
            ("holds", shapes.subschema_for::<Vec<HoldView>>()),
            ("now", shapes.subschema_for::<Timestamp>()),
            ("since", shapes.subschema_for::<Timestamp>()),
            ("next", shapes.subschema_for::<Option<String>>()),
        ]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let page = PageQuery::of(self.limit, None)?;
        let after = self.after.as_deref().map(str::parse).transpose();
        let request = TimelineRequest {
            since: Some(since(self.since.as_deref().unwrap_or("24h"))?),
            key: key(self.key.as_ref())?,
            session: self.session,
            after: after.map_err(|_| Refusal::BadCursor)?,
            limit: page.limit,
        };
        let answer = call.context.service().timeline(&request)?;
        let found = &answer.value;
        Ok(RouteAnswer::new("holds", &found.holds)
            .with("now", &found.now)
            .with("since", &request.since)
            .with("next", &found.next)
            .told(&answer))
    }
}

//! Sessions: the list in the order of `tenure ps`, and one with all that is known.

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tenure_app::changes;
use tenure_app::last_words;
use tenure_app::unmanaged::Unmanaged;
use tenure_service::ListRequest;
use tenure_service::view::{ChangesView, SessionView, WaitView};
use tenure_views::session_list::{self, SessionFilter};
use tenure_views::standing::STATES;

use super::answer::{Refusal, RouteAnswer, RouteResult};
use super::request::{ApiCall, PageQuery, Parts, Request, Spec, page_parts};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// Include sessions that ended.
    all: Option<bool>,
    /// Only these states, as `tenure ps --state` takes them, with commas between them.
    state: Option<String>,
    /// Only sessions of this agent.
    agent: Option<String>,
    /// Only sessions in this repository.
    repo: Option<String>,
    /// Only sessions in this directory or below.
    under: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

impl Request for Sessions {
    const SPEC: Spec = Spec::get(
        "/api/v1/sessions",
        "List sessions; those that wait for a person come first",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        let mut parts = page_parts::<SessionView>("sessions", shapes);
        parts.push(("unmanaged", shapes.subschema_for::<Vec<Unmanaged>>()));
        parts.push(("cursor", shapes.subschema_for::<u64>()));
        parts
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let page = PageQuery::of(self.limit, self.after.as_deref())?;
        let states: Vec<String> = self
            .state
            .iter()
            .flat_map(|all| all.split(','))
            .map(str::to_owned)
            .collect();
        if let Some(state) = states
            .iter()
            .find(|state| !STATES.contains(&state.as_str()))
        {
            let why = format!("state {state:?} is none of {}", STATES.join(", "));
            return Err(Refusal::BadValue(why).into());
        }
        let filter = SessionFilter {
            states,
            agent: self.agent,
            repo: self.repo,
        };
        let request = ListRequest {
            closed_too: self.all == Some(true),
            under: self.under.clone(),
            ..ListRequest::default()
        };
        // Before the list, so that a reader who continues from here misses nothing.
        let cursor = call.context.service().newest_event()?.value;
        let (mut answer, mut unmanaged) = session_list::find(call.context, &filter, request)?;
        if page.after.is_some() || self.under.is_some() {
            unmanaged.clear();
        }
        let items = std::mem::take(&mut answer.value.items);
        Ok(page
            .cut("sessions", items, |one| one.id.clone())?
            .with("unmanaged", &unmanaged)
            .with("cursor", &cursor.0)
            .told(&answer))
    }
}

/// Nothing but the name in the path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Session {}

impl Request for Session {
    const SPEC: Spec = Spec::get(
        "/api/v1/sessions/{session}",
        "Show everything about one session",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![
            ("session", shapes.subschema_for::<SessionView>()),
            ("meta", shapes.subschema_for::<BTreeMap<String, String>>()),
            ("command", shapes.subschema_for::<Option<String>>()),
        ]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let name = call.name();
        let mut answer = call.context.service().show(name)?;
        last_words::add(call.context, &mut answer.value.session);
        let shown = &answer.value;
        let handle = shown.session.handle.clone();
        let mut command = None;
        if shown.session.ended_at.is_some() {
            let found = call.context.service().resumable(&handle);
            let can = found.is_ok_and(|found| found.value.problem.is_none());
            command = can.then(|| format!("tenure resume {handle}"));
        }
        if call.access.is_login() && shown.session.ended_at.is_none() {
            // A person looks at it. Reading succeeds even if that cannot be recorded.
            drop(call.context.service().attend(&shown.session.id));
        }
        Ok(RouteAnswer::new("session", &shown.session)
            .with("meta", &shown.metadata)
            .with("command", &command)
            .told(&answer))
    }
}

/// Nothing but the name in the path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Changes {}

impl Request for Changes {
    const SPEC: Spec = Spec {
        // Git reads a whole worktree.
        is_long: true,
        ..Spec::get(
            "/api/v1/sessions/{session}/changes",
            "Show how a session's worktree stands",
        )
    };

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![("changes", shapes.subschema_for::<Option<ChangesView>>())]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let name = call.name();
        let answer = call.context.service().show(name)?;
        let found = changes::of(&answer.value.session)?;
        Ok(RouteAnswer::new("changes", &found).told(&answer))
    }
}

/// Those who wait for a key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LineView {
    pub key: String,
    /// In the order of their turns.
    pub waiters: Vec<WaitView>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// Only the line of this key.
    key: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

impl Request for Lines {
    const SPEC: Spec = Spec::get(
        "/api/v1/lines",
        "List the keys that sessions wait for, and who waits",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        page_parts::<LineView>("lines", shapes)
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let page = PageQuery::of(self.limit, self.after.as_deref())?;
        let mut keys: Vec<String> = Vec::new();
        if let Some(key) = &self.key {
            keys.push(key.clone());
        } else {
            let found = call.context.service().list(&ListRequest::default())?.value;
            let waits = found
                .items
                .iter()
                .flat_map(|one| one.waits_for.iter().flatten());
            keys.extend(waits.map(|wait| wait.key.clone()));
            keys.sort();
            keys.dedup();
        }
        let mut lines = Vec::new();
        for key in keys {
            let key = tenure_core::key::Key::parse(&key)?;
            let found = call.context.service().why(&key)?.value;
            lines.push(LineView {
                key: key.to_string(),
                waiters: found.why.waiters,
            });
        }
        page.cut("lines", lines, |line| line.key.clone())
    }
}

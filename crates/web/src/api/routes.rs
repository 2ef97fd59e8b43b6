//! The one table of routes: the router, the checks and the OpenAPI document are made from it.

use axum::http::Uri;
use schemars::{Schema, SchemaGenerator};
use tenure_service::answer::Problem;

use super::answer::{Refusal, RouteResult};
use super::request::{ApiCall, Method, Parts, Request, Spec, of_body, of_query};
use super::{acts, agents, events, lists, run_log, sessions, usage};

type PreparedRequest = Box<dyn FnOnce(&mut ApiCall<'_>) -> RouteResult + Send>;

/// A route, whatever its request is.
pub struct Route {
    pub spec: Spec,
    /// Reads its request from a query or a body.
    pub read: fn(&Uri, &[u8]) -> Result<PreparedRequest, Refusal>,
    pub asks: fn(&mut SchemaGenerator) -> Schema,
    pub answers: fn(&mut SchemaGenerator) -> Parts,
}

fn of<R: Request>() -> Route {
    Route {
        spec: R::SPEC,
        read: |uri, body| {
            let request: R = match R::SPEC.method {
                Method::Get => of_query(uri)?,
                Method::Post => of_body(body)?,
            };
            Ok(Box::new(move |call| request.run(call)))
        },
        asks: |shapes| R::json_schema(shapes),
        answers: R::parts,
    }
}

/// All routes that need a token.
pub fn routes() -> Vec<Route> {
    vec![
        of::<sessions::Sessions>(),
        of::<sessions::Session>(),
        of::<sessions::Changes>(),
        of::<agents::Agents>(),
        of::<lists::Claims>(),
        of::<lists::Claim>(),
        of::<sessions::Lines>(),
        of::<lists::Missions>(),
        of::<lists::Mission>(),
        of::<lists::Conversations>(),
        of::<lists::Runs>(),
        of::<lists::Run>(),
        of::<run_log::RunLog>(),
        of::<usage::Usage>(),
        of::<lists::Jobs>(),
        of::<lists::Deliveries>(),
        of::<events::Events>(),
        of::<lists::Timeline>(),
        of::<acts::Tell>(),
        of::<acts::Questions>(),
        of::<acts::Reply>(),
        of::<acts::End>(),
        of::<acts::Dismiss>(),
        of::<acts::Free>(),
        of::<acts::Give>(),
        of::<acts::StopRun>(),
        of::<acts::Reset>(),
    ]
}

impl Route {
    /// Runs a request that was read.
    pub fn run(run: PreparedRequest, call: &mut ApiCall<'_>) -> Result<RouteResult, Problem> {
        match run(call) {
            // The store's thread looks at what is wrong with the store.
            Err(super::answer::Fault::Problem(problem)) => Err(*problem),
            other => Ok(other),
        }
    }
}

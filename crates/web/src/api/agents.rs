//! The agents of this machine, and whether their sessions register by themselves.

use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use tenure_app::agent_hooks::{self, AgentHooks, NotChecked};
use tenure_service::answer::{Class, Hint, Problem};

use super::answer::{RouteAnswer, RouteResult};
use super::request::{ApiCall, Parts, Request, Spec};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agents {}

impl Request for Agents {
    const SPEC: Spec = Spec {
        // A process of its own checks them.
        is_long: true,
        ..Spec::get(
            "/api/v1/agents",
            "List the agents of this machine and whether their hooks are installed",
        )
    };

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![("agents", shapes.subschema_for::<Vec<AgentHooks>>())]
    }

    fn run(self, _: &mut ApiCall<'_>) -> RouteResult {
        let agents = agent_hooks::check().map_err(|error| not_checked(&error))?;
        Ok(RouteAnswer::new("agents", &agents))
    }
}

fn not_checked(error: &NotChecked) -> Problem {
    let (NotChecked::NoAnswer(why) | NotChecked::Refused(why)) = error;
    let message = format!("cannot check the hooks of agents: {why}");
    let hint = Hint::run("install", ["--check"], "for details");
    Problem::new(Class::Invalid, "hooks_not_checked", message, hint)
}

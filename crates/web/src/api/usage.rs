//! What sessions and runs used.

use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use tenure_core::spend::UsageBy;
use tenure_host::clock;
use tenure_service::UsageRequest;
use tenure_service::view::SpendView;

use super::answer::{RouteAnswer, RouteResult};
use super::events::since;
use super::request::{ApiCall, Parts, Request, Spec};

/// From when on it is added up unless its reader says otherwise.
const SINCE: &str = "7d";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// What to add up.
    #[serde(default)]
    by: By,
    /// From the day of this time on: a duration (7d, the default) or a time.
    since: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum By {
    #[default]
    Session,
    Item,
    Day,
    Agent,
}

impl From<By> for UsageBy {
    fn from(by: By) -> Self {
        match by {
            By::Session => Self::Session,
            By::Item => Self::Item,
            By::Day => Self::Day,
            By::Agent => Self::Agent,
        }
    }
}

impl Request for Usage {
    const SPEC: Spec = Spec {
        // Transcripts are read.
        is_long: true,
        ..Spec::get(
            "/api/v1/usage",
            "Add up the tokens and the money that sessions and runs used",
        )
    };

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![("usage", shapes.subschema_for::<SpendView>())]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let request = UsageRequest {
            by: self.by.into(),
            since: since(self.since.as_deref().unwrap_or(SINCE))?,
            zone: clock::zone(),
            budgets: call.context.settings.budgets,
        };
        let answer = tenure_app::usage::look(call.context, &request)?;
        Ok(RouteAnswer::new("usage", &answer.value).told(&answer))
    }
}

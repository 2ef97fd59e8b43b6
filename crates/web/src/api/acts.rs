//! Acts, each in the name of a token and for a reason, which the log has.

use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use tenure_app::keeper;
use tenure_core::id::{Epoch, QuestionId};
use tenure_core::key::Key;
use tenure_core::process::Survivor;
use tenure_core::reason::Reason;
use tenure_core::token::Scope;
use tenure_elsewhere::answers::reply::{self, AnswerRequest, QuestionView, SentAnswer};
use tenure_elsewhere::answers::{Answerer, PersonsAnswer};
use tenure_runs::{settle, stop};
use tenure_service::view::{ClaimView, ConversationView, RunView, SessionView};
use tenure_service::{ActFor, HandoffRequest, ReleaseRequest};

use super::answer::{Fault, Refusal, RouteAnswer, RouteResult};
use super::request::{ApiCall, Parts, Request, Spec, reason};

fn for_session(name: &str, reason: &Reason) -> ActFor {
    ActFor {
        session: Some(name.to_owned()),
        reason: Some(reason.clone()),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tell {
    message: String,
}

impl Request for Tell {
    const SPEC: Spec = Spec::post(
        "/api/v1/sessions/{session}/tell",
        "Send a message to a session",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![
            ("session", shapes.subschema_for::<SessionView>()),
            ("delivery", shapes.subschema_for::<String>()),
        ]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        call.acts(None);
        let name = call.name();
        let answer = call.context.service().tell(name, &self.message)?;
        tenure_elsewhere::wake::start_turn(call.context, &answer.value).finish_beside();
        Ok(RouteAnswer::new("session", &answer.value.session)
            .with("delivery", &answer.value.delivery)
            .told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Questions {}

impl Request for Questions {
    const SPEC: Spec = Spec {
        scope: Scope::Logs,
        ..Spec::get(
            "/api/v1/sessions/{session}/questions",
            "What a session asks that can be answered from elsewhere",
        )
    };

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![("questions", shapes.subschema_for::<Vec<QuestionView>>())]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let open = reply::open_questions(call.context, Some(call.name()))?;
        Ok(RouteAnswer::new("questions", &open))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The id of the question that was shown.
    id: String,
    /// `allow` or `deny`; or else `texts`.
    answer: Option<Verdict>,
    /// With deny: what the model is told.
    message: Option<String>,
    /// A text for each question.
    texts: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Allow,
    Deny,
}

impl Reply {
    fn answer(&self) -> Option<PersonsAnswer> {
        match (self.answer, &self.message, &self.texts) {
            (Some(Verdict::Allow), None, None) => Some(PersonsAnswer::Allow),
            (Some(Verdict::Deny), message, None) => Some(PersonsAnswer::Deny(message.clone())),
            (None, None, Some(texts)) => Some(PersonsAnswer::Texts(texts.clone())),
            _ => None,
        }
    }
}

impl Request for Reply {
    const SPEC: Spec = Spec {
        is_long: true,
        ..Spec::post(
            "/api/v1/sessions/{session}/answer",
            "Answer what a session asks; the first answer counts",
        )
    };

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![("sent", shapes.subschema_for::<SentAnswer>())]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let wrong = "expected answer (allow, or deny with a message), or texts";
        let answer = self.answer();
        let answer = answer.ok_or_else(|| Refusal::BadValue(wrong.to_owned()))?;
        let request = AnswerRequest {
            session: call.name().to_owned(),
            id: QuestionId::parse(&self.id)?,
            answer,
        };
        let by = Answerer::token(&call.access.name);
        call.acts(None);
        let sent = reply::answer(call.context, &by, request)?;
        Ok(RouteAnswer::new("sent", &sent))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct End {
    reason: String,
}

impl Request for End {
    const SPEC: Spec = Spec::post(
        "/api/v1/sessions/{session}/end",
        "End a session and release what it holds; its process goes on",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![("session", shapes.subschema_for::<SessionView>())]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let reason = reason(&self.reason)?;
        call.acts(Some(&reason));
        let act_for = for_session(call.name(), &reason);
        let answer = keeper::end(call.context, &act_for)?;
        Ok(RouteAnswer::new("session", &answer.value).told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dismiss {
    reason: String,
}

impl Request for Dismiss {
    const SPEC: Spec = Spec::post(
        "/api/v1/sessions/{session}/dismiss",
        "Take a cut-off session off the list of what can be resumed",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![("sessions", shapes.subschema_for::<Vec<SessionView>>())]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let reason = reason(&self.reason)?;
        call.acts(Some(&reason));
        let act_for = for_session(call.name(), &reason);
        let answer = call.context.service().dismiss(&act_for)?;
        Ok(RouteAnswer::new("sessions", &[&answer.value]).told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Free {
    reason: String,
    /// Its holder, by handle or id.
    holder: String,
    /// The epoch at which it is held.
    epoch: u64,
    /// Mark the item as finished.
    done: Option<bool>,
}

impl Request for Free {
    const SPEC: Spec = Spec::post(
        "/api/v1/claims/{key}/free",
        "Release an item for its holder",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![("claim", shapes.subschema_for::<ClaimView>())]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let reason = reason(&self.reason)?;
        call.acts(Some(&reason));
        let request = ReleaseRequest {
            key: Key::parse(call.name())?,
            epoch: Some(Epoch(self.epoch)),
            done: self.done == Some(true),
        };
        let act_for = for_session(&self.holder, &reason);
        let answer = keeper::release(call.context, &act_for, &request)?;
        Ok(RouteAnswer::new("claim", &answer.value).told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Give {
    reason: String,
    /// Its holder, by handle or id.
    holder: String,
    /// The epoch at which it is held.
    epoch: u64,
    /// The session that gets it, which must be live.
    to: String,
    /// For that session, such as what is left to do.
    note: Option<String>,
}

impl Request for Give {
    const SPEC: Spec = Spec::post(
        "/api/v1/claims/{key}/give",
        "Hand an item from its holder to another live session",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![("claim", shapes.subschema_for::<ClaimView>())]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let reason = reason(&self.reason)?;
        call.acts(Some(&reason));
        let request = HandoffRequest {
            key: Key::parse(call.name())?,
            to: self.to,
            epoch: Some(Epoch(self.epoch)),
            note: self.note,
        };
        let act_for = for_session(&self.holder, &reason);
        let answer = keeper::handoff(call.context, &act_for, &request)?;
        Ok(RouteAnswer::new("claim", &answer.value).told(&answer))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRun {
    reason: String,
}

impl Request for StopRun {
    const SPEC: Spec = Spec {
        is_long: true,
        ..Spec::post(
            "/api/v1/runs/{run}/stop",
            "Stop a run: its agent and what that started",
        )
    };

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![
            ("run", shapes.subschema_for::<RunView>()),
            ("survivors", shapes.subschema_for::<Vec<Survivor>>()),
        ]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let reason = reason(&self.reason)?;
        settle::all(call.context)?;
        call.acts(Some(&reason));
        let stopped = stop::stop(call.context, call.name(), reason.as_str())?;
        Ok(RouteAnswer::new("run", &stopped.run).with("survivors", &stopped.survivors))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    reason: String,
    /// The item whose conversations are dropped.
    item: String,
}

impl Request for Reset {
    const SPEC: Spec = Spec {
        scope: Scope::Admin,
        ..Spec::post(
            "/api/v1/conversations/reset",
            "Drop the conversations of an item; one with a run in it when that run ends",
        )
    };

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![
            ("dropped", shapes.subschema_for::<Vec<ConversationView>>()),
            ("running", shapes.subschema_for::<Vec<String>>()),
        ]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let reason = reason(&self.reason)?;
        let item = Key::parse(&self.item).map_err(Fault::from)?;
        call.acts(Some(&reason));
        let answer = call.context.service().reset_item(&item, None)?;
        let running: Vec<&str> = answer
            .value
            .running
            .iter()
            .map(|run| run.as_str())
            .collect();
        Ok(RouteAnswer::new("dropped", &answer.value.dropped)
            .with("running", &running)
            .told(&answer))
    }
}

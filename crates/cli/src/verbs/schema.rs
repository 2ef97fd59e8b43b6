use std::collections::BTreeMap;

use schemars::schema_for;
use serde_json::{Value, json};
use tenure_app::unmanaged::Unmanaged;
use tenure_core::hint::Hint;
use tenure_core::mission::check::Fault;
use tenure_service::view::{
    ClaimView, EventView, MissionView, NoticeView, ParticipantView, PointerView, ResolvedView,
    ResumeView, SessionView, WhyView,
};

use super::JOBS;
use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Shown};

/// Print the shapes of the JSON answers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure schema > tenure.schema.json")]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let codes: Vec<Value> = Exit::TABLE
        .iter()
        .map(|(Exit(code), meaning)| json!({"code": code, "meaning": meaning}))
        .collect();
    let verbs = JOBS.iter().flat_map(|(_, verbs)| verbs.iter());
    let answers: BTreeMap<&str, &str> = verbs
        .copied()
        .filter(|(_, part)| !part.is_empty())
        .collect();
    let schema = json!({
        "envelope": {
            "success": {"v": 1, "session|sessions|claim|claims|events|…": "as below", "more": "lists: how many more there are; 0 without --limit", "notices": ["notice"], "more_notices": "how many more notices wait, where there are more"},
            "failure": {"v": 1, "error": {"kind": "text", "message": "text", "hints": ["hint"]}, "notices": ["notice"]},
        },
        "answers": answers,
        "exit_codes": codes,
        "session": schema_for!(SessionView),
        "claim": schema_for!(ClaimView),
        "event": schema_for!(EventView),
        "notice": schema_for!(NoticeView),
        "resolved": schema_for!(ResolvedView),
        "hint": schema_for!(Hint),
        "why": schema_for!(WhyView),
        "unmanaged": schema_for!(Unmanaged),
        "resume": schema_for!(ResumeView),
        "participant": schema_for!(ParticipantView),
        "mission": schema_for!(MissionView),
        "pointer": schema_for!(PointerView),
        "fault": schema_for!(Fault),
    });
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    Ok(Shown::new("schema", &schema, Lines::own(&text)))
}

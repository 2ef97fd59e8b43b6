//! `schema`: everything that `--json` prints, as one JSON Schema (draft 2020-12).
//!
//! What the service answers with is described by the types themselves; what the command line adds is
//! described in [`parts`] and [`dispatch`]. A test checks real answers of every verb against it, in both directions: nothing is
//! missing that it requires, and nothing is there that it does not name.

mod dispatch;
mod parts;

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use tenure_app::agent_hooks::AgentHooks;
use tenure_app::keeper::KeeperReport;
use tenure_app::mirror::setting::Mirror;
use tenure_app::openclaw::OpenclawFault;
use tenure_app::settings::{Ignored, Setting, repo::Repo};
use tenure_app::store_admin::{StoreView, Views};
use tenure_app::unmanaged::Unmanaged;
use tenure_core::hint::Hint;
use tenure_core::mission::check::MissionFault;
use tenure_core::process::Survivor;
use tenure_core::run::worktree;
use tenure_core::transcript::LineProblem;
use tenure_doctor::DoctorReport;
use tenure_doctor::backup::{BackupView, RestoredView};
use tenure_doctor::gc::GcView;
use tenure_elsewhere::answers::SentAnswer;
use tenure_host::lock_table::LockState;
use tenure_runs::skill;
use tenure_service::Status;
use tenure_service::view::{
    ClaimView, ConversationView, DeliveryView, EventView, ExplanationView, HeldView, HoldView,
    ImportView, JobView, LinkView, MissionView, NoticeView, ParticipantView, PastIdView,
    PointerView, ResolvedView, ResumeView, RunView, SessionView, SpendView, TokenView, WhyView,
};
use tenure_views::build::BuildView;

use super::JOBS;
use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Output};
use crate::render::spooled::{PermittedView, RememberedView, SpooledView};

/// Print the JSON Schema of every answer, error and event
///
/// An answer matches #/$defs/answer, a failure #/$defs/failure, a line of a stream #/$defs/streamed. The answer of
/// one command matches #/$defs/COMMAND.answer. An answer that also has an error is incomplete: the exit code is that
/// of the error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure schema > tenure.schema.json
  tenure schema | jq '.\"$defs\".session.properties | keys'")]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let schema = schema();
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    Ok(Output::new("schema", &schema, Lines::own(&text)))
}

fn schema() -> Value {
    let mut defs = described();
    for (name, shape) in parts::shapes().into_iter().chain(dispatch::shapes()) {
        defs.insert(name.to_owned(), shape);
    }
    for (verb, named) in answers() {
        defs.insert(format!("{verb}.answer"), answer_of(named));
    }
    let codes: Vec<Value> = Exit::TABLE
        .iter()
        .map(|(Exit(code), meaning)| json!({"code": code, "meaning": meaning}))
        .collect();
    let whole = ["answer", "failure", "streamed"].map(parts::reference);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": concat!("tenure ", env!("CARGO_PKG_VERSION"), " --json"),
        "anyOf": whole,
        "$defs": defs,
        "answers": answers(),
        "exit_codes": codes,
    })
}

/// The parts that each verb's answer has one of.
fn answers() -> BTreeMap<&'static str, &'static str> {
    let verbs = JOBS.iter().flat_map(|(_, verbs)| verbs.iter()).copied();
    verbs.filter(|(_, part)| !part.is_empty()).collect()
}

fn answer_of(named: &str) -> Value {
    let one: Vec<Value> = named
        .split('|')
        .map(|part| json!({"required": [part]}))
        .collect();
    json!({"allOf": [parts::reference("answer")], "anyOf": one})
}

/// The schemas that the types of the service derive.
fn described() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    generator.subschema_for::<SessionView>();
    generator.subschema_for::<ClaimView>();
    generator.subschema_for::<HeldView>();
    generator.subschema_for::<HoldView>();
    generator.subschema_for::<EventView>();
    generator.subschema_for::<NoticeView>();
    generator.subschema_for::<ResolvedView>();
    generator.subschema_for::<Hint>();
    generator.subschema_for::<WhyView>();
    generator.subschema_for::<Unmanaged>();
    generator.subschema_for::<AgentHooks>();
    generator.subschema_for::<ResumeView>();
    generator.subschema_for::<ParticipantView>();
    generator.subschema_for::<MissionView>();
    generator.subschema_for::<PointerView>();
    generator.subschema_for::<ConversationView>();
    generator.subschema_for::<PastIdView>();
    generator.subschema_for::<LinkView>();
    generator.subschema_for::<MissionFault>();
    generator.subschema_for::<LineProblem>();
    generator.subschema_for::<Status>();
    generator.subschema_for::<RunView>();
    generator.subschema_for::<JobView>();
    generator.subschema_for::<DeliveryView>();
    generator.subschema_for::<ExplanationView>();
    generator.subschema_for::<Survivor>();
    generator.subschema_for::<TokenView>();
    generator.subschema_for::<SpendView>();
    generator.subschema_for::<SentAnswer>();
    generator.subschema_for::<ImportView>();
    generator.subschema_for::<OpenclawFault>();
    generator.subschema_for::<StoreView>();
    generator.subschema_for::<Views>();
    generator.subschema_for::<BackupView>();
    generator.subschema_for::<DoctorReport>();
    generator.subschema_for::<GcView>();
    generator.subschema_for::<RestoredView>();
    generator.subschema_for::<KeeperReport>();
    generator.subschema_for::<PermittedView>();
    generator.subschema_for::<SpooledView>();
    generator.subschema_for::<RememberedView>();
    generator.subschema_for::<Setting>();
    generator.subschema_for::<Mirror>();
    generator.subschema_for::<Repo>();
    generator.subschema_for::<Ignored>();
    generator.subschema_for::<skill::ListedSkill>();
    generator.subschema_for::<worktree::Record>();
    generator.subschema_for::<LockState>();
    generator.subschema_for::<BuildView>();
    let found = generator.take_definitions(true);
    found
        .into_iter()
        .map(|(name, mut shape)| {
            rename_references(&mut shape);
            (known_as(&name), shape)
        })
        .collect()
}

/// `SessionView` is known as `session`, `LineProblem` as `line_problem`.
fn known_as(name: &str) -> String {
    let mut known = String::new();
    for letter in name.strip_suffix("View").unwrap_or(name).chars() {
        if letter.is_uppercase() && !known.is_empty() {
            known.push('_');
        }
        known.extend(letter.to_lowercase());
    }
    known
}

fn rename_references(shape: &mut Value) {
    match shape {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                let name = value
                    .as_str()
                    .and_then(|text| text.strip_prefix("#/$defs/"));
                match name.filter(|_| key == "$ref").map(known_as) {
                    Some(name) => *value = Value::from(format!("#/$defs/{name}")),
                    None => rename_references(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(rename_references),
        _ => {}
    }
}

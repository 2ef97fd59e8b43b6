use tenure_core::service::ListRequest;

use super::hook::outages;
use crate::app::{App, place_here};
use crate::output::{Outcome, Shown};
use crate::summary;

/// Show where this session stands: who it is, what it holds, who else is here, what needs attention
///
/// At most twenty lines; --json has all of it. Files are those that others' tools wrote within an hour.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure status
  tenure status --json | jq .status.others")]
pub struct Args {}

pub fn run(_: &Args, app: &App) -> Outcome {
    let here = place_here();
    let mut opened = app.open()?;
    let request = match here.repo {
        Some(repo) => ListRequest {
            repo: Some(repo),
            worktree: Some(here.dir),
            ..ListRequest::default()
        },
        None => ListRequest {
            under: Some(here.dir),
            ..ListRequest::default()
        },
    };
    let mut answer = opened.service().status(&app.naming(None), &request)?;
    answer.value.warnings.extend(outages(opened.dir()));
    let status = &answer.value;
    let text = summary::status(status);
    let json = serde_json::json!({
        "me": status.me,
        "nobody": status.nobody,
        "claims": status.claims,
        "others": status.others,
        "waiting": status.waiting,
        "warnings": status.warnings,
    });
    Ok(Shown::new("status", &json, text).told(&answer))
}

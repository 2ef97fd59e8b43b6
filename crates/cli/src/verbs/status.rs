use tenure_core::service::ListRequest;

use crate::app::{App, current_dir, place};
use crate::output::{Outcome, Shown};
use crate::render;

/// Show where this session stands: who it is, what it holds, who else is here, what needs attention
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure status
  tenure status --json | jq .status.others")]
pub struct Args {}

pub fn run(_: &Args, app: &App) -> Outcome {
    let here = place(&current_dir()?)?;
    let mut opened = app.open()?;
    let request = match here.repo {
        Some(repo) => ListRequest {
            repo: Some(repo),
            ..ListRequest::default()
        },
        None => ListRequest {
            under: Some(here.dir),
            ..ListRequest::default()
        },
    };
    let answer = opened.service().status(&app.naming(None), &request)?;
    let status = &answer.value;
    let text = render::status(status);
    let json = serde_json::json!({
        "me": status.me,
        "nobody": status.nobody,
        "claims": status.claims,
        "others": status.others,
        "warnings": status.warnings,
    });
    Ok(Shown::new("status", &json, text).told(&answer))
}

use tenure_service::ListRequest;

use tenure_host::log_readers;

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
    let location = opened.service().location();
    answer.value.warnings.extend(long_log(&location));
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

/// A log this long is not cut off any more; it is usually below 1 MiB.
const LONG_LOG: u64 = 2 * 1024 * 1024;

/// A log that cannot be cut off, with who keeps it: a reader that does not end.
fn long_log(store: &str) -> Option<String> {
    let length = fs_err::metadata(format!("{store}-wal")).ok()?.len();
    if length < LONG_LOG {
        return None;
    }
    let index = format!("{store}-shm");
    let readers = log_readers::of(std::path::Path::new(&index));
    let readers: Vec<String> = readers
        .into_iter()
        .map(|reader| format!("pid {} ({})", reader.pid, reader.name))
        .collect();
    let who = match readers.is_empty() {
        true => "a process that cannot be seen from here".to_owned(),
        false => readers.join(", "),
    };
    let mib = length / (1024 * 1024);
    Some(format!(
        "the log of the store has grown to {mib} MiB and cannot be cut off while {who} reads the store"
    ))
}

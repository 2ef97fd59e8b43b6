//! A store that cannot be used costs an agent nothing, but must not go unnoticed for a week.
//!
//! Every event that was not recorded is a line in `outages.log` of the state directory. It is said to the
//! person and the model once an hour for each agent process, or for each conversation where the process could not be
//! found: whether it was said is in the line. Where even that file cannot be written, it is said at starts
//! only. The file is cut when it is large.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use fs_err::File;
use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use serde_json::{Value, json};
use tenure_agents::Report;
use tenure_core::agent_event::Happening;
use tenure_core::id::NativeId;
use tenure_core::process::Ancestor;
use tenure_core::time::{Span, Timestamp};
use tenure_host::clock;
use tenure_service::WARNED_FOR;
use tenure_service::answer::Problem;

use crate::location::state_path;

/// How large the file may get.
const MOST: u64 = 256 << 10;
/// How long one process is not told again.
const QUIET: Duration = Duration::from_secs(3600);

/// Counts an event that was not recorded; gives the words if they must be said.
pub fn note(
    agent: &str,
    report: &Report,
    process: Option<&Ancestor>,
    problem: &Problem,
    blocks: bool,
) -> Option<String> {
    let goes_on = if blocks {
        "Writes wait until this is mended, because guard.on_error is closed"
    } else {
        "Nothing is blocked and your work goes on"
    };
    let words = format!(
        "tenure cannot record this session: {}. {goes_on}; claims are not watched until this is mended; \
         `tenure ps` says more.",
        problem.message,
    );
    let at = clock::wall();
    let whose = process.map(|found| (found.process.pid, found.process.start.ticks));
    let conversation = report.native_id.as_ref().map(NativeId::as_str);
    let file = state_path().map(|dir| dir.join("outages.log"));
    let mut file = file.and_then(|file| open(&file).ok());
    let known = file.as_mut().map(lines).unwrap_or_default();
    let can_be_seen = report.reaches_model || matches!(report.what, Happening::Start);
    let said = can_be_seen
        && !known
            .iter()
            .any(|line| was_said(line, whose, conversation, at));
    let entry = json!({
        "at": at.0, "agent": agent, "event": report.name, "said": said,
        "pid": whose.map(|(pid, _)| pid), "start": whose.map(|(_, start)| start),
        "native_id": conversation,
        "kind": problem.kind, "why": problem.message,
    });
    let kept = file.is_some_and(|mut file| file.write_all(format!("{entry}\n").as_bytes()).is_ok());
    (said && (kept || matches!(report.what, Happening::Start))).then_some(words)
}

/// What people are told of events that were not recorded within a day.
pub fn lately(dir: &Path) -> Option<String> {
    let now = clock::wall();
    let ago = |line: &Value| Some(Timestamp(line["at"].as_i64()?).age_at(now));
    let file = dir.join("outages.log");
    // One is made where something was missed, never by a look.
    let known = file.exists().then(|| open(&file).ok()).flatten();
    let known = lines(&mut known?);
    let recent = |line: &&Value| ago(line).is_some_and(|age| age < WARNED_FOR);
    let missed: Vec<&Value> = known.iter().filter(recent).collect();
    let last = missed.last()?;
    let events = match missed.len() {
        1 => "1 event of an agent was".to_owned(),
        n => format!("{n} events of agents were"),
    };
    let why = last["why"].as_str().unwrap_or("the reason is not known");
    let age = Span(ago(last)?);
    Some(format!("{events} not recorded, the last {age} ago: {why}"))
}

fn was_said(
    line: &Value,
    whose: Option<(u32, u64)>,
    conversation: Option<&str>,
    now: Timestamp,
) -> bool {
    let same = line["pid"].as_u64() == whose.map(|(pid, _)| u64::from(pid))
        && line["start"].as_u64() == whose.map(|(_, start)| start)
        && (whose.is_some() || line["native_id"].as_str() == conversation);
    let at = line["at"].as_i64().map(Timestamp);
    let lately = at.is_some_and(|at| at.age_at(now) < QUIET);
    same && lately && line["said"].as_bool() == Some(true)
}

/// The file, to be read and added to. It may lie in a directory that was refused because others can write
/// there, so it is no link and no pipe.
fn open(file: &Path) -> io::Result<File> {
    if fs_err::symlink_metadata(file).is_ok_and(|found| found.len() > MOST) {
        fs_err::rename(file, file.with_extension("log.1"))?;
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let open = fs_err::OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(file)?;
    if !open.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    tenure_host::file::give_back(&open)?;
    Ok(open)
}

fn lines(file: &mut File) -> Vec<Value> {
    let mut text = Vec::new();
    if file.take(MOST).read_to_end(&mut text).is_err() {
        // What cannot be read was not said.
        text.clear();
    }
    let parsed = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok());
    parsed.collect()
}

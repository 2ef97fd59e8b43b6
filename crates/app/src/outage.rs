//! An unusable store must not stop an agent, and must not go unnoticed either.
//!
//! Every event that was not recorded is a line in `outages.log` in the state directory. The person and the model
//! are told once an hour per agent process, or per conversation if the process is unknown; the line records whether
//! they were. If that file cannot be written either, they are told at starts only. A large file is rotated.

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
use tenure_core::ignore::Ignore;
use tenure_core::process::Ancestor;
use tenure_core::time::{Span, Timestamp};
use tenure_host::clock;
use tenure_service::WARNED_FOR;
use tenure_service::answer::Problem;

use crate::keeper::EventRequest;
use crate::location::state_path;

/// The kind of an outage that was only a matter of time.
pub const TIMED_OUT: &str = "hook_timed_out";
/// In the state directory.
const FILE: &str = "outages.log";
/// How large the file may get.
const MAX_LENGTH: u64 = 256 << 10;
/// How long one process is not told again.
const QUIET: Duration = Duration::from_secs(3600);

/// Counts an event that was not recorded; returns the message if it is due.
pub fn note(
    agent: &str,
    report: &Report,
    process: Option<&Ancestor>,
    problem: &Problem,
    blocks: bool,
) -> Option<String> {
    let goes_on = if blocks {
        "Writes are blocked until this is fixed, because guard.on_error is closed."
    } else {
        "Nothing is blocked, and you can go on working."
    };
    let words = format!(
        "tenure cannot record this session: {}. {goes_on} Claims are not checked until this is fixed. Run \
         `tenure ps` for details.",
        problem.message,
    );
    let at = clock::wall();
    let whose = process.map(|found| (found.process.pid, found.process.start.ticks));
    let conversation = report.native_id.as_ref().map(NativeId::as_str);
    let file = state_path().map(|dir| dir.join(FILE));
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

/// Counts an event that was not recorded after its hook was over; nobody was told.
pub fn count(dir: &Path, request: &EventRequest, problem: &Problem) {
    let event = &request.event;
    let whose = event.process.as_ref().map(|found| &found.process);
    let entry = json!({
        "at": clock::wall().0, "agent": request.hook, "event": request.name, "said": false,
        "pid": whose.map(|process| process.pid), "start": whose.map(|process| process.start.ticks),
        "native_id": event.native_id.as_ref().map(NativeId::as_str),
        "kind": problem.kind, "why": problem.message,
    });
    let counted =
        open(&dir.join(FILE)).and_then(|mut file| file.write_all(format!("{entry}\n").as_bytes()));
    counted.ignore("there is no other place to count it");
}

/// The warning about events that were not recorded within a day.
pub fn lately(dir: &Path) -> Option<String> {
    let now = clock::wall();
    let ago = |line: &Value| Some(Timestamp(line["at"].as_i64()?).age_at(now));
    let file = dir.join(FILE);
    // Reading never creates the file.
    let known = file.exists().then(|| open(&file).ok()).flatten();
    let known = lines(&mut known?);
    let recent = |line: &&Value| ago(line).is_some_and(|age| age < WARNED_FOR);
    let missed: Vec<&Value> = known.iter().filter(recent).collect();
    let last = missed.last()?;
    let events = match missed.len() {
        1 => "1 agent event was".to_owned(),
        n => format!("{n} agent events were"),
    };
    let why = last["why"].as_str().unwrap_or("unknown reason");
    let age = Span(ago(last)?);
    Some(format!(
        "{events} not recorded, the last one {age} ago ({why})"
    ))
}

/// An event of an agent that came too late for an answer, or was not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateHook {
    pub at: Timestamp,
    pub agent: String,
    pub event: String,
    pub why: String,
}

/// The hooks that timed out since then, oldest first, as far as they are still kept.
pub fn late_hooks(dir: &Path, since: Option<Timestamp>) -> Vec<LateHook> {
    let files = ["outages.log.1", FILE].map(|name| dir.join(name));
    let mut late = Vec::new();
    for file in files.iter().filter(|file| file.exists()) {
        let known = open(file).map(|mut file| lines(&mut file));
        late.extend(known.unwrap_or_default().iter().filter_map(late_hook));
    }
    late.retain(|hook| since.is_none_or(|since| hook.at >= since));
    late
}

fn late_hook(line: &Value) -> Option<LateHook> {
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    (line["kind"] == TIMED_OUT).then_some(LateHook {
        at: Timestamp(line["at"].as_i64()?),
        agent: text("agent"),
        event: text("event"),
        why: text("why"),
    })
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

/// Opens the file to read and append. Its directory may be one that was refused because others can write to it, so
/// links and pipes are not followed.
fn open(file: &Path) -> io::Result<File> {
    if fs_err::symlink_metadata(file).is_ok_and(|found| found.len() > MAX_LENGTH) {
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
    if file.take(MAX_LENGTH).read_to_end(&mut text).is_err() {
        // Unreadable content counts as not yet reported.
        text.clear();
    }
    let parsed = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok());
    parsed.collect()
}

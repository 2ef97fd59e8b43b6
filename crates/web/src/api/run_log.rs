//! What the agent of a run writes: its log, part by part. A reader who follows it asks again from where it was.

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::os::unix::fs::FileExt;
use tenure_app::open::Context;
use tenure_core::token::Scope;
use tenure_host::read;
use tenure_runs::{RunFiles, settle};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::RunView;

use super::answer::{Fault, Refusal, RouteAnswer, RouteResult};
use super::request::{ApiCall, Parts, Request, Spec};

/// How much of the file one answer reads.
const PART: usize = 256 << 10;

/// The path of the log and of its stream.
pub const PATH: &str = "/api/v1/runs/{run}/log";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunLog {
    /// From this byte on, which must be the `next` of another answer.
    pub after: Option<u64>,
}

/// A line of the agent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogLine {
    /// Where it begins.
    pub at: u64,
    /// Where the next one begins.
    pub end: u64,
    /// Its JSON, else its text.
    pub data: Value,
}

impl Request for RunLog {
    const SPEC: Spec = Spec {
        scope: Scope::Logs,
        ..Spec::get(
            PATH,
            "Read what the agent of a run wrote, from a position on. With Accept: text/event-stream, follow it until the \
             run ends",
        )
    };

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![
            ("lines", shapes.subschema_for::<Vec<LogLine>>()),
            ("next", shapes.subschema_for::<u64>()),
            ("more", shapes.subschema_for::<bool>()),
            ("run", shapes.subschema_for::<RunView>()),
        ]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let part = read_part(call.context, call.name(), self.after.unwrap_or(0))?;
        Ok(RouteAnswer::new("lines", &part.lines)
            .with("next", &part.next)
            .with("more", &part.more)
            .with("run", &part.run))
    }
}

/// A part of a log.
#[derive(Debug)]
pub struct Part {
    pub lines: Vec<LogLine>,
    /// Where the next part begins.
    pub next: u64,
    /// Whether there is more already.
    pub more: bool,
    pub run: RunView,
}

/// Reads what is whole from a position on.
pub fn read_part(context: &mut Context, run: &str, from: u64) -> Result<Part, Fault> {
    settle::all(context)?;
    let run = context.service().show_run(run)?.value;
    let log = run.log.as_ref().ok_or_else(|| no_log(&run.id))?;
    let output = RunFiles::at(log).output();
    let file = read::open(&output).map_err(|_| no_log(&run.id))?;
    let length = file.metadata().map_err(|_| no_log(&run.id))?.len();
    if from > length {
        return Err(Refusal::BadCursor.into());
    }
    let mut part = vec![0; PART];
    let count = file.file().read_at(&mut part, from);
    part.truncate(count.map_err(|_| no_log(&run.id))?);
    let is_over = run.state == "ended" && from + part.len() as u64 == length;
    let (lines, next) = lines(&part, from, is_over);
    let more = next < length && !lines.is_empty();
    Ok(Part {
        lines,
        next,
        more,
        run,
    })
}

/// The whole lines of a part, and where the next one begins. A line that is longer than a part is cut.
fn lines(part: &[u8], from: u64, is_over: bool) -> (Vec<LogLine>, u64) {
    let whole = match part.iter().rposition(|byte| *byte == b'\n') {
        _ if is_over => part.len(),
        Some(end) => end + 1,
        None if part.len() == PART => PART,
        None => 0,
    };
    let mut lines = Vec::new();
    let mut at = from;
    for line in part[..whole].split_inclusive(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches('\n').trim_matches('\0');
        if !text.is_empty() {
            let data = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            let end = at + line.len() as u64;
            lines.push(LogLine { at, end, data });
        }
        at += line.len() as u64;
    }
    (lines, at)
}

fn no_log(run: &str) -> Fault {
    let message = format!("the log of run {run} is gone");
    let hint = Hint::step("set run.keep_for and run.keep_last to keep logs longer");
    Problem::new(Class::NotFound, "not_found", message, hint).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_when_it_is_whole() {
        let (found, next) = lines(b"{\"a\":1}\nplain\nhal", 10, false);
        let data: Vec<&Value> = found.iter().map(|line| &line.data).collect();
        assert_eq!(
            data,
            [&serde_json::json!({"a": 1}), &serde_json::json!("plain")]
        );
        assert_eq!((found[1].at, next), (18, 24));
        let (found, next) = lines(b"hal", 24, false);
        assert_eq!((found.len(), next), (0, 24));
        let (found, next) = lines(b"hal", 24, true);
        assert_eq!((found.len(), next), (1, 27));
    }
}

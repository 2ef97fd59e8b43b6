//! What a run reports to people elsewhere: whether its agent waits, and its last text.

use tenure_core::id::RunId;
use tenure_core::queue::reply::{MAX_PATCH, Patch, RunNow};
use tenure_core::run::Run;
use tenure_core::run::progress::{RunProgress, Totals};
use tenure_core::time::Timestamp;
use tenure_host::{clock, read};

use super::driver::Driver;
use super::files::RunFiles;
use super::log::{OutputLine, last_lines};
use super::spool::SpooledEnd;
use tenure_app::open::Context;

/// How many bytes at the end of a log show what an agent does now.
const END_OF_LOG: u64 = 64 << 10;

/// What is known about a run on this machine; empty if its files are elsewhere or gone.
pub fn now(context: &mut Context, run: &RunId) -> RunNow {
    let Ok(found) = context.service().run_record(run.as_str()) else {
        return RunNow::default();
    };
    let run = found.value;
    let Some(log) = &run.log else {
        return RunNow::default();
    };
    let files = RunFiles::at(log);
    if run.is_open() {
        let (waiting, step) = doing(context, &run, &files);
        let minutes = |at: Timestamp| at.age_at(clock::wall()).as_secs() / 60;
        return RunNow {
            waiting,
            step,
            since: run.begun_at.map(|at| (at, minutes(at))),
            ..RunNow::default()
        };
    }
    let end = SpooledEnd::read(&files).ok().flatten();
    RunNow {
        answer: end.and_then(|end| end.answer),
        patch: patch(&files),
        ..RunNow::default()
    }
}

/// What a run committed, if that was not published.
fn patch(files: &RunFiles) -> Option<Patch> {
    let path = files.patch();
    if !path.exists() {
        return None;
    }
    let bytes = read::whole(&path, MAX_PATCH as u64).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    Some(text.map_or(Patch::Kept, Patch::of))
}

/// Why the agent waits for its provider, and what it does, from the end of its log.
fn doing(context: &Context, run: &Run, files: &RunFiles) -> (Option<String>, Option<String>) {
    let Ok(driver) = Driver::of(&context.settings, &run.agent) else {
        return (None, None);
    };
    let runs = driver.runs();
    let mut seen = RunProgress::new(Totals::default());
    let mut each = |line: OutputLine<'_>| {
        if let OutputLine::Whole(line) = line {
            let at = clock::wall();
            runs.read(line)
                .into_iter()
                .for_each(|line| seen.feed(line, at));
        }
    };
    if last_lines(&files.output(), END_OF_LOG, &mut each).is_err() {
        return (None, None);
    }
    let waiting = seen.waiting().map(|waiting| waiting.why.clone());
    (waiting, seen.doing().map(str::to_owned))
}

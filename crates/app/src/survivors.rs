//! Ending what a session that is over left running.
//!
//! What may be ended is decided with each search; a process that was killed may just have started another, so the search
//! is repeated. Every process is ended through its own descriptor ([`crate::kill`]). What could not be ended is listed.

use std::time::Duration;

use tenure_core::process::{LeftProcess, Process, Survivor};
use tenure_service::answer::Problem;
use tenure_service::{ActFor, Answer, LeftBehind};

use crate::kill::{self, EndedBy};
use crate::open::Context;

/// How many times survivors are searched for.
const ROUNDS: usize = 5;

/// What became of the processes that a session left running.
#[derive(Debug)]
pub struct EndedSurvivors {
    /// The session, and what still runs.
    pub left: Answer<LeftBehind>,
    pub ended: Vec<(Survivor, EndedBy)>,
}

/// Ends what the named session left running and may be ended; each process has `grace` to exit by itself.
pub fn end(
    context: &mut Context,
    act_for: &ActFor,
    grace: Duration,
) -> Result<EndedSurvivors, Problem> {
    let mut ended = Vec::new();
    let mut left = context.service().left_behind(act_for)?;
    for _ in 0..ROUNDS {
        let ours: Vec<LeftProcess> = left.value.found.clone();
        let ours: Vec<LeftProcess> = ours.into_iter().filter(|one| one.shown.can_end).collect();
        let processes: Vec<Process> = ours.iter().map(|one| one.process.clone()).collect();
        let how = kill::end_all(&processes, Some(grace));
        let gone = ours.into_iter().zip(how);
        let gone = gone.filter_map(|(one, how)| Some((one.shown, how?)));
        let before = ended.len();
        ended.extend(gone);
        if ended.len() == before {
            break;
        }
        left = context.service().left_behind(act_for)?;
    }
    if !ended.is_empty() {
        let each = |(one, how): &(Survivor, EndedBy)| match how.signal() {
            Some(signal) => format!("ended pid {} by SIG{signal}", one.pid),
            None => format!("pid {} had already exited", one.pid),
        };
        let how: Vec<String> = ended.iter().map(each).collect();
        context
            .service()
            .log_survivors_ended(act_for, &how.join(", "))?;
    }
    Ok(EndedSurvivors { left, ended })
}

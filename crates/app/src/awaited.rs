//! Waiting until a session ends or rests.

use std::path::PathBuf;
use std::time::Duration;

use tenure_core::notice::Pending;
use tenure_core::process::Process;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::error::Error;
use tenure_service::view::SessionView;
use tenure_service::{Answer, WaitGoal};

use crate::open::Context;
use crate::unfinished::{By, Unfinished};
use crate::watch::{Next, WatchEnd, on_change};
use crate::witness::{chat, registry};

/// How often a session is checked whose process cannot be watched.
const UNSEEN_EVERY: Duration = Duration::from_secs(1);
/// How often to check a session whose agent reports its activity in a file, besides watching that
/// file.
const TOLD_BY_FILE_EVERY: Duration = Duration::from_secs(5);
/// How often to check a session whatever happens.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);

/// Waits for a session. Notices that arrive meanwhile are returned with the outcome.
pub fn session(
    context: &mut Context,
    name: &str,
    until: WaitGoal,
    timeout: Option<Duration>,
) -> Result<Answer<SessionView>, Unfinished> {
    let began = tenure_host::clock::instant();
    let mut told = Pending::default();
    let ended = on_change(context, Duration::ZERO, |context| {
        let answer = context.service().awaited(name, until)?;
        // Notices stay pending until they are delivered, so the last check returns all of them.
        told = answer.notices;
        let found = answer.value;
        if found.is_so {
            return Ok(Next::Done(found.session));
        }
        let left = match timeout {
            Some(timeout) => timeout.saturating_sub(began.elapsed()),
            None => AT_LEAST_EVERY,
        };
        if left.is_zero() {
            return Err(timed_out(&found.session, until, began.elapsed()));
        }
        let Some(process) = found.process else {
            return Ok(Next::Again {
                processes: Vec::new(),
                limit: left.min(UNSEEN_EVERY),
            });
        };
        // A person who cancels a turn causes no event, so the store does not change.
        let told = match until {
            WaitGoal::Rests => own_files(&found.session, &process, found.transcript.as_deref()),
            WaitGoal::Ends => None,
        };
        Ok(match told {
            Some(dir) => Next::AgainBeside {
                processes: vec![process],
                dirs: vec![dir],
                limit: left.min(TOLD_BY_FILE_EVERY),
            },
            None => Next::Again {
                processes: vec![process],
                limit: left.min(AT_LEAST_EVERY),
            },
        })
    });
    let mut failed = match ended {
        Ok(WatchEnd::Done(value)) => {
            return Ok(Answer {
                value,
                notices: told,
                damaged: None,
            });
        }
        Ok(WatchEnd::Signal(signal)) => {
            let message = format!("interrupted while waiting for {name}");
            let hint = Hint::step("run it again to keep waiting");
            Unfinished {
                problem: Problem::new(Class::TimedOut, "interrupted", message, hint),
                by: By::Signal(signal),
            }
        }
        Err(problem) => Unfinished::from(problem),
    };
    if failed.problem.notices.is_empty() {
        failed.problem.notices = told;
    }
    Err(failed)
}

/// The files in which the agent reports its activity.
fn own_files(
    session: &SessionView,
    process: &Process,
    transcript: Option<&str>,
) -> Option<PathBuf> {
    registry::folder_of(&session.agent, process)
        .or_else(|| chat::folder_of(&session.agent, transcript))
}

fn timed_out(session: &SessionView, until: WaitGoal, waited: Duration) -> Problem {
    let state = match session.activity.unwrap_or(session.state) {
        "unknown" => "may still be alive".to_owned(),
        doing => format!("is still {doing}"),
    };
    let why = Box::new(Error::NotLive {
        handle: session.handle.clone(),
        state: format!("{state} ({})", session.why),
    });
    let mut problem = Problem::from(Error::TimedOut { waited, why });
    let what = match until {
        WaitGoal::Ends => "end",
        WaitGoal::Rests => "idle",
    };
    problem.data.insert("waited_for".into(), what.into());
    problem
}

//! Waiting until a message was delivered.

use std::time::Duration;

use tenure_app::open::Context;
use tenure_app::unfinished::{By, Unfinished};
use tenure_app::watch::{Next, WatchEnd, on_change};
use tenure_core::id::SessionId;
use tenure_core::notice::Pending;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::{Answer, Delivery, Receipt, SentMessage};

/// How often to look whatever happens.
const AT_LEAST_EVERY: Duration = Duration::from_secs(10);
/// The same for a receiver whose process cannot be watched.
const UNSEEN_EVERY: Duration = Duration::from_secs(1);

/// Waits until a message was delivered, or this long; what is true then. Refused if its receiver ended and cannot be
/// resumed.
pub fn await_receipt(
    context: &mut Context,
    sent: &SentMessage,
    timeout: Duration,
) -> Result<Answer<Receipt>, Unfinished> {
    let to = SessionId::parse(&sent.session.id).map_err(Problem::from)?;
    let began = tenure_host::clock::instant();
    let mut told = Pending::default();
    let ended: Result<WatchEnd<Receipt>, Problem> = on_change(context, Duration::ZERO, |context| {
        let answer = context.service().receipt(to, sent.id)?;
        told = answer.notices;
        let found = answer.value;
        let left = timeout.saturating_sub(began.elapsed());
        if found.delivery == Delivery::Delivered || left.is_zero() {
            return Ok(Next::Done(found));
        }
        let every = match found.process {
            Some(_) => AT_LEAST_EVERY,
            None => UNSEEN_EVERY,
        };
        Ok(Next::Again {
            processes: found.process.into_iter().collect(),
            limit: left.min(every),
        })
    });
    match ended {
        Ok(WatchEnd::Done(value)) => Ok(Answer {
            value,
            notices: told,
            damaged: None,
        }),
        Ok(WatchEnd::Signal(signal)) => {
            let message = format!("interrupted while waiting for {}", sent.session.handle);
            let hint = Hint::step("the message stays, and is delivered at the next event");
            Err(Unfinished {
                problem: Problem::new(Class::TimedOut, "interrupted", message, hint),
                by: By::Signal(signal),
            })
        }
        Err(problem) => Err(problem.into()),
    }
}

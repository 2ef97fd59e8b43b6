//! The end of a run as it is stored.

use tenure_core::id::RunId;
use tenure_core::run::Outcome;
use tenure_core::run::end::{End, Exit};
use tenure_core::run::progress::RunProgress;
use tenure_core::text;

use super::agent::code_of;
use super::spool::{SpooledEnd, TotalsView};

/// How many characters of the reason are stored.
const MAX_REASON: usize = 500;

/// The end to store; `stop` is why the agent was told to stop.
pub(super) fn spooled(
    run: &RunId,
    end: &End,
    seen: &RunProgress,
    exit: Exit,
    stop: Option<&str>,
) -> SpooledEnd {
    let totals = seen.totals();
    SpooledEnd {
        run: run.to_string(),
        outcome: end.outcome.as_str().to_owned(),
        why: text::clipped(&text::line(&why(end, exit, stop)), MAX_REASON),
        exit_code: code_of(exit),
        left: end.left.as_str().to_owned(),
        after: None,
        usage: seen.usage().into(),
        parked: end.park.map(|until| (until.at, until.named)),
        answer: seen.answer().map(str::to_owned),
        totals: TotalsView {
            tokens_in: totals.tokens.map(|tokens| tokens.input),
            tokens_out: totals.tokens.map(|tokens| tokens.output),
            cost: totals.cost_usd,
        },
        dropped: 0,
        survivors: Vec::new(),
        notes: Vec::new(),
        result: None,
    }
}

impl SpooledEnd {
    /// Adds to the reason.
    pub(super) fn adds_why(&mut self, more: &str) {
        let both = format!("{}; {}", self.why, text::line(more));
        self.why = text::clipped(&both, MAX_REASON);
    }
}

fn why(end: &End, exit: Exit, stop: Option<&str>) -> String {
    let told = end.error.as_ref().map(|error| error.text.as_str());
    let told = told.filter(|text| !text.trim().is_empty());
    match end.outcome {
        Outcome::Done => "the agent reported success".to_owned(),
        Outcome::Refused => "tools were refused, and nothing was done".to_owned(),
        Outcome::Stopped | Outcome::Timeout => stop.unwrap_or("it was stopped").to_owned(),
        Outcome::Interrupted => told.map_or_else(|| ended_by(exit), str::to_owned),
        Outcome::Failed | Outcome::Unusable | Outcome::Parked => match (told, stop) {
            (Some(told), _) => told.to_owned(),
            (None, Some(stop)) => stop.to_owned(),
            (None, None) => ended_by(exit),
        },
    }
}

fn ended_by(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("the agent exited with code {code} and no result"),
        Exit::Signal(signal) => format!("the agent was killed by signal {signal}"),
        Exit::Unknown => "the agent and its runner died without a result".to_owned(),
    }
}

use tenure_core::reason::Reason;
use tenure_core::time::Span;
use tenure_service::ActFor;
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};
use crate::standing::lately;

/// Take cut-off sessions off the list that `tenure resume` shows
///
/// They stay in the log and can still be resumed by name.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dismiss claude-k7qd
  tenure dismiss --all               all that were cut off within a day
  tenure dismiss --all --since 7d")]
pub struct Args {
    /// Session to dismiss: handle, id, or a unique part of either
    #[arg(
        id = "cut_off",
        value_name = "SESSION",
        required_unless_present = "all"
    )]
    name: Option<String>,

    /// Dismiss every listed session
    #[arg(long, conflicts_with = "cut_off")]
    all: bool,

    /// How far back to look
    #[arg(long, value_name = "TIME", default_value = "1d", requires = "all")]
    since: Span,

    /// Reason, logged (required when an agent dismisses another session; it cannot dismiss all)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    if args.name.is_some() {
        let act_for = ActFor {
            session: args.name.clone(),
            reason: args.reason.clone(),
        };
        let answer = context.service().dismiss(&act_for)?;
        let text = format!("dismissed {}", answer.value.handle);
        return Ok(Output::new("sessions", &[&answer.value], text).told(&answer));
    }
    let Span(within) = args.since;
    let answer = context
        .service()
        .dismiss_all(within, args.reason.as_ref())?;
    if answer.value.is_empty() {
        let message = format!(
            "nothing to dismiss: no session was cut off in the last {}",
            lately(within)
        );
        let hint = Hint::run("ps", ["-a"], "to list ended sessions");
        let mut failure = CliError::new(Class::Refused, "nothing_to_dismiss", message, hint);
        failure.problem.notices = answer.notices;
        return Err(failure);
    }
    let mut text = Lines::default();
    for session in &answer.value {
        text.line(format!("dismissed {}", session.handle));
    }
    Ok(Output::new("sessions", &answer.value, text).told(&answer))
}

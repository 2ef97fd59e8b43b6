use tenure_core::id::Epoch;
use tenure_core::reason::Reason;
use tenure_service::ReleaseRequest;

use crate::app::App;
use crate::output::{CliError, Outcome, Output};

/// Release an item, or mark it done
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure release issue:acme/web#42
  tenure release '#42' --done          finished: can't be claimed again without --reopen")]
pub struct Args {
    /// Item to release
    #[arg(value_name = "KEY")]
    key: String,

    /// Mark the item as finished
    #[arg(long)]
    done: bool,

    /// Only if you still hold this epoch
    #[arg(long, value_name = "N")]
    epoch: Option<u64>,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = ReleaseRequest {
        key: app.key(&args.key)?,
        epoch: args.epoch.map(Epoch),
        done: args.done,
    };
    let mut context = app.open()?;
    let answer = context
        .service()
        .release(&app.act_for(args.reason.as_ref()), &request)
        .map_err(|failure| CliError::from(failure).of_holder(&request.key))?;
    let word = if args.done { "done" } else { "released" };
    let text = format!("{} {word} (epoch {})", answer.value.key, answer.value.epoch);
    Ok(Output::new("claim", &answer.value, text).told(&answer))
}

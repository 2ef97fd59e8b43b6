use tenure_app::keeper;
use tenure_core::id::Epoch;
use tenure_core::reason::Reason;
use tenure_service::ReleaseRequest;

use crate::app::App;
use crate::output::{CliError, Outcome, Output};
use crate::render::spooled;

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
    let act_for = app.act_for(args.reason.as_ref());
    let released = app.open_until_exit().and_then(|mut context| {
        let released = keeper::release(&mut context, &act_for, &request);
        released.map_err(|problem| CliError::from(problem).of_holder(&request.key))
    });
    let answer = match released {
        Ok(answer) => answer,
        Err(failure) if act_for.session.is_none() => return spooled::release(&request, failure),
        Err(failure) => return Err(failure),
    };
    let word = if args.done { "done" } else { "released" };
    let text = format!("{} {word} (epoch {})", answer.value.key, answer.value.epoch);
    Ok(Output::new("claim", &answer.value, text).told(&answer))
}

use tenure_core::id::Epoch;
use tenure_core::service::GuardRequest;

use crate::app::App;
use crate::output::{Outcome, Shown};

/// Tell whether this session may write: exit 0 yes, 1 free, 3 held by another, 4 no session, 5 lost
///
/// A claim that a parent holds covers its children.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure guard issue:acme/web#42 && git push
  tenure guard '#42' --epoch 7           only if nothing happened since epoch 7 was granted")]
pub struct Args {
    /// The item
    #[arg(value_name = "KEY")]
    key: String,

    /// Only if this is still the epoch
    #[arg(long, value_name = "N")]
    epoch: Option<u64>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = GuardRequest {
        key: app.key(&args.key)?,
        epoch: args.epoch.map(Epoch),
    };
    let mut opened = app.open()?;
    let answer = opened.service().guard(&app.naming(None), &request)?;
    let claim = &answer.value;
    let text = match &claim.via {
        Some(parent) => format!(
            "yes: {} is held by {parent}, a parent of this session (epoch {})",
            claim.key, claim.epoch
        ),
        None => format!(
            "yes: {} is held by this session (epoch {})",
            claim.key, claim.epoch
        ),
    };
    Ok(Shown::new("claim", claim, text).told(&answer))
}

use tenure_core::id::Epoch;
use tenure_core::reason::Reason;
use tenure_service::GuardRequest;

use crate::app::App;
use crate::output::{Outcome, Output};

/// Tell whether this session may write: exit 0 yes, 1 free, 3 held by another, 4 no session, 5 lost
///
/// An epoch that was never granted to this session is 5 too. A claim that a parent holds covers its
/// children. With --lost no key is named: it is refused (5) while a claim that this session lost is another's and it has taken none since; who is no session may pass.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure guard issue:acme/web#42 && git push
  tenure guard '#42' --epoch 7           only if nothing happened since epoch 7 was granted
  tenure guard --lost                    only if no claim was lost; what tenure install git asks")]
pub struct Args {
    /// The item
    #[arg(value_name = "KEY", required_unless_present = "lost")]
    key: Option<String>,

    /// Only if this is still the epoch
    #[arg(long, value_name = "N")]
    epoch: Option<u64>,

    /// Only if this session lost no claim
    #[arg(long, conflicts_with_all = ["key", "epoch"])]
    lost: bool,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let act_for = app.act_for(args.reason.as_ref());
    let Some(key) = &args.key else {
        let mut context = app.open()?;
        let answer = context.service().guard_lost(&act_for)?;
        let text = "yes: this session lost no claim";
        return Ok(Output::new("lost", &[(); 0], text).told(&answer));
    };
    let request = GuardRequest {
        key: app.key(key)?,
        epoch: args.epoch.map(Epoch),
    };
    let mut context = app.open()?;
    let answer = context.service().guard(&act_for, &request)?;
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
    Ok(Output::new("claim", claim, text).told(&answer))
}

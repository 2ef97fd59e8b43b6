use tenure_app::keeper;
use tenure_core::id::Epoch;
use tenure_core::reason::Reason;
use tenure_service::HandoffRequest;

use crate::app::App;
use crate::output::{CliError, Outcome, Output};

/// Hand an item over to another live session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure handoff issue:acme/web#42 --to codex-p4wz --note 'tests are left'")]
pub struct Args {
    /// Item to hand over
    #[arg(value_name = "KEY")]
    key: String,

    /// Session that gets it
    #[arg(long, value_name = "SESSION")]
    to: String,

    /// Note for that session, such as what is left to do
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Only if you still hold this epoch
    #[arg(long, value_name = "N")]
    epoch: Option<u64>,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = HandoffRequest {
        key: app.key(&args.key)?,
        to: args.to.clone(),
        epoch: args.epoch.map(Epoch),
        note: args.note.clone(),
    };
    let mut context = app.open()?;
    let act_for = app.act_for(args.reason.as_ref());
    let answer = keeper::handoff(&mut context, &act_for, &request)
        .map_err(|problem| CliError::from(problem).of_holder(&request.key))?;
    let claim = &answer.value;
    let holder = claim
        .holder
        .as_ref()
        .map_or("", |session| session.handle.as_str());
    let text = format!(
        "handed {} over to {holder} (epoch {})",
        claim.key, claim.epoch
    );
    Ok(Output::new("claim", claim, text).told(&answer))
}

use tenure_core::id::Epoch;
use tenure_core::reason::Reason;
use tenure_service::TakeoverRequest;

use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render;

/// Take an item from the session that holds it; the reason is logged
///
/// This is the only way to take an item from a live session. The holder is notified at its next call, and its
/// guard checks fail. Taking a path also takes the holder's other claims that overlap it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure takeover issue:acme/web#42 --reason 'stuck since yesterday'
  tenure takeover '#42' --from claude-k7qd --reason 'owner is on holiday'")]
pub struct Args {
    /// Item to take over
    #[arg(value_name = "KEY")]
    key: String,

    /// Reason, logged and shown to the holder
    #[arg(long, value_name = "TEXT")]
    reason: Reason,

    /// Only if this session holds it
    #[arg(long, value_name = "SESSION")]
    from: Option<String>,

    /// Only if this is the current epoch
    #[arg(long, value_name = "N", conflicts_with = "from")]
    epoch: Option<u64>,

    /// Note shown to other sessions
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = TakeoverRequest {
        key: app.key(&args.key)?,
        from: args.from.clone(),
        epoch: args.epoch.map(Epoch),
        note: args.note.clone(),
        reason: args.reason.clone(),
    };
    let mut context = app.open()?;
    let answer = context
        .service()
        .takeover(&app.act_for(Some(&args.reason)), &request)?;
    let text = render::grant(&answer.value);
    Ok(Output::new("claim", &answer.value, text).told(&answer))
}

use tenure_core::id::Epoch;
use tenure_core::reason::Reason;
use tenure_service::TakeoverRequest;

use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render;

/// Take an item from whoever holds it, with a reason, on record
///
/// The only way to take from a living session. It is told at its next call, and its guards fail. With a
/// path goes whatever else the same session holds that overlaps it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure takeover issue:acme/web#42 --reason 'stuck since yesterday'
  tenure takeover '#42' --from claude-k7qd --reason 'owner is on holiday'")]
pub struct Args {
    /// The item
    #[arg(value_name = "KEY")]
    key: String,

    /// Why; it is recorded and the holder is told
    #[arg(long, value_name = "TEXT")]
    reason: Reason,

    /// Only if this session holds it
    #[arg(long, value_name = "SESSION")]
    from: Option<String>,

    /// Only if this is its epoch
    #[arg(long, value_name = "N", conflicts_with = "from")]
    epoch: Option<u64>,

    /// What it is taken for; others see it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = TakeoverRequest {
        key: app.key(&args.key)?,
        from: args.from.clone(),
        epoch: args.epoch.map(Epoch),
        note: args.note.clone(),
    };
    let mut context = app.open()?;
    let answer = context
        .service()
        .takeover(&app.act_for(Some(&args.reason)), &request)?;
    let text = render::grant(&answer.value);
    Ok(Output::new("claim", &answer.value, text).told(&answer))
}

use tenure_core::time::Span;
use tenure_elsewhere::wake;
use tenure_host::clock;
use tenure_service::Delivery;
use tenure_views::details;

use crate::app::App;
use crate::child::unfinished;
use crate::output::{Outcome, Output};

/// Send a message to a session
///
/// A live session will see it at its next prompt or tool call (delivered). A session that has ended and can be resumed
/// will see it then (waiting). For a session that cannot be resumed (dead) the message is not stored: exit 1.
///
/// If the setting wake.agents lists its agent, a message from a person starts a turn in an idle session. With --wait,
/// the command waits for the receipt: delivered means that the agent has it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure tell claude-k7qd 'main is frozen until noon'
  tenure tell k7qd 'rebase first' --json | jq -r .delivery
  tenure tell k7qd 'please go on' --wait 1m    delivered, waiting or dead")]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: String,

    /// Text of the message
    #[arg(value_name = "MESSAGE")]
    message: String,

    /// Wait this long at most until the agent has it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    wait: Option<Span>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    wake::check_person(&mut context);
    let answer = context.service().tell(&args.name, &args.message)?;
    let sent = &answer.value;
    let began = clock::instant();
    // Not ended early, however short the wait: the message would start no turn.
    wake::start_turn(&mut context, sent).finish();
    let Some(Span(limit)) = args.wait else {
        return Ok(Output::new("session", &sent.session, details::told(sent))
            .with("delivery", &sent.delivery)
            .told(&answer));
    };
    let left = limit.saturating_sub(began.elapsed());
    let receipt = wake::await_receipt(&mut context, sent, left).map_err(unfinished)?;
    let handle = &receipt.value.session.handle;
    let text = match receipt.value.delivery {
        Delivery::Delivered => format!("delivered: {handle} has it"),
        Delivery::Waiting => format!("waiting: {handle} does not have it yet"),
    };
    Ok(Output::new("session", &receipt.value.session, text)
        .with("delivery", &receipt.value.delivery)
        .told(&receipt))
}

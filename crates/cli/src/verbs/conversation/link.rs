use tenure_core::reason::Reason;
use tenure_service::LinkRequest;

use super::shown;
use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Make an item continue the conversations of another
///
/// The item's own conversations are set aside until it is unlinked. Items that are linked to it move with it. Fails
/// (exit 3) while a run uses a conversation of either.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure conversation link pr:acme/web#9 issue:acme/web#6
  tenure conversation link '!9' '#6'")]
pub struct Args {
    /// Item that continues the other's conversations
    #[arg(value_name = "ITEM")]
    item: String,

    /// Item whose conversations it continues; if that is linked too, the item it is linked to
    #[arg(value_name = "TARGET")]
    target: String,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = LinkRequest {
        item: app.key(&args.item)?,
        target: app.key(&args.target)?,
    };
    let mut context = app.open()?;
    let act_for = app.act_for(args.reason.as_ref());
    let answer = context.service().link_item(&act_for, &request)?;
    let link = &answer.value.link;
    let root = link.root.as_deref().unwrap_or_default();
    let mut text = Lines::from(if answer.value.unchanged {
        format!(
            "{} already continues the conversations of {root}",
            link.item
        )
    } else {
        format!("{} continues the conversations of {root}", link.item)
    });
    if !answer.value.unchanged {
        for moved in &link.moved {
            text.line(format!("  so does {moved}"));
        }
        for own in &link.own {
            text.line(format!("  set aside: {}", shown::name(own)));
        }
    }
    Ok(Output::new("link", link, text).told(&answer))
}

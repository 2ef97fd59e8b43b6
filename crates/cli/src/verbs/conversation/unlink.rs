use tenure_core::reason::Reason;

use super::shown;
use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Give an item its own conversations again
///
/// The conversations that it had before come back. Items that were linked to it stay linked to the other item.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure conversation unlink pr:acme/web#9
  tenure conversation unlink '!9'")]
pub struct Args {
    /// Item that is linked
    #[arg(value_name = "ITEM")]
    item: String,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let item = app.key(&args.item)?;
    let mut context = app.open()?;
    let act_for = app.act_for(args.reason.as_ref());
    let answer = context.service().unlink_item(&act_for, &item)?;
    let link = &answer.value.link;
    let before = link.before.as_deref().unwrap_or_default();
    let mut text = Lines::from(format!(
        "{} no longer continues the conversations of {before}",
        link.item
    ));
    for own in &link.own {
        text.line(format!("  back: {}", shown::name(own)));
    }
    Ok(Output::new("link", link, text).told(&answer))
}

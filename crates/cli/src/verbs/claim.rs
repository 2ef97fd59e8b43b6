use tenure_core::id::RequestId;
use tenure_core::service::ClaimRequest;

use crate::app::App;
use crate::output::{Outcome, Shown};
use crate::render;

/// Take an item: refused while a living session has it, granted at once when its holder is dead
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure claim issue:acme/web#42
  tenure claim '#42' --note 'fix login'          completed from the git remote
  tenure claim wp:041/WP03 --once                refused if this session has it already")]
pub struct Args {
    /// The item, such as issue:acme/web#42, #42 or wp:041/WP03
    #[arg(value_name = "KEY")]
    key: String,

    /// What it is taken for; others see it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Refuse what this session already holds: two subagents of one session are one holder
    #[arg(long)]
    once: bool,

    /// Take up a finished item again
    #[arg(long)]
    reopen: bool,

    /// Your own name for this request: a retry gets the same answer
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,

    /// Why, on record; needed with --session for one that is not one's own
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = ClaimRequest {
        key: app.key(&args.key)?,
        request: args
            .request_id
            .as_deref()
            .map(RequestId::parse)
            .transpose()?,
        once: args.once,
        reopen: args.reopen,
        note: args.note.clone(),
    };
    let mut opened = app.open()?;
    let answer = opened
        .service()
        .claim(&app.naming(args.reason.as_ref()), &request)?;
    let text = render::grant(&answer.value);
    Ok(Shown::new("claim", &answer.value, text).told(&answer))
}

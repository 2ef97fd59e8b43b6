use tenure_core::store::ClaimFilter;
use tenure_core::text;

use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render;

/// List claimed items and their holders
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure claims
  tenure claims --mine
  tenure claims issue:acme/web# --all      every issue of one repository, including free ones")]
pub struct Args {
    /// Only keys with this prefix
    #[arg(value_name = "PREFIX")]
    prefix: Option<String>,

    /// Only items this session holds
    #[arg(long)]
    mine: bool,

    /// Include items that are free or done
    #[arg(long, short)]
    all: bool,

    /// Show at most N items; 0 for all [default: 200, or all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// How many items are shown to people by default.
const MAX_SHOWN: usize = 200;

pub fn run(args: &Args, app: &App) -> Outcome {
    let filter = ClaimFilter {
        free_too: args.all,
        session: None,
        prefix: args.prefix.clone(),
        limit: app.limit(args.limit, MAX_SHOWN),
        ..ClaimFilter::default()
    };
    let act_for = app.act_for(None);
    let own = args.mine || act_for.session.is_some();
    let mut context = app.open()?;
    let answer = context.service().claims(own.then_some(&act_for), &filter)?;
    let mut text = render::claims(&answer.value.items);
    let mut more = "tenure claims".to_owned();
    if let Some(prefix) = &args.prefix {
        more.push_str(&format!(" {}", text::shell(prefix)));
    }
    for (given, flag) in [(args.mine, " --mine"), (args.all, " --all")] {
        more.push_str(if given { flag } else { "" });
    }
    let listed = &answer.value;
    let command = format!("{more} --limit 0");
    render::rest(&mut text, listed.more, listed.more_is_least, &command);
    Ok(Output::new("claims", &answer.value.items, text)
        .with("more", &answer.value.more)
        .told(&answer))
}

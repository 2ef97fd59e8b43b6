use tenure_core::store::ClaimFilter;

use crate::app::App;
use crate::output::{Outcome, Shown};
use crate::render;

/// List items and who holds them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure claims
  tenure claims --mine
  tenure claims issue:acme/web# --all      every issue of one repository, free ones too")]
pub struct Args {
    /// Only keys that begin with this
    #[arg(value_name = "PREFIX")]
    prefix: Option<String>,

    /// Only what this session holds
    #[arg(long)]
    mine: bool,

    /// Also items that nobody holds
    #[arg(long, short)]
    all: bool,

    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 200)]
    limit: usize,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let filter = ClaimFilter {
        free_too: args.all,
        session: None,
        prefix: args.prefix.clone(),
        home: None,
        limit: args.limit,
        ..ClaimFilter::default()
    };
    let naming = app.naming(None);
    let own = args.mine || naming.session.is_some();
    let mut opened = app.open()?;
    let answer = opened.service().claims(own.then_some(&naming), &filter)?;
    let text = render::claims(&answer.value);
    Ok(Shown::new("claims", &answer.value, text).told(&answer))
}

use tenure_core::store::DeliveryFilter;

use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render::job as shown;

/// List webhook deliveries, newest first: what each was and what became of it
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only deliveries about this item
    #[arg(long, value_name = "ITEM")]
    item: Option<String>,

    /// Show at most N deliveries; 0 for all [default: 50, or all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

const MAX_SHOWN: usize = 50;

pub fn run(args: &Args, app: &App) -> Outcome {
    let filter = DeliveryFilter {
        item: args.item.as_deref().map(|item| app.key(item)).transpose()?,
        limit: app.limit(args.limit, MAX_SHOWN),
        ..DeliveryFilter::default()
    };
    let mut context = app.open()?;
    let answer = context.service().list_deliveries(&filter)?;
    let text = shown::deliveries(&answer.value);
    Ok(Output::new("deliveries", &answer.value, text).told(&answer))
}

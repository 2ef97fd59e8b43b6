use super::update::{More, update};
use crate::app::App;
use crate::output::Outcome;

/// Set whether this session is actively working on its focus: active or inactive
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission drive active
  tenure mission drive active --strict      fails while another session drives the same focus
  tenure mission drive inactive")]
pub struct Args {
    /// active or inactive
    #[arg(value_name = "DRIVE")]
    drive: String,

    #[command(flatten)]
    more: More,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    update("drive", &args.drive, &args.more, app)
}

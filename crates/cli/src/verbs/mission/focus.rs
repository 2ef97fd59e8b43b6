use super::update::{More, update};
use crate::app::App;
use crate::output::Outcome;

/// Set what this session works on: wp:ID, step:ID or none
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission focus wp:WP03
  tenure mission focus step:42 --strict     fails while another session drives it
  tenure mission focus none")]
pub struct Args {
    /// wp:ID, step:ID or none
    #[arg(value_name = "FOCUS")]
    focus: String,

    #[command(flatten)]
    more: More,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    update("focus", &args.focus, &args.more, app)
}

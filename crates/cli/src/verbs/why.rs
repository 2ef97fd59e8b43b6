use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render;

/// Explain why an item is held or free, and what you can do
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure why issue:acme/web#42")]
pub struct Args {
    /// Item to explain
    #[arg(value_name = "KEY")]
    key: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let key = app.key(&args.key)?;
    let mut context = app.open()?;
    let answer = context.service().why(&key)?;
    let text = render::why(&answer.value);
    Ok(Output::new("claim", &answer.value.claim, text)
        .with("why", &answer.value.why)
        .told(&answer))
}

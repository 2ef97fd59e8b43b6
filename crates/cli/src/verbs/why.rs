use crate::app::App;
use crate::output::{CliError, Outcome, Output};
use crate::render;
use crate::render::spooled;

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
    let asked = app.open_until_exit().and_then(|mut context| {
        let asked = context.service().why(&key);
        asked.map_err(CliError::from)
    });
    let answer = match asked {
        Ok(answer) => answer,
        Err(failure) => return spooled::why(&key, failure),
    };
    let text = render::why(&answer.value);
    Ok(Output::new("claim", &answer.value.claim, text)
        .with("why", &answer.value.why)
        .told(&answer))
}

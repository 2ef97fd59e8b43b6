use tenure_runs::{RunFiles, provider, settle};

use super::shown;
use crate::app::App;
use crate::output::{Outcome, Output};

/// Show one run: how it began, what it used and how it ended
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run id, or the beginning of one
    #[arg(value_name = "RUN")]
    run: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    settle::all(&mut context)?;
    let mut answer = context.service().show_run(&args.run)?;
    provider::look([&mut answer.value]);
    let mut text = shown::one(&answer.value);
    let log = answer.value.log.as_ref();
    let patch = log.map(|log| RunFiles::at(log).patch());
    let patch = patch.filter(|patch| patch.exists());
    if let Some(patch) = &patch {
        text.line(format!("  {:<13} {}", "patch", patch.display()));
    }
    Ok(Output::new("run", &answer.value, text)
        .with("patch", &patch)
        .told(&answer))
}

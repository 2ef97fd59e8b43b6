use std::path::PathBuf;

use tenure_doctor::backup;

use crate::app::App;
use crate::output::Outcome;
use crate::render::written;

/// Write all rows of the store to a new file, as text
///
/// One JSON value a line: for each table its name and columns, then its rows. `tenure import tenure FILE` fills an empty
/// store with it, in a file or on a server. `tenure store backup` is faster, and can be restored.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure export all.jsonl
  tenure export all.jsonl --json | jq .exported.rows")]
pub struct Args {
    /// The new file
    file: PathBuf,
}

pub fn run(args: &Args, _: &App) -> Outcome {
    Ok(written("exported", &backup::export(&args.file)?))
}

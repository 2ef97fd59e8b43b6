use std::path::PathBuf;

use tenure_doctor::backup;

use crate::app::App;
use crate::output::Outcome;
use crate::render::written;

/// Write a backup of the store to a new file
///
/// The file is an SQLite database with all rows, as they were at one moment; nobody waits for it. `tenure store restore`
/// puts it in the place of a store in a file or on a server.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure store backup ~/tenure-backup.db
  tenure store backup /backups/tenure-$(date +%F).db --json | jq .backup.rows")]
pub struct Args {
    /// The new file
    file: PathBuf,
}

pub fn run(args: &Args, _: &App) -> Outcome {
    Ok(written("backup", &backup::back_up(&args.file)?))
}

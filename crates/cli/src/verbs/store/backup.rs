use std::path::PathBuf;

use tenure_app::backup::{self, BackupView};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

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

/// What was written, of a backup or an export.
pub fn written(name: &'static str, made: &BackupView) -> Output {
    let mut text = Lines::default();
    text.line(format!(
        "wrote {} rows of {} to {}",
        made.rows, made.store, made.file
    ));
    Output::new(name, made, text)
}

use std::path::PathBuf;

use tenure_app::backup;

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
    let backup = backup::back_up(&args.file)?;
    let mut text = Lines::default();
    text.line(format!(
        "wrote {} rows of {} to {}",
        backup.rows, backup.store, backup.file
    ));
    Ok(Output::new("backup", &backup, text))
}

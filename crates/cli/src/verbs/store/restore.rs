use std::path::PathBuf;

use tenure_doctor::backup::{self, KEPT_COPIES};
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};
use crate::person;

/// Put a backup in the place of the store
///
/// The backup is checked first and stays as it is. The store as it was is kept: in a file beside it, or for a store on a
/// server in the state directory, as a backup. Agents may run meanwhile: they find the old store or the new one. What
/// happened after the backup was made is gone; every epoch is raised, so no number is granted twice, and open sessions
/// get a new lease. A damaged store is replaced, and its files are kept. At most 3 such copies stay, the newest.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure store restore ~/tenure-backup.db
  tenure store restore --yes ~/tenure-backup.db --json | jq -r .restored.kept")]
pub struct Args {
    /// The backup
    file: PathBuf,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub fn run(args: &Args, _: &App) -> Outcome {
    let question = "What was stored after this backup was made will be gone. Restore it?";
    if !args.yes && !person::asked(question) {
        let message = "nothing was restored: it takes the place of everything that is stored now, \
                       so a person confirms it at a terminal";
        let hint = Hint::run(
            "store",
            ["restore", "--yes", "FILE"],
            "to restore it without a question",
        );
        return Err(CliError::new(
            Class::Refused,
            "not_confirmed",
            message.to_owned(),
            hint,
        ));
    }
    let restored = backup::restore(&args.file)?;
    let mut text = Lines::default();
    text.line(format!(
        "restored {} rows from {} into {}",
        restored.rows, restored.file, restored.store
    ));
    if let Some(kept) = &restored.kept {
        let what = if restored.was_damaged {
            "the damaged store"
        } else {
            "the store from before"
        };
        text.line(format!(
            "{what} is kept in {kept} (at most {KEPT_COPIES} such copies are kept)"
        ));
    }
    Ok(Output::new("restored", &restored, text))
}

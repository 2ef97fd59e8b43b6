//! `store`: the store itself.

pub(super) mod backup;
mod copy;
pub(super) mod migrate;
mod restore;
mod shown;
mod status;
mod views;

use super::table;
use crate::app::{App, Changes};
use crate::output::Outcome;

/// Show the store, back it up or restore it, create or migrate one on a PostgreSQL server, or move it
///
/// The store is a file in the state directory unless TENURE_STORE (or `store` in config.toml) names another one: a
/// path, or postgres://USER@HOST/DATABASE for several machines. A store on a server is never created or migrated by
/// connecting to it; `tenure store migrate` does that.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure store status
  TENURE_STORE='postgres://ann@db.example/work?sslmode=verify-full&sslrootcert=/etc/ca.pem' tenure store migrate
  tenure store copy ~/.local/state/tenure/tenure.db 'postgres://ann@db.example/work?sslmode=require'
  tenure store backup ~/tenure-backup.db
  tenure store status --json | jq -r .store.warnings[]")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

table::verbs! { enum Act {
    Status(status) changes never, shown 1;
    Migrate(migrate) changes never, shown 2;
    Copy(copy) changes never, shown 3;
    Backup(backup) changes never, shown 4;
    Restore(restore) changes never, shown 5;
    Views(views) changes never, shown 6;
} }

impl Args {
    pub fn changes(&self) -> Changes {
        self.act.changes()
    }

    /// Whether it speaks to stores on servers whatever the settings name.
    pub fn names_stores(&self) -> bool {
        matches!(self.act, Act::Copy(_))
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    args.act.run(app)
}

use tenure_app::location::argued_place;
use tenure_app::store_admin;
use tenure_service::answer::{Class, Hint};

use super::shown::shown;
use crate::app::App;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};
use crate::person;

/// Copy the store to another place, which is used instead from then on
///
/// FROM and TO are paths, or postgres:// URLs without a password. Sessions, claims, history and their ids stay the
/// same; every epoch is raised, and open sessions get a new lease. TO must be empty; a schema that is missing on its
/// server is created. FROM is kept, but marked: every command that still uses it fails (exit 8) and names TO. If the
/// command is interrupted, run it again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure store copy ~/.local/state/tenure/tenure.db 'postgres://ann@db.example/work?sslmode=require'
  tenure store copy 'postgres://ann@old.example/work' 'postgres://ann@new.example/work'
  PGPASSFILE=~/.pgpass tenure store copy 'postgres://ann@db.example/work' /srv/tenure/tenure.db")]
pub struct Args {
    /// The store that is used now
    from: String,
    /// The empty store that takes its place
    to: String,

    /// Do not ask before a store that a team uses is switched off
    #[arg(long, short)]
    yes: bool,
}

pub fn run(args: &Args, _: &App) -> Outcome {
    let place = argued_place(&args.from)?;
    if place.server().is_some() && !args.yes {
        let shown = place.shown();
        let question = format!(
            "Every machine that uses {shown} must change to the copy. Copy it and switch it off?"
        );
        if !person::asked(&question) {
            let message = format!(
                "nothing was copied: {shown} is used by several machines, and would be switched off"
            );
            let hint = Hint::run(
                "store",
                ["copy", "--yes", "FROM", "TO"],
                "to copy it without a question",
            );
            return Err(CliError::new(
                Class::Refused,
                "not_confirmed",
                message,
                hint,
            ));
        }
    }
    let store = store_admin::copy(&args.from, &args.to)?;
    let mut text = Lines::default();
    let from = store.copied_from.as_deref().unwrap_or_default();
    text.line(match store.copied_rows {
        Some(0) | None => format!("finished the copy of {from}"),
        Some(rows) => format!("copied {rows} rows from {from}, which is no longer in use"),
    });
    text.extend(&shown(&store));
    text.line("set TENURE_STORE, or store in config.toml, to this place on every machine");
    Ok(Output::new("store", &store, text))
}

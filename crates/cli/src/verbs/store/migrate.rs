use tenure_app::store_admin::{self, StoreView};

use super::shown::shown;
use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Create the store on its server, or update its schema
///
/// Needs a role that may create tables. Everybody else needs USAGE on the schema, and SELECT, INSERT, UPDATE and
/// DELETE on its tables. A store in a file is created and updated when it is used.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let store = store_admin::migrate()?;
    let text = done(&store);
    Ok(Output::new("store", &store, text))
}

fn done(store: &StoreView) -> Lines {
    let mut text = Lines::default();
    let is_newer = store.schema > store.supported;
    text.line(match (store.migrated_from, store.schema) {
        (None, _) => "nothing to do: a store in a file is updated when it is used".to_owned(),
        (Some(0), _) => "created".to_owned(),
        (Some(from), Some(to)) if from < to => format!("updated from schema {from} to {to}"),
        (Some(_), Some(_)) if is_newer => {
            "nothing was changed: its schema is newer than this tenure supports".to_owned()
        }
        (Some(_), _) => "nothing to do: its schema is up to date".to_owned(),
    });
    text.extend(&shown(store));
    text
}

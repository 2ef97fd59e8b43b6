use tenure_app::store_admin;

use super::shown::shown;
use crate::app::App;
use crate::output::{Outcome, Output};

/// Show where the store is, its schema, and unsafe settings of its server
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let store = store_admin::status()?;
    Ok(Output::new("store", &store, shown(&store)))
}

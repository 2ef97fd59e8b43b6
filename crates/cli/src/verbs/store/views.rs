use tenure_app::store_admin;

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Print the views that dashboards and other programs may read
///
/// sessions, claims, claim_history, events and runs: their columns stay, and are only added to. For a store in a file
/// these are statements to run first on a connection. On a server `tenure store migrate` has made them, in the schema
/// that is named here. docs/views.md lists the columns.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  { tenure store views; echo 'SELECT handle, key FROM claims;'; } | sqlite3 -readonly tenure.db
  tenure store views --json | jq -r .views.schema")]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let views = store_admin::views()?;
    let mut text = Lines::default();
    for line in views.sql.iter().flat_map(|sql| sql.lines()) {
        text.line(line);
    }
    if let Some(schema) = &views.schema {
        text.line(format!("the views are in schema {schema} on the server"));
    }
    Ok(Output::new("views", &views, text))
}

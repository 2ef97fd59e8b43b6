use tenure_host::clock;

use super::{scopes, user};
use crate::app::App;
use crate::output::{Cell, Outcome, Output, ago, table};

/// List the tokens, without their text
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let answer = context.service().tokens(&user())?;
    let now = clock::wall();
    let rows: Vec<Vec<Cell>> = answer
        .value
        .iter()
        .map(|token| {
            let cells = [
                token.name.clone(),
                scopes(token),
                ago(token.created_at, now),
            ];
            cells.map(Cell::plain).to_vec()
        })
        .collect();
    let text = if rows.is_empty() {
        "no tokens".into()
    } else {
        table(&["TOKEN", "SCOPES", "MADE"], &rows)
    };
    Ok(Output::new("api_tokens", &answer.value, text).told(&answer))
}

use tenure_app::location::settings_and_store;

use crate::app::App;
use crate::output::{Cell, Outcome, Output, table};

/// List the channels for notifications
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let channels = settings_and_store()?.0.notify;
    let row = |channel: &tenure_app::settings::notify::NotifyChannel| {
        let on: Vec<&str> = channel.on.iter().map(|reason| reason.as_str()).collect();
        let titles = if channel.titles { "yes" } else { "no" };
        let kind = channel.kind.as_str();
        [channel.name.as_str(), kind, &on.join(", "), titles]
            .map(Cell::plain)
            .to_vec()
    };
    let rows: Vec<Vec<Cell>> = channels.iter().map(row).collect();
    let text = if rows.is_empty() {
        "no channel is configured; `tenure notify --help` has an example".into()
    } else {
        table(&["NAME", "CHANNEL", "ON", "TITLES"], &rows)
    };
    Ok(Output::new("channels", &channels, text))
}

//! Whether tenure's status line is wanted: by the flag, or because a person at the terminal agrees.

use super::Args;
use crate::app::App;
use crate::hooks_setup::place::InstallTarget;
use crate::hooks_setup::plan::read;
use crate::output::CliError;
use crate::person::{asked, is_at_terminal};
use tenure_agents::install::StatusLine;
use tenure_service::answer::{Class, Hint};

pub fn is_wanted(args: &Args, app: &App) -> Result<bool, CliError> {
    if args.statusline {
        return check_drawn(&args.agents).map(|()| true);
    }
    let shows = !app.style.json && !app.style.quiet;
    if !shows || !args.changes() || args.plugin.is_some() || !is_at_terminal() {
        return Ok(false);
    }
    let scope = args.whose.scope()?;
    let is_meant = |name: &str| args.agents.is_empty() || args.agents.iter().any(|one| one == name);
    let places = InstallTarget::all(&scope, is_meant)?;
    let found = |place: &&InstallTarget| place.found || !args.agents.is_empty();
    let bare: Vec<&InstallTarget> = places
        .iter()
        .filter(found)
        .filter(|place| has_none(place))
        .collect();
    Ok(bare.first().is_some_and(|place| {
        asked(&format!(
            "Add tenure's status line (session, claims, warnings) to {}?",
            place.agent
        ))
    }))
}

/// Refuses the flag for an agent at whose prompt nothing can be shown.
fn check_drawn(agents: &[String]) -> Result<(), CliError> {
    let draws = |name: &String| {
        let row = tenure_agents::adapter(name);
        row.is_some_and(|row| row.has_status_line)
    };
    if agents.iter().all(draws) {
        return Ok(());
    }
    let rows = tenure_agents::ADAPTERS.iter();
    let names: Vec<&str> = rows
        .filter(|row| row.has_status_line)
        .map(|row| row.name)
        .collect();
    let names = names.join(", ");
    let hint = Hint::run(
        "install",
        [names.as_str(), "--statusline"],
        "to show the status line",
    );
    let message = format!("--statusline works only with {names}");
    Err(CliError::new(Class::Usage, "usage", message, hint))
}

/// Whether the agent can show a status line and none is set. Errors in the file are reported when it is edited.
fn has_none(place: &InstallTarget) -> bool {
    let Some(format) = place.settings.hooks() else {
        return false;
    };
    let text = read(&place.file()).map(|file| file.text().unwrap_or_default().to_owned());
    let whose = text.map(|text| format.status_line(&text));
    matches!(whose, Ok(Ok(Some(StatusLine::Absent))))
}

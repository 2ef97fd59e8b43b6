use tenure_app::location::settings_and_store;
use tenure_app::place::worktree_here;
use tenure_runs::skill::Skills;

use crate::app::App;
use crate::output::{Cell, Outcome, Output, table};

/// List the skills available here
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let (settings, _) = settings_and_store()?;
    let worktree = worktree_here();
    let skills = Skills::of(&settings, worktree.as_ref())?.list()?;
    let rows: Vec<Vec<Cell>> = skills
        .iter()
        .map(|skill| {
            let texts = skill.variants.join(", ");
            [&skill.name, &texts, &skill.file].map(Cell::plain).to_vec()
        })
        .collect();
    let text = if rows.is_empty() {
        "no skills".into()
    } else {
        table(&["SKILL", "TEXTS", "FILE"], &rows)
    };
    Ok(Output::new("skills", &skills, text))
}

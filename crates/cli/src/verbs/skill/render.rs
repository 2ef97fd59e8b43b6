use serde_json::json;
use tenure_app::location::settings_and_store;
use tenure_app::place::worktree_here;
use tenure_core::skill::{SkillName, TurnKind};
use tenure_runs::skill::{Skills, variables};
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output, warn};

/// Render a skill as a prompt, without running anything
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Skill
    #[arg(value_name = "NAME")]
    name: SkillName,

    /// Set a variable of the template
    #[arg(long = "var", value_name = "K=V")]
    variables: Vec<String>,

    /// Use the text for a conversation that is resumed
    #[arg(long)]
    delta: bool,

    /// Use the text for a turn that was cut off
    #[arg(long = "continue", conflicts_with = "delta")]
    goes_on: bool,
}

impl Args {
    fn turn(&self) -> TurnKind {
        if self.goes_on {
            TurnKind::Continue
        } else if self.delta {
            TurnKind::Resume
        } else {
            TurnKind::Fresh
        }
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let variables = variables(&args.variables)?;
    let (settings, _) = settings_and_store()?;
    let worktree = worktree_here();
    let skills = Skills::of(&settings, worktree.as_ref())?;
    let skill = skills.find(&args.name, args.turn())?.ok_or_else(|| {
        let message = format!(
            "skill {} has no text for a turn that was cut off",
            args.name
        );
        let hint = Hint::run("skill", ["list"], "to list the texts of each skill");
        CliError::new(Class::NotFound, "not_found", message, hint)
    })?;
    let text = skill.render(&variables)?;
    if !app.style.json && !app.style.quiet {
        warn(format!("note: rendered from {}", skill.file));
        if skill.stands_in {
            warn(format!(
                "note: skill {} has no delta; its whole text is used",
                skill.name
            ));
        }
    }
    let part = json!({
        "name": skill.name.as_str(),
        "from": skill.from,
        "file": skill.file,
        "variant": skill.variant.word(),
        "stands_in": skill.stands_in,
        "text": text,
    });
    Ok(Output::new("skill", &part, Lines::of_file(&text)))
}

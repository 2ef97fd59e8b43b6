use serde_json::Value;

use super::install::{NAMES, Place, Plan, State, Whose, add, dry, state_dir};
use crate::app::App;
use crate::output::{Outcome, Shown};

/// Take tenure's hooks out of the settings of coding agents again
///
/// Only what tenure put there goes; everything else stays byte for byte as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure uninstall claude
  tenure uninstall --all --dry-run      show what would change, and change nothing
  tenure uninstall gemini --project .   in the settings of this project")]
pub struct Args {
    /// claude, codex, gemini, opencode
    #[arg(
        value_name = "AGENT",
        value_parser = clap::builder::PossibleValuesParser::new(NAMES),
        hide_possible_values = true,
        required_unless_present = "all"
    )]
    agents: Vec<String>,

    /// Every agent
    #[arg(long, conflicts_with = "agents")]
    all: bool,

    #[command(flatten)]
    whose: Whose,

    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: &Args, _: &App) -> Outcome {
    let (scope, state_dir) = (args.whose.scope()?, state_dir()?);
    let is_meant = |name: &&str| args.all || args.agents.iter().any(|agent| agent == name);
    let plans: Vec<Plan> = NAMES
        .into_iter()
        .filter(is_meant)
        .map(|agent| Plan::uninstall(Place::of(agent, &scope)?, &state_dir))
        .collect::<Result<_, _>>()?;
    if args.dry_run {
        return Ok(dry(&plans));
    }
    for plan in &plans {
        plan.apply()?;
    }
    let mut text = String::new();
    for plan in &plans {
        let word = match plan.changes.is_empty() {
            true => "nothing of tenure's was there",
            false => "uninstalled",
        };
        add(&mut text, &format!("{}: {word}", plan.place.agent));
        for line in plan.done() {
            add(&mut text, &format!("  {line}"));
        }
    }
    let left = |plan: &Plan| match plan.place.found {
        true => plan.json(State::NotInstalled),
        false => plan.json(State::NotFound),
    };
    let agents: Vec<Value> = plans.iter().map(left).collect();
    Ok(Shown::new("agents", &agents, text))
}

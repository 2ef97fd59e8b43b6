//! The roster, once or kept up to date.

use std::io::IsTerminal;
use std::time::Duration;

use serde_json::json;
use tenure_app::open::Context;
use tenure_app::watch::{Next, on_change};
use tenure_core::mission::MissionId;
use tenure_core::notice::Pending;
use tenure_host::clock;
use tenure_service::{Answer, Roster};

use super::shown::{roster, warn};
use crate::app::App;
use crate::child::exit_of_watching;
use crate::output::{CLEAR, CliError, Outcome, Output, put};

/// Show who takes part: role, focus, drive, live or not, last activity, collisions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission status
  tenure mission status --mission 041-login --watch
  tenure mission status --json | jq '.participants[].focus'")]
pub struct Args {
    /// The mission, if not the active one
    #[arg(long, value_name = "MISSION")]
    mission: Option<String>,

    /// Keep showing it as it changes, until interrupted
    #[arg(long, short)]
    watch: bool,
}

/// How often the words for times are brought up to date on a terminal.
const TICK: Duration = Duration::from_secs(10);
/// How often it is shown at most while much happens.
const REST: Duration = Duration::from_millis(100);

pub fn run(args: &Args, app: &App) -> Outcome {
    let mission = args.mission.as_deref().map(MissionId::parse).transpose()?;
    let mut context = app.open()?;
    if args.watch {
        return watch(&mut context, mission.as_ref(), app);
    }
    let answer = look(&mut context, mission.as_ref(), app)?;
    let warnings = warnings(&answer.value);
    warn(app, &warnings);
    let text = roster(&answer.value, app, clock::wall());
    Ok(Output::new("mission", &answer.value.mission, text)
        .with("participants", &answer.value.participants)
        .with("pointer", &answer.value.pointer)
        .with("faults", &answer.value.faults)
        .with("warnings", &warnings)
        .told(&answer))
}

fn look(
    context: &mut Context,
    mission: Option<&MissionId>,
    app: &App,
) -> Result<Answer<Roster>, CliError> {
    let here = context.here();
    Ok(context
        .service()
        .roster(&app.act_for(None), &here, mission)?)
}

/// What is wrong with what is stored, and pointers that are not followed.
fn warnings(found: &Roster) -> Vec<String> {
    let faults = found.faults.iter().chain(&found.pointer.passed_over);
    faults.map(ToString::to_string).collect()
}

/// Shows the roster whenever it changed, until a signal comes or nobody reads it any more.
fn watch(context: &mut Context, mission: Option<&MissionId>, app: &App) -> Outcome {
    let on_screen = !app.style.json && std::io::stdout().is_terminal();
    let mut before = String::new();
    let mut told = Pending::default();
    let ended = on_change::<(), CliError>(context, REST, |context| {
        let answer = look(context, mission, app)?;
        let found = &answer.value;
        let text = if app.style.json {
            json!({
                "v": 1,
                "mission": found.mission,
                "participants": found.participants,
                "warnings": warnings(found),
            })
            .to_string()
        } else {
            roster(found, app, clock::wall()).as_str().to_owned()
        };
        if !app.style.json && answer.notices != told {
            let channel = app.style.tell(&answer.notices);
            app.delivered(&answer.notices, channel);
            told = answer.notices.clone();
        }
        if text != before {
            let clear = if on_screen { CLEAR } else { "" };
            if !put(&format!("{clear}{text}"))? {
                return Ok(Next::Done(()));
            }
            before = text;
        }
        Ok(Next::Again {
            processes: answer.value.processes,
            limit: if on_screen { TICK } else { TICK * 3 },
        })
    })?;
    Ok(Output::silent(exit_of_watching(&ended)))
}

//! The roster, once or kept up to date.

use std::io::IsTerminal;
use std::time::Duration;

use tenure_app::open::Context;
use tenure_app::watch::{Next, WatchEnd, on_change};
use tenure_core::mission::MissionId;
use tenure_host::clock;
use tenure_service::{Answer, Roster};

use super::shown::{roster, warn};
use crate::app::App;
use crate::child::exit_of_watching;
use crate::exit::Exit;
use crate::output::{CLEAR, CliError, Outcome, Output, put};

/// Show the participants: role, focus, drive, state, last activity, collisions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission status
  tenure mission status --mission 041-login --watch
  tenure mission status --json | jq '.participants[].focus'")]
pub struct Args {
    /// Mission [default: the active one]
    #[arg(long, value_name = "MISSION")]
    mission: Option<String>,

    /// Redraw on every change until interrupted
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
    warn(app, &warnings(&answer.value));
    Ok(shown(&answer, app))
}

fn shown(answer: &Answer<Roster>, app: &App) -> Output {
    let found = &answer.value;
    let text = roster(found, app, clock::wall());
    Output::new("mission", &found.mission, text)
        .with("participants", &found.participants)
        .with("pointer", &found.pointer)
        .with("faults", &found.faults)
        .with("warnings", &warnings(found))
        .told(answer)
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

/// Shows the roster after each change, until a signal comes or the reader leaves.
fn watch(context: &mut Context, mission: Option<&MissionId>, app: &App) -> Outcome {
    let on_screen = !app.style.json && std::io::stdout().is_terminal();
    let mut before = None;
    let ended = on_change::<Exit, CliError>(context, REST, |context| {
        let answer = look(context, mission, app)?;
        let shown = shown(&answer, app);
        // What is shown: the words for times change by themselves.
        let (json, text) = (shown.json.clone(), shown.text.clone());
        let face = if app.style.json { Ok(json) } else { Err(text) };
        let now = (face, shown.notices.clone());
        if before.as_ref() != Some(&now) {
            if on_screen {
                put(CLEAR)?;
            }
            let exit = app.show(&shown);
            if exit != Exit::DONE {
                return Ok(Next::Done(exit));
            }
            before = Some(now);
        }
        Ok(Next::Again {
            processes: answer.value.processes,
            limit: if on_screen { TICK } else { TICK * 3 },
        })
    })?;
    Ok(Output::silent(match ended {
        WatchEnd::Done(exit) => exit,
        WatchEnd::Signal(_) => exit_of_watching(&ended),
    }))
}

use std::sync::Arc;

use serde_json::json;
use tenure_app::dispatch::replay::{Replayed, replay};

use super::source::Source;
use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Do again what a delivery asks for, as if the forge had just sent it
///
/// FILE holds the JSON body of a delivery, or its headers, an empty line and the body. DELIVERY is the number of one
/// that arrived here (`tenure queue deliveries`). The signature is not checked, and no listener is needed. Everything
/// else is as for a delivery that arrives now: the forge is asked for permissions if it has a token, the rules as they
/// are now decide, and the delivery is stored under a new number. A dispatcher runs the job.
///
/// A delivery that was done already is done again: you are told what came of it the first time. A closed issue is
/// closed again, a reset resets again. Exits with 0 if something was done, 1 if nothing was.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch replay 12
  tenure dispatch replay delivery.json --event issues
  tenure dispatch replay delivery.txt --forge home --json | jq -r '.replayed.jobs[].id'

See first what it would do: tenure dispatch explain 12")]
pub struct Args {
    #[command(flatten)]
    source: Source,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let config = args.source.settings.load()?.config;
    let given = args.source.read(app, &config)?;
    let replayed = replay(app.open()?, Arc::new(config), given)?;
    let accepted = &replayed.accepted;
    let is_work = ["queued", "joined", "acted"].contains(&accepted.delivery.verdict.as_str());
    let exit = if is_work { Exit::DONE } else { Exit::REFUSED };
    let jobs: Vec<_> = accepted.jobs.iter().map(|queued| &queued.job).collect();
    let before = replayed.before.as_ref().map(|(delivery, job)| {
        let run = job.as_ref().and_then(|job| job.run.as_ref());
        json!({"delivery": delivery, "run": run})
    });
    let view = json!({
        "delivery": accepted.delivery,
        "jobs": jobs,
        "before": before,
        "worked": replayed.is_worked,
    });
    Ok(Output::new("replayed", &view, text(&replayed)).exit(exit))
}

fn text(replayed: &Replayed) -> Lines {
    let mut text = Lines::default();
    if let Some((delivery, job)) = &replayed.before {
        let run = job.as_ref().and_then(|job| job.run.as_deref());
        let came = match (run, &delivery.job) {
            (Some(run), _) => format!("its run is {run}"),
            (None, Some(job)) => format!("its job {job} has not run yet"),
            (None, None) => delivery.why.clone(),
        };
        text.line(format!(
            "note: delivery {} did this before; {came}",
            delivery.id
        ));
    }
    let accepted = &replayed.accepted;
    let delivery = &accepted.delivery;
    let about = delivery.item.as_ref().or(delivery.repo.as_ref());
    text.line(format!(
        "{} of {} is stored as delivery {}",
        delivery.event,
        about.map_or("-", String::as_str),
        delivery.id
    ));
    text.line(format!("{}: {}", delivery.verdict, delivery.why));
    for queued in &accepted.jobs {
        let job = &queued.job;
        let how = if queued.joined { "joined" } else { "is" };
        text.line(format!(
            "{} on {} {how} job {}",
            job.agent, job.item, job.id
        ));
    }
    if !accepted.jobs.is_empty() && !replayed.is_worked {
        text.line("no dispatcher is running; run `tenure dispatch` to run the job");
    }
    text
}

use std::sync::Arc;
use tenure_cli::verbs::dispatch::ReplayArgs;

use serde_json::json;
use tenure_dispatch::replay::{Replayed, replay};

use super::settings_file::load;
use super::source::read;
use tenure_cli::app::App;
use tenure_cli::exit::Exit;
use tenure_cli::lines::Lines;
use tenure_cli::output::{Outcome, Output};

pub fn run(args: &ReplayArgs, app: &App) -> Outcome {
    let config = load(&args.source.settings)?.config;
    let given = read(&args.source, app, &config)?;
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

use tenure_cli::verbs::dispatch::ExplainArgs;
use tenure_core::dispatch::No;
use tenure_core::forge::ForgeEvent;
use tenure_dispatch::{Explained, explain};

use super::settings_file::load;
use super::source::read;
use tenure_cli::app::App;
use tenure_cli::exit::Exit;
use tenure_cli::lines::Lines;
use tenure_cli::output::{Outcome, Output, ago};

pub fn run(args: &ExplainArgs, app: &App) -> Outcome {
    let config = load(&args.source.settings)?.config;
    let given = read(&args.source, app, &config)?;
    let explained = explain(&config, given);
    let exit = if explained.decision.acts() {
        Exit::DONE
    } else {
        Exit::REFUSED
    };
    Ok(Output::new("explained", &explained.view(), text(&explained)).exit(exit))
}

fn text(explained: &Explained) -> Lines {
    let mut text = Lines::default();
    let Some(event) = &explained.event else {
        text.line(format!(
            "an event of forge {} that starts nothing",
            explained.forge
        ));
        return text;
    };
    text.line(told(event, &explained.forge));
    if let Some(stored) = &explained.stored {
        let when = ago(stored.received_at, tenure_host::clock::wall());
        let job = stored.job.as_deref();
        let job = job.map_or_else(String::new, |job| format!(" (job {job})"));
        text.line(format!(
            "delivery {} arrived {when} and was {}{job}: {}",
            stored.id, stored.verdict, stored.why
        ));
        text.line("by the rules as they are now:");
    }
    let decision = &explained.decision;
    if let Some(cleanup) = &decision.cleanup {
        text.line(format!(
            "queued jobs of {} would be cancelled",
            cleanup.item
        ));
        for rule in &cleanup.stops {
            text.line(format!("a live run of rule {rule} would be stopped"));
        }
    }
    if let Some(item) = &decision.reopened {
        text.line(format!(
            "{item} is open again: its conversation would come back"
        ));
    }
    if let Some(link) = &decision.link {
        text.line(format!(
            "{} would continue the conversation of {}",
            link.item, link.target
        ));
    }
    if let Some(item) = &decision.reset {
        text.line(format!("the conversations of {item} would be dropped"));
    }
    if let Some(halt) = &decision.halt {
        text.line(format!(
            "the runs of {} would be stopped, and its waiting jobs cancelled",
            halt.item
        ));
    }
    for verdict in &decision.verdicts {
        match &verdict.no {
            None => text.line(format!("rule {} matches", verdict.rule)),
            Some(no) if explained.is_asked && is_known_there(no) => {
                text.line(format!(
                    "rule {} depends on what the forge says",
                    verdict.rule
                ));
            }
            Some(no) => text.line(format!("rule {} does not match: {no}", verdict.rule)),
        }
    }
    for run in &decision.runs {
        let how = match run.trust {
            tenure_core::dispatch::Trust::Permitted => "",
            tenure_core::dispatch::Trust::Outside => ", under its wrap",
        };
        text.line(format!("{} would run for {}{how}", run.agent, run.item));
    }
    let mut verdicts = decision.verdicts.iter();
    let depends = explained.is_asked
        && verdicts.any(|verdict| verdict.no.as_ref().is_some_and(is_known_there));
    if let Some(no) = decision.no.as_ref().filter(|_| !depends) {
        text.line(format!("no run: {no}"));
    }
    if explained.is_asked && decision.runs.is_empty() {
        text.line("note: the forge was not asked for permissions, which could change the answer");
    }
    text
}

/// Whether the forge would be asked about this, and knows it.
fn is_known_there(no: &No) -> bool {
    ["association_unknown", "unknown_code"].contains(&no.kind())
}

fn told(event: &ForgeEvent, forge: &str) -> String {
    let about = event
        .item
        .as_ref()
        .map_or(event.repo.as_str(), |item| item.as_str());
    format!(
        "{} of {about} by {} (forge {forge})",
        event.kind.as_str(),
        event.actor.name()
    )
}

use tenure_app::keeper::{KeeperReport, KeeperStatus, report};
use tenure_core::time::Span;
use tenure_host::clock;

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output, count};

/// Show the keeper of this machine and those of the others
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let report = report()?;
    let text = text(&report);
    Ok(Output::new("keeper", &report, text))
}

fn text(report: &KeeperReport) -> Lines {
    let mut text = Lines::default();
    if !report.needed {
        text.line("this store is a file on this machine and needs no keeper");
        return text;
    }
    match &report.local {
        Some(keeper) => local(&mut text, keeper),
        None => text.line("no keeper runs here; the next command or hook that needs one starts it"),
    }
    for keeper in &report.keepers {
        let age = Span(keeper.last_seen_at.age_at(clock::wall()));
        let state = if keeper.fresh {
            "reported"
        } else {
            "silent, last reported"
        };
        text.line(format!(
            "  {}  uid {}, pid {}, tenure {}, {state} {age} ago",
            keeper.host, keeper.uid, keeper.pid, keeper.version
        ));
    }
    let local = report.local.as_ref();
    let said = local.and_then(|keeper| keeper.away_why.as_ref());
    if let Some(why) = &report.store_problem
        && said != Some(why)
    {
        text.line(why);
    }
    text
}

fn local(text: &mut Lines, keeper: &KeeperStatus) {
    text.line(format!(
        "keeper {} (pid {}, tenure {}) watches {} with {}",
        keeper.id,
        keeper.pid,
        keeper.version,
        count(keeper.sessions as u64, "session"),
        count(keeper.claims as u64, "claim"),
    ));
    let ago = |at: tenure_core::time::Timestamp| Span(at.age_at(clock::wall()));
    match (keeper.away_since, keeper.renewed_at) {
        (Some(since), _) => {
            let why = keeper.away_why.as_deref().unwrap_or("no reason is known");
            text.line(format!(
                "the store has not answered for {}: {why}",
                ago(since)
            ));
        }
        (None, Some(at)) => text.line(format!("the store answered {} ago", ago(at))),
        (None, None) => text.line("the store has not answered yet"),
    }
}

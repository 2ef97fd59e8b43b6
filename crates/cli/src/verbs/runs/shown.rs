//! Runs as people read them.

use std::time::Duration;

use tenure_core::text;
use tenure_core::time::Span;
use tenure_service::view::RunView;

use crate::lines::Lines;
use crate::output::{Cell, ago, table};

pub fn line(run: &RunView) -> Lines {
    let state = run.shown_state();
    let state = match &run.why {
        // A reason may say it itself: "stopped with Ctrl-C".
        Some(why) if why.starts_with(&state) => why.clone(),
        Some(why) => format!("{state}: {why}"),
        None => state,
    };
    Lines::from(format!(
        "{}  {} on {}  {state}",
        run.id,
        run.worker(),
        run.item
    ))
}

pub fn list(runs: &[RunView]) -> Lines {
    if runs.is_empty() {
        return "no runs".into();
    }
    let now = tenure_host::clock::wall();
    let rows: Vec<Vec<Cell>> = runs
        .iter()
        .map(|run| {
            [
                run.id.clone(),
                run.shown_state(),
                run.worker(),
                run.item.clone(),
                ago(run.created_at, now),
                took(run),
                cost(run).unwrap_or_else(|| "-".to_owned()),
                text::name(&run.dir).into_owned(),
            ]
            .map(Cell::plain)
            .to_vec()
        })
        .collect();
    table(
        &[
            "RUN",
            "STATE",
            "AGENT",
            "ITEM",
            "STARTED",
            "TOOK",
            "COST",
            "DIRECTORY",
        ],
        &rows,
    )
}

fn took(run: &RunView) -> String {
    let Some(begun) = run.begun_at else {
        return "-".to_owned();
    };
    let until = run.ended_at.unwrap_or_else(tenure_host::clock::wall);
    let seconds = begun.age_at(until).as_secs();
    Span(Duration::from_secs(seconds)).to_string()
}

fn cost(run: &RunView) -> Option<String> {
    run.usage.cost.map(|cost| format!("${cost:.2}"))
}

/// One run with all that is known.
pub fn one(run: &RunView) -> Lines {
    let now = tenure_host::clock::wall();
    let mut lines = line(run);
    let mut row = |name: &str, value: String| lines.line(format!("  {name:<13} {value}"));
    row("where", text::name(&run.dir).into_owned());
    if run.root != run.item {
        row("continues", run.root.clone());
    }
    if let Some(session) = &run.session {
        row("session", session.clone());
    }
    if let Some(pid) = run.pid {
        row("agent", format!("pid {pid}"));
    }
    if let Some(native_id) = &run.native_id {
        row("conversation", native_id.clone());
    }
    if let Some(before) = run
        .before
        .as_ref()
        .filter(|before| Some(*before) != run.native_id.as_ref())
    {
        let how = if run.fell_back {
            " (the agent no longer has it)"
        } else {
            ""
        };
        row("before", format!("{before}{how}"));
    }
    row("started", ago(run.created_at, now));
    row("took", took(run));
    if let Some(code) = run.exit_code {
        row("exit code", code.to_string());
    }
    if let Some(wait) = &run.waiting {
        let since = ago(wait.since, now);
        row("waiting", format!("since {since}: {}", wait.why));
    }
    if let Some(until) = run.parked_until {
        row("parked until", until.to_string());
    }
    if let Some(stop) = &run.stop_asked {
        let by = stop
            .by
            .as_ref()
            .map_or_else(String::new, |by| format!(" by {by}"));
        row(
            "stop",
            format!("asked {}{by}: {}", ago(stop.at, now), stop.why),
        );
    }
    let usage = &run.usage;
    if let Some(turns) = usage.turns {
        row("turns", turns.to_string());
    }
    if let (Some(input), Some(output)) = (usage.tokens_in, usage.tokens_out) {
        row("tokens", format!("{input} in, {output} out"));
    }
    if let Some(cost) = cost(run) {
        row("cost", cost);
    }
    if let Some(skill) = &run.skill {
        row("skill", skill.clone());
    }
    if let Some(goes_on) = &run.goes_on {
        row("continues", goes_on.clone());
    }
    if let Some(log) = &run.log {
        row("log", log.clone());
    }
    lines
}

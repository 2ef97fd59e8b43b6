use std::time::Duration;
use tenure_cli::verbs::dispatch::StopArgs;

use serde_json::json;
use tenure_core::time::Span;
use tenure_dispatch::stop::{DispatchStop, Runs, stop_all};

use tenure_cli::app::App;
use tenure_cli::child::signal_exit;
use tenure_cli::lines::Lines;
use tenure_cli::output::{Outcome, Output, count};

pub fn run(args: &StopArgs, app: &App) -> Outcome {
    let mut context = app.open()?;
    let drain = args.drain.map_or(Duration::ZERO, |Span(drain)| drain);
    let runs = if args.runs {
        Runs::Stop(drain)
    } else {
        Runs::GoOn
    };
    let why = match &args.reason {
        Some(reason) => reason.to_string(),
        None => "the dispatcher was stopped".to_owned(),
    };
    let stopped = stop_all(&mut context, runs, &why)?;
    let dispatchers: Vec<_> = stopped
        .dispatchers
        .iter()
        .map(|one| json!({"pid": one.process.pid, "address": one.address, "config": one.config}))
        .collect();
    let view = json!({
        "dispatchers": dispatchers,
        "finished": stopped.finished,
        "runs": stopped.runs,
        "survivors": stopped.survivors,
    });
    let output = Output::new("stopped", &view, text(args, &stopped));
    Ok(match stopped.signal {
        Some(signal) => output.exit(signal_exit(signal)),
        None => output,
    })
}

fn text(args: &StopArgs, stopped: &DispatchStop) -> Lines {
    let mut text = Lines::default();
    for one in &stopped.dispatchers {
        let listened = one.address.map(|address| format!(", {address}"));
        text.line(format!(
            "stopped the dispatcher (pid {}{})",
            one.process.pid,
            listened.unwrap_or_default()
        ));
    }
    if stopped.dispatchers.is_empty() {
        text.line("no dispatcher was running");
    }
    if !args.runs {
        text.line("its runs continue; run `tenure runs` to see them");
        return text;
    }
    if stopped.signal.is_some() {
        text.line("interrupted; what still runs continues (see `tenure runs`)");
        return text;
    }
    if stopped.finished > 0 {
        text.line(format!(
            "{} finished",
            count(stopped.finished as u64, "run")
        ));
    }
    for run in &stopped.runs {
        text.line(format!(
            "{}  {} on {}  {}",
            run.id,
            run.agent,
            run.item,
            run.shown_state()
        ));
    }
    if stopped.runs.is_empty() {
        text.line("no run was stopped");
    }
    for survivor in &stopped.survivors {
        text.line(format!(
            "  still running: pid {} ({})",
            survivor.pid, survivor.command
        ));
    }
    text
}

use std::time::Duration;

use serde_json::json;
use tenure_app::dispatch::stop::{Runs, Stopped, stop_all};
use tenure_core::reason::Reason;
use tenure_core::time::Span;

use crate::app::App;
use crate::child::signal_exit;
use crate::lines::Lines;
use crate::output::{Outcome, Output, count};

/// Stop the dispatcher; its runs continue unless --runs is given
///
/// The dispatcher of this state directory gets SIGTERM: it takes no further jobs and no further webhooks, and ends.
/// Runs go on, and the next dispatcher finds them. With --runs, the runs that the queue started are stopped as with
/// `tenure runs stop`, after the time that --drain gives them to finish. Each ends as `stopped`; `tenure runs resume`
/// continues it in its conversation. Jobs that wait stay in the queue. Runs that people started are left alone.
/// Exits with 4 if no dispatcher is running, unless --runs is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch stop
  tenure dispatch stop --runs
  tenure dispatch stop --runs --drain 10m --reason 'the machine reboots'")]
pub struct Args {
    /// Also stop the runs that the queue started
    #[arg(long)]
    runs: bool,

    /// Let runs finish for this long first, such as 10m
    #[arg(long, value_name = "TIME", requires = "runs")]
    drain: Option<Span>,

    /// Reason, logged with the runs
    #[arg(long, value_name = "TEXT", requires = "runs")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
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

fn text(args: &Args, stopped: &Stopped) -> Lines {
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

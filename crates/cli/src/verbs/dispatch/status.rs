use tenure_app::dispatch::status::{DispatchStatus, DispatcherView, status};
use tenure_core::text;

use crate::app::App;
use crate::jobs;
use crate::lines::Lines;
use crate::output::{Outcome, Output, ago};

/// Show which dispatchers run, what arrives at them, and what waits
///
/// For each dispatcher of this state directory: where it listens, the last delivery of each forge, how many were
/// refused and why, and forges that do not answer. For the queue: how many jobs wait and run, which are parked and why,
/// and when the next one is tried again. The counts begin anew when a dispatcher starts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch status
  tenure dispatch status --json | jq .dispatch_status.queue")]
pub struct Args {}

pub fn run(_: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let found = status(&mut context)?;
    Ok(Output::new("dispatch_status", &found, lines(&found)))
}

fn lines(found: &DispatchStatus) -> Lines {
    let mut text = Lines::default();
    if found.dispatchers.is_empty() {
        text.line("no dispatcher is running; run `tenure dispatch` to start one");
    }
    for one in &found.dispatchers {
        dispatcher(one, &mut text);
    }
    let queue = &found.queue;
    text.line(format!(
        "queue: {} queued, {} running, {} parked, {} to publish",
        queue.queued, queue.running, queue.parked, queue.unpublished
    ));
    for job in &found.waiting {
        text.extend(&jobs::line(job));
    }
    for delivery in &found.deliveries {
        text.line(jobs::waiting(delivery));
    }
    if let Some(at) = found.next_retry {
        text.line(format!("the next job that waits is tried at {at}"));
    }
    text
}

fn dispatcher(one: &DispatcherView, lines: &mut Lines) {
    let address = one.address.as_deref();
    let address = address.map_or_else(
        || "receives no webhooks".to_owned(),
        |address| format!("listens at {address}"),
    );
    lines.line(format!("dispatcher (pid {}) {address}", one.pid));
    if let Some(doubt) = &one.doubt {
        lines.line(format!("  may not be alive: {}", text::line(doubt)));
    }
    let now = tenure_host::clock::wall();
    for endpoint in &one.endpoints {
        let last = match endpoint.accepted_at {
            Some(at) => format!("last delivery {}", ago(at, now)),
            None => "no delivery yet".to_owned(),
        };
        let refused = endpoint.refused.iter();
        let refused: Vec<String> = refused
            .map(|(cause, count)| format!("{count} {}", cause.as_str()))
            .collect();
        let refused = if refused.is_empty() {
            String::new()
        } else {
            format!(", refused: {}", refused.join(", "))
        };
        lines.line(format!(
            "  forge {}: {last}, {} accepted{refused}",
            endpoint.name, endpoint.accepted
        ));
        if let Some(why) = &endpoint.refusing {
            lines.line(format!("  forge {}: {why}", endpoint.name));
        }
    }
    for forge in &one.failing_forges {
        lines.line(format!(
            "  forge {}: {}",
            forge.name,
            text::line(&forge.why)
        ));
    }
}

use tenure_cli::verbs::dispatch::StatusArgs;
use tenure_core::text;
use tenure_dispatch::status::{DispatchStatus, DispatcherView, status};

use tenure_cli::app::App;
use tenure_cli::lines::Lines;
use tenure_cli::output::{Outcome, Output, ago};
use tenure_cli::render::job;

pub fn run(_: &StatusArgs, app: &App) -> Outcome {
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
        text.extend(&job::line(job));
    }
    for delivery in &found.deliveries {
        text.line(job::waiting(delivery));
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

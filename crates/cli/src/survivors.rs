//! What a session that is over left running, as people read it.

use tenure_core::claim::TakenFrom;
use tenure_core::process::Survivor;
use tenure_core::text;
use tenure_core::time::Timestamp;

use crate::lines::Lines;
use crate::standing::age;

/// `pid 4711, started 3m ago: make test`.
pub fn named(survivor: &Survivor, now: Timestamp) -> String {
    let since = survivor.since.map(|since| match age(since, now).as_str() {
        "now" => ", started just now".to_owned(),
        age => format!(", started {age} ago"),
    });
    let (pid, since) = (survivor.pid, since.unwrap_or_default());
    format!("pid {pid}{since}: {}", text::line(&survivor.command))
}

/// Tells the next holder of a claim.
pub fn tell(lines: &mut Lines, previous: &TakenFrom) {
    for survivor in &previous.survivors {
        let (pid, command) = (survivor.pid, text::line(&survivor.command));
        lines.line(format!(
            "  its pid {pid} is still running and may write: {command}"
        ));
    }
    if let Some(why) = &previous.survivors_unsure {
        lines.line(format!("  some of its processes may still run: {why}"));
    }
}

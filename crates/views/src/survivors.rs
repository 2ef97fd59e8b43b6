//! What a session that is over left running, as people read it.

use tenure_app::survivors::EndedSurvivors;
use tenure_core::claim::TakenFrom;
use tenure_core::process::Survivor;
use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_host::clock;

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

/// What became of the processes that a session left running.
pub fn ended(done: &EndedSurvivors) -> Lines {
    let left = &done.left.value;
    let (handle, now) = (&left.session.handle, clock::wall());
    let mut text = Lines::default();
    if done.ended.is_empty() && left.found.is_empty() {
        text.line(format!("{handle} left nothing running"));
    }
    for (one, by) in &done.ended {
        let how = match by.signal() {
            Some(signal) => format!("ended by SIG{signal}"),
            None => "exited".to_owned(),
        };
        text.line(format!("{how}: {}", named(one, now)));
    }
    for one in &left.found {
        let why = if one.shown.can_end {
            "it could not be ended"
        } else {
            "not ended, because nothing in its environment names the last process of this session"
        };
        text.line(format!("still runs: {}", named(&one.shown, now)));
        text.line(format!("  {why}"));
    }
    if let Some(doubt) = &left.doubt {
        text.line(format!("more processes may still run: {doubt}"));
    }
    text
}

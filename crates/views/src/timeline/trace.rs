//! The timeline for trace viewers (Perfetto, chrome://tracing): the Trace Event Format, one track per item.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tenure_core::time::Timestamp;
use tenure_service::view::{HoldView, TimelineView};

use super::ending;

/// The whole file. Times are in microseconds.
pub fn trace(view: &TimelineView) -> Value {
    let mut tracks: BTreeMap<&str, usize> = BTreeMap::new();
    for hold in &view.holds {
        let next = tracks.len() + 1;
        tracks.entry(&hold.key).or_insert(next);
    }
    let name = |what: &str, track: usize, name: &str| json!({"ph": "M", "name": what, "pid": 1, "tid": track, "args": {"name": name}});
    let mut events = vec![name("process_name", 0, "tenure claims")];
    events.extend(
        tracks
            .iter()
            .map(|(key, track)| name("thread_name", *track, key)),
    );
    for hold in &view.holds {
        let track = tracks[hold.key.as_str()];
        events.push(bar(
            hold,
            track,
            hold.from,
            hold.to.unwrap_or(view.now),
            view.now,
        ));
        if let Some(since) = hold.suspect_since {
            let phase = json!({
                "ph": "X", "name": "suspect", "cat": "suspect", "pid": 1, "tid": track,
                "ts": micros(since), "dur": length(since, view.now),
            });
            events.push(phase);
        }
    }
    json!({"displayTimeUnit": "ms", "traceEvents": events})
}

fn bar(hold: &HoldView, track: usize, from: Timestamp, to: Timestamp, now: Timestamp) -> Value {
    json!({
        "ph": "X",
        "name": format!("{} (epoch {})", hold.session.handle, hold.epoch),
        "cat": hold.ended_by.unwrap_or("held"),
        "pid": 1,
        "tid": track,
        "ts": micros(from),
        "dur": length(from, to),
        "args": {
            "key": hold.key,
            "epoch": hold.epoch,
            "session": hold.session.handle,
            "session_id": hold.session.id,
            "end": ending(hold, now),
            "note": hold.note,
        },
    })
}

fn micros(at: Timestamp) -> i64 {
    at.0.saturating_mul(1000)
}

/// An end before the beginning, which a clock that was set back makes, has no length.
fn length(from: Timestamp, to: Timestamp) -> i64 {
    micros(to).saturating_sub(micros(from)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::sample::{hold, view};

    #[test]
    fn every_hold_is_a_slice_on_the_track_of_its_item() {
        let mut suspect = hold(None);
        suspect.key = "wp:2".into();
        suspect.suspect_since = Some(Timestamp(80_000));
        let trace = trace(&view(vec![hold(Some("done")), hold(None), suspect]));
        let events = trace["traceEvents"].as_array().expect("a list");
        let slices: Vec<_> = events.iter().filter(|one| one["ph"] == "X").collect();
        let of = |field: &str| {
            slices
                .iter()
                .map(|one| one[field].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("tid"), [1, 1, 2, 2]);
        assert_eq!(of("cat"), ["done", "held", "held", "suspect"]);
        assert_eq!(of("dur"), [60_000_000, 90_000_000, 90_000_000, 10_000_000]);
        let names = events.iter().filter(|one| one["name"] == "thread_name");
        let names: Vec<_> = names.map(|one| one["args"]["name"].clone()).collect();
        assert_eq!(names, ["wp:1", "wp:2"]);
    }
}

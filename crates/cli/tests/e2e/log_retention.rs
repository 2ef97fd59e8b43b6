//! The log of a store that has been in use for long.

use rusqlite::Connection;
use serde_json::json;

use crate::env;
use crate::support::line::{register, run, take};

const YEAR_MS: i64 = 365 * 24 * 3600 * 1000;

#[test]
fn old_events_go_with_the_next_command_and_a_reader_that_missed_some_is_told() {
    let env = env();
    let ann = env.agent("ann");
    register(&ann, "ann", "");
    take(&ann, "wp:1");
    take(&ann, "wp:2");
    let before = run(&ann, 0, "log --limit 0");
    let before = before["events"].as_array().cloned().unwrap_or_default();
    let store = Connection::open(env.state().join("tenure.db")).expect("it is there");
    store
        .execute("UPDATE events SET at = at - ?1", [YEAR_MS])
        .expect("it is ours");
    drop(store);
    take(&ann, "wp:3");
    // The claim itself was recorded after its command had removed what it could.
    let newest = before.last().expect("events")["cursor"]
        .as_u64()
        .unwrap_or_default();
    let after = format!("log --after {}", newest - 1);
    let late = run(&ann, 0, &after);
    let oldest = late["events"][0]["cursor"].clone();
    assert!(oldest.as_u64() > Some(newest), "{late}");
    assert_eq!(late["oldest"], oldest, "{late}");
    assert_eq!(late["events"][0]["key"], "wp:3", "{late}");
    let shown = ann.tenure(&["log", "--after", "1"]).ok();
    let told = format!("events before cursor {oldest} are no longer stored");
    assert!(shown.stdout.contains(&told), "{shown}");
    let whole = run(&ann, 0, "log");
    assert_eq!(whole.get("oldest"), None, "{whole}");
    assert_eq!(whole["events"], json!([late["events"][0].clone()]));
}

//! `tenure timeline`: the files that it writes.

use serde_json::Value;

use crate::support::line::{crew, handle, run, take};

/// Every claim is a slice on the track of its item, from the grant to its end.
#[test]
fn a_trace_has_every_claim_on_the_track_of_its_item() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    run(&ann, 0, "release wp:1 --done");
    take(&ann, "wp:2");
    run(&bob, 0, "takeover wp:2 --reason stuck");
    let file = env.dir().join("trace.json");
    let line = format!("timeline --trace {}", file.display());
    let answer = run(&ann, 0, &line);
    assert_eq!(answer["written"]["claims"], 3, "{answer}");
    assert_eq!(answer["written"]["trace"], file.display().to_string());

    let written = std::fs::read_to_string(&file).expect("it was written");
    let trace: Value = serde_json::from_str(&written).expect("it is JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let track = |key: &str| {
        let mut named = events.iter().filter(|one| one["name"] == "thread_name");
        let found = named.find(|one| one["args"]["name"] == key);
        found.expect("a track of the item")["tid"].clone()
    };
    let mut slices: Vec<(Value, Value, Value)> = events
        .iter()
        .filter(|one| one["ph"] == "X")
        .inspect(|one| assert!(one["ts"].as_i64() > Some(0) && one["dur"].is_i64(), "{one}"))
        .map(|one| (one["tid"].clone(), one["name"].clone(), one["cat"].clone()))
        .collect();
    slices.sort_by_key(|(track, name, _)| (track.as_i64(), name.to_string()));
    let (anns, bobs) = (handle(&ann), handle(&bob));
    let slice = |key: &str, who: &str, epoch: u64, how: &str| {
        let name = format!("{who} (epoch {epoch})");
        (track(key), Value::from(name), Value::from(how))
    };
    let mut expected = vec![
        slice("wp:1", &anns, 1, "done"),
        slice("wp:2", &anns, 1, "taken"),
        slice("wp:2", &bobs, 2, "held"),
    ];
    expected.sort_by_key(|(track, name, _)| (track.as_i64(), name.to_string()));
    assert_eq!(slices, expected, "{trace:#}");

    // Only what was asked for.
    run(&ann, 0, &format!("{line} --key wp:1"));
    let written = std::fs::read_to_string(&file).expect("it was written");
    assert!(!written.contains("wp:2"), "{written}");

    let nowhere = env.dir().join("none/trace.json");
    let refused = run(&ann, 1, &format!("timeline --trace {}", nowhere.display()));
    assert_eq!(refused["error"]["kind"], "not_written", "{refused}");
}

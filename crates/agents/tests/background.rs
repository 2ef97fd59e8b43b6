//! The processes of an agent's background service, as they were captured: only sessions are agents.

#![allow(clippy::disallowed_methods)]

use std::path::Path;

use serde_json::Value;
use tenure_core::agent::{is_spare, recognise};
use tenure_core::process::ProcessAppearance;

#[test]
fn the_sessions_of_claudes_service_are_agents_and_the_rest_is_not() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/background/claude-2.1.325/processes.json");
    let text = std::fs::read_to_string(file).expect("it was captured");
    let processes: Vec<Value> = serde_json::from_str(&text).expect("it is JSON");
    let mut sessions = 0;
    for process in &processes {
        let role = process["role"].as_str().expect("each has a role");
        let words = process["argv"].as_array().expect("each has arguments");
        let word = |word: &Value| word.as_str().expect("they are text").to_owned();
        let looks = ProcessAppearance {
            exe: word(&process["exe"]),
            argv: words.iter().map(word).collect(),
            comm: word(&process["comm"]),
        };
        let known = recognise(&looks);
        let waits = known.is_some_and(|spec| is_spare(spec, &looks));
        let is_session = known.is_some() && (!waits || process["in_registry"] == true);
        assert_eq!(is_session, role.starts_with("session"), "{role}");
        assert_eq!(is_session, process["in_registry"] == true, "{role}");
        sessions += usize::from(is_session);
    }
    assert_eq!((sessions, processes.len()), (2, 7));
}

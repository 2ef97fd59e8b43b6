//! Acting for another session: one rule for every verb.

use crate::env;
use crate::support::answer::{ask, asked_by_nobody, refused, register, text};

/// Nothing of these can be seen.
const BLANKS: [&str; 5] = ["", " ", "\t\n", "\u{200B}", "\u{3164}\u{2800}"];

#[test]
fn a_reason_that_shows_nothing_is_refused_by_every_verb() {
    let env = env();
    let (me, other) = (env.agent("claude"), env.agent("codex"));
    register(&me, &[]);
    let theirs = register(&other, &[]);
    let handle = text(&theirs, "/session/handle");
    ask(&other, &["claim", "wp:1"]);
    let acts: [&[&str]; 16] = [
        &["claim", "wp:2", "--session", handle],
        &["claim", "wp:2", "--session", handle, "--wait", "1ms"],
        &["claim", "wp:1"],
        &["release", "wp:1", "--session", handle],
        &["handoff", "wp:1", "--to", "claude", "--session", handle],
        &["takeover", "wp:1"],
        &["guard", "wp:1", "--session", handle],
        &["renew", "--for", "1h"],
        &["end", "--session", handle],
        &["meta", "set", "a", "b", "--session", handle],
        &["meta", "unset", "a", "--session", handle],
        &["mission", "join", "m1", "--role", "r", "--session", handle],
        &["mission", "leave", "m1", "--session", handle],
        &["transcript", "append", handle],
        &["register", "--parent", handle],
        &["adopt", "1"],
    ];
    let before = asked_by_nobody(&env, &["log"])["cursor"].clone();
    for act in acts {
        for blank in BLANKS {
            let error = refused(&me, 2, &[act, &["--reason", blank]].concat());
            assert_eq!(error["kind"], "usage", "{act:?} {blank:?}: {error}");
            assert!(
                error["message"].as_str().unwrap().contains("reason"),
                "{error}"
            );
        }
    }
    let long = "x".repeat(1_001);
    refused(&me, 2, &["takeover", "wp:1", "--reason", &long]);
    let after = asked_by_nobody(&env, &["log"])["cursor"].clone();
    assert_eq!(before, after, "nothing was done");
}

//! What becomes of a claim that nobody waits for any more, and of what nobody reads.

use serde_json::json;
use tenure_testkit::poll;

use super::{Client, SOON, env, json_of, session, text, waiters};

#[test]
fn a_claim_that_was_cancelled_leaves_the_line_and_can_be_made_again() {
    let env = env();
    let ((ann, _), (bob, handle)) = (session(&env, "ann"), session(&env, "bob"));
    ann.tenure(&["claim", "wp:1"]).ok();
    let mut client = Client::new(&env, &bob);
    client.waits(&env);
    let params = json!({"requestId": client.asked});
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    client.send(&message.to_string());
    poll(SOON, "it left the line", || {
        (waiters(&env) == 0).then_some(())
    });
    client.waits(&env);
    ann.tenure(&["release", "wp:1"]).ok();
    let granted = client.receive();
    assert_eq!(granted["id"], client.asked);
    let claim = &granted["result"]["structuredContent"]["claim"];
    assert_eq!(claim["epoch"], 2, "{granted:#}");
    let why = json_of(&ann, &["why", "wp:1"]);
    assert_eq!(why["claim"]["holder"]["handle"], handle, "{why:#}");
}

#[test]
fn a_claim_that_waits_when_the_input_ends_is_not_granted() {
    let env = env();
    let ((ann, _), (bob, _)) = (session(&env, "ann"), session(&env, "bob"));
    ann.tenure(&["claim", "wp:1"]).ok();
    let mut client = Client::new(&env, &bob);
    client.waits(&env);
    client.input = None;
    let answer = client.receive();
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["kind"], "interrupted", "{answer:#}");
    assert_eq!(waiters(&env), 0);
    ann.tenure(&["release", "wp:1"]).ok();
    client.is_gone();
    let why = json_of(&ann, &["why", "wp:1"]);
    assert_eq!(why["claim"]["state"], "free", "{why:#}");
    assert_eq!(why["claim"]["epoch"], 1, "{why:#}");
}

#[test]
fn a_claim_of_something_free_is_granted_although_the_input_ended() {
    let env = env();
    let (ann, handle) = session(&env, "ann");
    let mut client = Client::new(&env, &ann);
    let arguments = json!({"keys": ["wp:1"], "wait_seconds": 30});
    client.request(
        "tools/call",
        &json!({"name": "claim", "arguments": arguments}),
    );
    client.input = None;
    let answer = client.receive();
    let claim = &answer["result"]["structuredContent"]["claim"];
    assert_eq!(claim["holder"]["handle"], handle, "{answer:#}");
}

#[test]
fn reading_a_resource_tells_no_message() {
    let env = env();
    let ((ann, _), (bob, handle)) = (session(&env, "ann"), session(&env, "bob"));
    let mut client = Client::new(&env, &bob);
    ann.tenure(&["tell", &handle, "rebase first"]).ok();
    for uri in ["tenure://sessions", "tenure://claims"] {
        let read = client.ask("resources/read", &json!({"uri": uri}));
        let body = text(&read["result"]["contents"][0]["text"]);
        assert!(!body.contains("rebase first"), "{body}");
    }
    let status = client.call("status", json!({}));
    assert_eq!(status["notices"].as_array().unwrap().len(), 1, "{status:#}");
}

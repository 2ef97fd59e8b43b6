//! Which session calls.

use serde_json::{Value, json};
use tenure_testkit::Agent;

use super::{Client, env, session, text};

/// A session in a conversation of a process that hosts several; its handle.
fn hosted(host: &Agent, agent: &str, id: &str) -> String {
    let pid = host.pid().to_string();
    let words = ["register", "--agent", agent, "--hosted", "--pid", &pid];
    let words = [&words[..], &["--native-id", id, "--json"]].concat();
    let answer = host.tenure(&words).ok().json();
    text(&answer["session"]["handle"])
}

/// The kind of the error in a result.
fn kind(result: &Value) -> &Value {
    assert_eq!(result["isError"], true, "{result:#}");
    &result["structuredContent"]["error"]["kind"]
}

#[test]
fn a_process_that_hosts_several_sessions_says_which_one_calls() {
    let env = env();
    let host = env.agent("opencode");
    let (one, two) = (
        hosted(&host, "opencode", "ses_1"),
        hosted(&host, "opencode", "ses_2"),
    );
    let (_other, stranger) = session(&env, "ann");
    let mut client = Client::new(&env, &host);
    for (tool, arguments) in [
        ("claim", json!({"keys": ["wp:1"]})),
        ("tell", json!({"to": stranger, "message": "hello"})),
        ("claim", json!({"keys": ["wp:1"], "session": stranger})),
    ] {
        let refused = client.fails("ambiguous", tool, arguments);
        let line = text(&refused["content"][0]["text"]);
        assert!(line.contains(&one) && line.contains(&two), "{line}");
        assert!(line.contains("the argument session"), "{line}");
    }
    let by_meta = |client: &mut Client, meta: Value| {
        let answer = client.call_with("status", json!({}), meta);
        text(&answer["structuredContent"]["status"]["me"]["handle"])
    };
    assert_eq!(by_meta(&mut client, json!({"sessionId": "ses_1"})), one);
    assert_eq!(
        by_meta(&mut client, json!({"x": {"thread_id": "ses_2"}})),
        two
    );
    let claimed = client.call("claim", json!({"keys": ["wp:1"], "session": two}));
    assert_eq!(claimed["claim"]["holder"]["handle"], two);
    let (ann, own) = session(&env, "bob");
    let mut alone = Client::new(&env, &ann);
    alone.fails("own_session_only", "status", json!({"session": stranger}));
    let me = alone.call("status", json!({"session": own}));
    assert_eq!(me["status"]["me"]["handle"], own);
}

#[test]
fn the_argument_does_not_make_one_session_of_a_host_act_as_another() {
    let env = env();
    let host = env.agent("opencode");
    let (one, two) = (
        hosted(&host, "opencode", "ses_1"),
        hosted(&host, "opencode", "ses_2"),
    );
    let mut client = Client::new(&env, &host);
    let mut claim = |key: &str, session: &str| {
        let arguments = json!({"keys": [key], "session": session});
        client.call_with("claim", arguments, json!({"sessionId": "ses_1"}))
    };
    assert_eq!(kind(&claim("wp:1", &two)), "own_session_only");
    let own = claim("wp:2", &one);
    let holder = &own["structuredContent"]["claim"]["holder"];
    assert_eq!(holder["handle"], one, "{own:#}");
    let held = env.tenure(&["claims", "--json"]).ok().json();
    assert_eq!(held["claims"].as_array().unwrap().len(), 1, "{held:#}");
}

#[test]
fn a_request_of_another_conversation_is_not_that_of_the_only_session() {
    let env = env();
    let host = env.agent("opencode");
    let one = hosted(&host, "opencode", "ses_1");
    let mut client = Client::new(&env, &host);
    let mut claim = |id: &str, session: Option<&str>| {
        let arguments = json!({"keys": ["wp:1"], "session": session});
        client.call_with("claim", arguments, json!({"sessionId": id}))
    };
    assert_eq!(kind(&claim("ses_9", None)), "no_session");
    assert_eq!(kind(&claim("ses_9", Some(&one))), "no_session");
    let own = claim("ses_1", None);
    let holder = &own["structuredContent"]["claim"]["holder"];
    assert_eq!(holder["handle"], one, "{own:#}");
}

#[test]
fn an_agent_that_tenure_does_not_know_by_its_program_says_which_session_calls_too() {
    let env = env();
    let host = env.agent("ann");
    let (one, two) = (hosted(&host, "ann", "a1"), hosted(&host, "ann", "a2"));
    let own = ["whoami", "--session", &one, "--json"];
    let token = text(&host.tenure(&own).ok().json()["resolved"]["token"]);
    // What it was at the start of the server may be over.
    let mut client = Client::with(&env, &host, &format!("TENURE_SESSION={token}"));
    let mut me = |meta: Value| {
        let params = json!({"name": "status", "arguments": {}, "_meta": meta});
        let answer = client.ask("tools/call", &params);
        let me = &answer["result"]["structuredContent"]["status"]["me"];
        me["handle"].as_str().map(str::to_owned)
    };
    let said = |id: Value| {
        let mut meta = super::meta();
        meta["sessionId"] = id;
        meta
    };
    assert_eq!(me(said(json!("a2"))), Some(two));
    assert_eq!(me(said(json!(null))), None);
}

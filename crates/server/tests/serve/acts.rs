//! Acts: in the name of a token, with a reason, and in the log.

use serde_json::{Value, json};

use tenure_testkit::{Cmd, poll};

use crate::{ALL, Server, env, session, text, token};

/// The newest event of a kind.
fn newest(env: &tenure_testkit::Env, kind: &str) -> Value {
    let log = env.tenure(&["log", "--kind", kind, "--json"]).ok().json();
    log["events"]
        .as_array()
        .unwrap()
        .last()
        .cloned()
        .unwrap_or(Value::Null)
}

#[test]
fn a_claim_is_freed_and_given_for_its_holder() {
    let env = env();
    let (ann, holder) = session(&env, "ann");
    let (_bob, other) = session(&env, "bob");
    ann.tenure(&["claim", "wp:1"]).ok();
    ann.tenure(&["claim", "wp:2"]).ok();
    let server = Server::start(&env);
    let token = token(&env, "ci", ALL);
    let give = |epoch: u64| json!({"reason": "ann is away", "holder": holder, "epoch": epoch, "to": other});
    let answer = server.post("/api/v1/claims/wp%3A1/give", &token, give(1));
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["claim"]["holder"]["handle"], json!(other));
    assert_eq!(
        newest(&env, "claim.handed_off")["reason"],
        "ann is away (token ci)"
    );
    // What was drawn is over.
    let answer = server.post("/api/v1/claims/wp%3A1/give", &token, give(1));
    assert_eq!(answer.status, 409, "{}", answer.text);
    let free = json!({"reason": "stale", "holder": holder, "epoch": 1});
    let answer = server.post("/api/v1/claims/wp%3A2/free", &token, free);
    assert_eq!(answer.json()["claim"]["state"], "free", "{}", answer.text);
    assert_eq!(newest(&env, "claim.released")["reason"], "stale (token ci)");
}

#[test]
fn a_tokens_message_starts_a_turn_in_an_idle_session() {
    let mut env = env();
    env.set("TENURE_WAKE_AGENTS", "claude");
    let ann = env.agent("claude");
    let event = json!({"hook_event_name": "SessionStart", "session_id": "a1", "cwd": env.work()});
    let event = event.to_string();
    ann.tenure_stdin(&["hook", "claude"], &event).ok();
    let me = ann.tenure(&["whoami", "--json"]).ok().json();
    let handle = text(&me["session"]["handle"]);
    let waits = ann.start(Cmd::shell("exec tenure hook claude --wait").stdin(event));
    let bells = env.state().join("wake");
    poll(std::time::Duration::from_secs(20), "it waits", || {
        std::fs::read_dir(&bells).ok()?.next().map(drop)
    });
    let server = Server::start(&env);
    let token = token(&env, "ci", ALL);
    let path = format!("/api/v1/sessions/{handle}/tell");
    let answer = server.post(&path, &token, json!({"message": "go on"}));
    assert_eq!(answer.status, 200, "{}", answer.text);
    let said = waits.wait();
    assert_eq!(said.code, 2, "{said}");
    let quoted = "message from token ci: \"go on\"";
    assert!(said.stderr.contains(quoted), "{said}");
}

#[test]
fn a_session_is_told_dismissed_and_ended() {
    let env = env();
    let (ann, handle) = session(&env, "ann");
    let server = Server::start(&env);
    let token = token(&env, "ci", ALL);
    let path = |act: &str| format!("/api/v1/sessions/{handle}/{act}");
    let answer = server.post(&path("tell"), &token, json!({"message": "main is frozen"}));
    assert_eq!(answer.json()["delivery"], "delivered", "{}", answer.text);
    let told = ann.tenure(&["status", "--json"]).ok().json();
    let message = text(&told["notices"][0]["message"]);
    assert!(message.starts_with("message from token ci: "), "{message}");
    let answer = server.post(&path("dismiss"), &token, json!({"reason": "tidy"}));
    assert_eq!(
        (answer.status, answer.kind().as_str()),
        (409, "nothing_to_dismiss")
    );
    let answer = server.post(&path("end"), &token, json!({"reason": "laptop was stolen"}));
    assert_eq!(
        answer.json()["session"]["state"],
        "ended",
        "{}",
        answer.text
    );
    assert_eq!(
        newest(&env, "session.ended")["reason"],
        "laptop was stolen (token ci)"
    );
    // A reason is something that people can see.
    for reason in ["", "  ", "\u{200b}"] {
        let answer = server.post(&path("end"), &token, json!({"reason": reason}));
        assert_eq!(answer.status, 400, "{}", answer.text);
    }
}

#[test]
fn an_item_is_reset_only_by_a_token_with_the_scope() {
    let env = env();
    let (ann, _) = session(&env, "ann");
    ann.tenure(&["conversation", "set", "claude", "wp:1", "ses_1"])
        .ok();
    let server = Server::start(&env);
    let (acts, admin) = (
        token(&env, "acts", "read,act"),
        token(&env, "admin", "admin"),
    );
    let body = json!({"item": "wp:1", "reason": "it is confused"});
    let path = "/api/v1/conversations/reset";
    let answer = server.post(path, &acts, body.clone());
    assert_eq!(
        (answer.status, answer.kind().as_str()),
        (403, "scope_needed")
    );
    let answer = server.post(path, &admin, body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["dropped"][0]["native_id"], "ses_1");
    assert_eq!(
        newest(&env, "conversation.dropped")["reason"],
        "it is confused (token admin)"
    );
    // A token does what its scopes say, and no other does that for it.
    assert_eq!(
        server.get("/api/v1/sessions", &admin).kind(),
        "scope_needed"
    );
}

#[test]
fn a_server_that_an_agent_started_is_not_that_agent() {
    let env = env();
    let (ann, handle) = session(&env, "ann");
    ann.tenure(&["claim", "wp:1"]).ok();
    let words = ["serve", "--listen", "127.0.0.1:0", "--json"];
    let process = ann.start(tenure_testkit::Cmd::new("tenure").args(words));
    let url = crate::said(&process, "serving", |said| said["url"].as_str());
    let address = url.trim_start_matches("http://");
    let token = token(&env, "ci", ALL);
    let free = json!({"reason": "stale", "holder": handle, "epoch": 1}).to_string();
    let ask = crate::client::Ask::post("/api/v1/claims/wp%3A1/free", &free);
    assert_eq!(ask.token(&token).send(address).status, 200);
    let released = newest(&env, "claim.released");
    assert_eq!(released["reason"], "stale (token ci)");
    assert_eq!(
        released["evidence"],
        "released on its behalf from outside any session"
    );
    process.signal(tenure_testkit::Signal::TERM);
    process.wait().ok();
}

/// An agent's hook that waits for an answer; the session's handle and the question's id.
fn asking(
    env: &tenure_testkit::Env,
    agent: &tenure_testkit::Agent,
) -> (tenure_testkit::Background, String, String) {
    let event = |name: &str| {
        json!({"hook_event_name": name, "session_id": "c-1", "cwd": env.work(), "source": "startup",
            "tool_name": "Bash", "tool_input": {"command": "touch a"}})
        .to_string()
    };
    agent
        .tenure_stdin(&["hook", "claude"], &event("SessionStart"))
        .ok();
    let me = agent.tenure(&["whoami", "--json"]).ok().json();
    let hook = tenure_testkit::Cmd::shell("exec tenure hook claude --answers");
    let hook = agent.start(hook.stdin(event("PermissionRequest")));
    let id = tenure_testkit::poll(crate::SOON, "the question is open", || {
        let files = std::fs::read_dir(env.state().join("questions"))
            .ok()?
            .flatten();
        let mut names = files.filter_map(|file| file.file_name().into_string().ok());
        names.find_map(|name| Some(name.strip_suffix(".json")?.to_owned()))
    });
    (hook, text(&me["session"]["handle"]), id)
}

#[test]
fn a_question_is_answered_only_by_a_token_that_may_act_and_by_its_id() {
    let mut env = env();
    env.set("TENURE_ANSWERS_AGENTS", "claude");
    let claude = env.agent("claude");
    let (hook, handle, id) = asking(&env, &claude);
    let server = Server::start(&env);
    let (reads, acts) = (token(&env, "wall", "read,logs"), token(&env, "phone", ALL));
    let path = |what: &str| format!("/api/v1/sessions/{handle}/{what}");
    let shown = server.list(&path("questions"), &reads);
    let question = &shown["questions"][0];
    assert_eq!(question["id"], id.as_str(), "{shown:#}");
    assert_eq!(question["shown"], json!(["touch a"]));
    let allow = json!({"id": id, "answer": "allow"});
    let answer = server.post(&path("answer"), &reads, allow.clone());
    assert_eq!(answer.status, 403, "{}", answer.text);
    for wrong in [
        json!({"answer": "allow"}),
        json!({"id": id}),
        json!({"id": id, "answer": "always"}),
        json!({"id": id, "answer": "allow", "message": "for ever"}),
        json!({"id": id, "texts": ["touch b"]}),
        json!({"id": id, "answer": "allow", "updatedInput": {"command": "rm"}}),
    ] {
        let answer = server.post(&path("answer"), &acts, wrong);
        assert_eq!(answer.status, 400, "{}", answer.text);
    }
    let other = json!({"id": "q-k7qd2m4zw9", "answer": "allow"});
    let answer = server.post(&path("answer"), &acts, other);
    assert_eq!((answer.status, answer.kind().as_str()), (409, "not_open"));
    assert!(hook.is_alive());
    let answer = server.post(&path("answer"), &acts, allow.clone());
    assert_eq!(
        answer.json()["sent"]["by"],
        "token phone",
        "{}",
        answer.text
    );
    let said = hook.wait().ok().json();
    let decision = &said["hookSpecificOutput"]["decision"];
    assert_eq!(*decision, json!({"behavior": "allow"}));
    let logged = newest(&env, "session.answered");
    assert_eq!(logged["reason"], "token phone", "{logged:#}");
    let late = server.post(&path("answer"), &acts, allow);
    assert_eq!(late.status, 409, "{}", late.text);
    assert!(late.text.contains("allow by token phone"), "{}", late.text);
}

#[test]
fn what_was_asked_and_answered_needs_the_scope_logs() {
    let mut env = env();
    env.set("TENURE_ANSWERS_AGENTS", "claude");
    let claude = env.agent("claude");
    let (hook, handle, id) = asking(&env, &claude);
    let server = Server::start(&env);
    let (reads, logs, acts) = (
        token(&env, "wall", "read"),
        token(&env, "desk", "read,logs"),
        token(&env, "phone", "read,act"),
    );
    let follow = |token: &str| {
        let ask = crate::client::Ask::get("/api/v1/events").token(token);
        let mut stream = ask.follow(&server.address);
        stream.until("snapshot");
        stream
    };
    let mut streams = [follow(&reads), follow(&logs)];
    let deny = json!({"id": id, "answer": "deny", "message": "use the staging database"});
    let path = format!("/api/v1/sessions/{handle}/answer");
    let answer = server.post(&path, &acts, deny);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(!answer.text.contains("touch a"), "{}", answer.text);
    assert_eq!(answer.json()["sent"]["question"]["id"], id.as_str());
    hook.wait().ok();
    let is_answer = |data: &Value| data["event"]["kind"] == "session.answered";
    let sent = streams
        .each_mut()
        .map(|stream| stream.find("event", is_answer).data["event"]["evidence"].clone());
    let listed = [&reads, &logs].map(|token| {
        let log = server.list("/api/v1/events?kind=session.answered", token);
        log["events"][0]["evidence"].clone()
    });
    for [hidden, full] in [sent, listed] {
        assert_eq!(hidden, "");
        let full = text(&full);
        let both = full.contains("touch a") && full.contains("use the staging database");
        assert!(both, "{full}");
    }
}

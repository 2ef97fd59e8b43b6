//! `tenure mcp` as a client meets it: over pipes, below an agent, with both generations of the protocol.

#![allow(clippy::unwrap_used)]
#![allow(clippy::needless_pass_by_value)] // they are made where they are passed
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

mod callers;
mod install;
mod waits;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Background, Cmd, Env, poll};

/// How long a server may stay after its client is gone.
const GONE_WITHIN: Duration = Duration::from_secs(1);
/// How often that is measured.
const TRIES: usize = 5;
/// How long anything else may take on a busy machine.
const SOON: Duration = Duration::from_secs(20);

const OLD: [&str; 3] = ["2024-11-05", "2025-06-18", "2025-11-25"];
const NEW: &str = "2026-07-28";

fn env() -> Env {
    let server = Path::new(env!("CARGO_BIN_EXE_tenure-server"));
    Env::new(&server.with_file_name("tenure"))
}

/// An agent that is a session.
fn session(env: &Env, name: &str) -> (Agent, String) {
    let agent = env.agent(name);
    let pid = agent.pid().to_string();
    let words = ["register", "--agent", name, "--pid", &pid, "--json"];
    let answer = agent.tenure(&words).ok().json();
    let handle = text(&answer["session"]["handle"]);
    (agent, handle)
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value}"))
        .to_owned()
}

/// The client of a server that an agent started.
struct Client {
    input: Option<File>,
    output: Option<BufReader<File>>,
    server: Background,
    asked: i64,
}

impl Client {
    /// Starts a server, and says hello.
    fn new(env: &Env, agent: &Agent) -> Self {
        let mut client = Self::silent(env, agent);
        let hello = client.ask("initialize", &hello(OLD[2]));
        assert_eq!(hello["result"]["serverInfo"]["name"], "tenure");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    /// Starts a server.
    fn silent(env: &Env, agent: &Agent) -> Self {
        Self::with(env, agent, "")
    }

    /// Starts a server with this before its command line.
    fn with(env: &Env, agent: &Agent, variables: &str) -> Self {
        let name = |end: &str| env.dir().join(format!("{}.{end}", agent.pid()));
        let (input, output) = (name("in"), name("out"));
        for pipe in [&input, &output] {
            agent
                .run(Cmd::shell(&format!("mkfifo '{}'", pipe.display())))
                .ok();
        }
        let line = format!(
            "{variables} exec tenure mcp <'{}' >'{}'",
            input.display(),
            output.display()
        );
        let server = agent.start(Cmd::shell(&line));
        // Each end waits for the other.
        let input = File::options().write(true).open(input).unwrap();
        let output = File::open(output).unwrap();
        Self {
            input: Some(input),
            output: Some(BufReader::new(output)),
            server,
            asked: 0,
        }
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next message.
    fn receive(&mut self) -> Value {
        let mut line = String::new();
        let output = self.output.as_mut().unwrap();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "the server ended");
        serde_json::from_str(&line).unwrap()
    }

    fn request(&mut self, method: &str, params: &Value) -> i64 {
        self.asked += 1;
        let id = self.asked;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message.to_string());
        id
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer:#}");
        answer
    }

    fn call_with(&mut self, tool: &str, arguments: Value, meta: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        self.ask("tools/call", &params)["result"].clone()
    }

    /// The result of a call, whatever it is.
    fn try_call(&mut self, tool: &str, arguments: Value) -> Value {
        self.call_with(tool, arguments, json!({}))
    }

    /// The structured result of a call that succeeds.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.try_call(tool, arguments);
        assert_eq!(result["isError"], false, "{result:#}");
        result["structuredContent"].clone()
    }

    /// The error of a call that fails.
    #[track_caller]
    fn fails(&mut self, kind: &str, tool: &str, arguments: Value) -> Value {
        let result = self.try_call(tool, arguments);
        assert_eq!(result["isError"], true, "{result:#}");
        let error = result["structuredContent"]["error"].clone();
        assert_eq!(error["kind"], kind, "{result:#}");
        result
    }

    #[track_caller]
    fn is_gone(&self) {
        poll(SOON, "the server ends", || {
            (!self.server.is_alive()).then_some(())
        });
    }

    fn waits(&mut self, env: &Env) {
        let arguments = json!({"keys": ["wp:1"], "wait_seconds": 30});
        self.request(
            "tools/call",
            &json!({"name": "claim", "arguments": arguments}),
        );
        poll(SOON, "it waits in the queue", || {
            (waiters(env) == 1).then_some(())
        });
    }
}

/// Asserts that a server can end within a second after its client was broken off; a busy machine adds to it.
#[track_caller]
fn ends_at_once(broken_off: impl Fn() -> (Vec<Agent>, Client)) {
    let mut shortest = Duration::MAX;
    for _ in 0..TRIES {
        let (_agents, client) = broken_off();
        let began = Instant::now();
        client.is_gone();
        shortest = shortest.min(began.elapsed());
        if shortest < GONE_WITHIN {
            return;
        }
    }
    panic!("it took {shortest:?} at least");
}

/// How many wait for `wp:1`.
fn waiters(env: &Env) -> usize {
    let why = env.tenure(&["why", "wp:1", "--json"]).ok().json();
    why["why"]["waiters"].as_array().unwrap().len()
}

fn hello(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
    })
}

/// What every request has in the newer generation.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": NEW,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn f_v23_a_probe_and_then_initialize_twice_in_every_older_revision() {
    let env = env();
    let (ann, _) = session(&env, "ann");
    for version in OLD {
        let mut client = Client::silent(&env, &ann);
        let bare = client.ask("server/discover", &json!({}));
        assert!(bare["error"].is_object(), "{bare:#}");
        let probe = client.ask("server/discover", &json!({"_meta": meta()}));
        let versions = probe["result"]["supportedVersions"].as_array().unwrap();
        assert!(versions.contains(&json!(NEW)), "{probe:#}");
        for _ in 0..2 {
            let answer = client.ask("initialize", &hello(version));
            assert_eq!(answer["result"]["protocolVersion"], version, "{answer:#}");
            assert_eq!(answer["result"]["serverInfo"]["name"], "tenure");
        }
        let tools = client.ask("tools/list", &json!({}));
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 8);
        assert!(client.ask("ping", &json!({}))["result"].is_object());
        std::fs::remove_file(env.dir().join(format!("{}.in", ann.pid()))).unwrap();
        std::fs::remove_file(env.dir().join(format!("{}.out", ann.pid()))).unwrap();
    }
}

#[test]
fn the_newer_generation_needs_no_initialize() {
    let env = env();
    let (ann, handle) = session(&env, "ann");
    let mut client = Client::silent(&env, &ann);
    let params = json!({"name": "status", "arguments": {}, "_meta": meta()});
    let answer = client.ask("tools/call", &params)["result"].clone();
    assert_eq!(answer["resultType"], "complete", "{answer:#}");
    let body = &answer["structuredContent"];
    assert_eq!(body["status"]["me"]["handle"], handle, "{body:#}");
    let list = client.ask("resources/list", &json!({"_meta": meta()}));
    assert_eq!(list["result"]["resources"].as_array().unwrap().len(), 2);
}

#[test]
fn every_tool_says_what_it_changes() {
    let env = env();
    let (ann, _) = session(&env, "ann");
    let mut client = Client::new(&env, &ann);
    let tools = client.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let hint = |tool: &Value, name: &str| tool["annotations"][name].as_bool().unwrap();
    let mut rows = Vec::new();
    for tool in tools.as_array().unwrap() {
        assert!(text(&tool["description"]).chars().count() < 300);
        assert!(tool["title"].is_string());
        assert_eq!(tool["inputSchema"]["type"], "object");
        let changes = match (hint(tool, "readOnlyHint"), hint(tool, "destructiveHint")) {
            (true, _) => "nothing",
            (false, false) => "adds",
            (false, true) => "gives up",
        };
        rows.push((text(&tool["name"]), changes));
    }
    let rows: Vec<(&str, &str)> = rows
        .iter()
        .map(|(name, what)| (name.as_str(), *what))
        .collect();
    assert_eq!(
        rows,
        [
            ("status", "nothing"),
            ("sessions", "nothing"),
            ("claim", "adds"),
            ("release", "gives up"),
            ("handoff", "gives up"),
            ("why", "nothing"),
            ("tell", "adds"),
            ("mission", "adds"),
        ]
    );
}

#[test]
fn a_call_answers_what_the_command_answers_in_json() {
    let env = env();
    let ((ann, handle), (bob, other)) = (session(&env, "ann"), session(&env, "bob"));
    let (mut a, mut b) = (Client::new(&env, &ann), Client::new(&env, &bob));
    let claimed = a.call("claim", json!({"keys": ["wp:1"], "note": "the parser"}));
    assert_eq!(claimed["claim"]["holder"]["handle"], handle);
    let why = ann.tenure(&["why", "wp:1", "--json"]).ok().json();
    let asked = a.call("why", json!({"key": "wp:1"}));
    assert_eq!(asked["claim"]["key"], why["claim"]["key"]);
    assert_eq!(keys_of(&asked), keys_of(&why));
    let status = a.call("status", json!({}));
    assert_eq!(status["status"]["claims"][0]["note"], "the parser");
    assert_eq!(status["status"]["others"][0]["handle"], other);
    assert_eq!(keys_of(&status), keys_of(&json_of(&ann, &["status"])));
    let sessions = a.call("sessions", json!({}));
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(keys_of(&sessions), keys_of(&json_of(&ann, &["ps"])));
    let given = a.call(
        "handoff",
        json!({"key": "wp:1", "to": other, "note": "tests"}),
    );
    assert_eq!(given["claim"]["holder"]["handle"], other);
    let claims = b.ask("resources/read", &json!({"uri": "tenure://claims"}));
    let claims = text(&claims["result"]["contents"][0]["text"]);
    let claims: Value = serde_json::from_str(&claims).unwrap();
    assert_eq!(claims["claims"][0]["holder"]["handle"], other);
    let released = b.call("release", json!({"key": "wp:1", "done": true}));
    assert_eq!(released["claim"]["state"], "done", "{released:#}");
    let joined = a.call(
        "mission",
        json!({"act": "join", "mission": "041-login", "value": "developer"}),
    );
    assert_eq!(joined["joined"], "new");
    let focus = json!({"act": "focus", "value": "wp:WP03"});
    assert_eq!(a.call("mission", focus)["participant"]["focus"], "wp:WP03");
    let roster = a.call("mission", json!({"act": "status"}));
    assert_eq!(roster["participants"].as_array().unwrap().len(), 1);
    a.call("mission", json!({"act": "leave"}));
}

fn json_of(agent: &Agent, words: &[&str]) -> Value {
    let mut words = words.to_vec();
    words.push("--json");
    agent.tenure(&words).ok().json()
}

fn keys_of(object: &Value) -> Vec<&str> {
    let object = object.as_object().unwrap();
    object.keys().map(String::as_str).collect()
}

#[test]
fn a_held_item_is_our_error_and_names_tools_and_no_verb_of_a_person() {
    let env = env();
    let ((ann, handle), (bob, _)) = (session(&env, "ann"), session(&env, "bob"));
    ann.tenure(&["claim", "wp:1"]).ok();
    let mut client = Client::new(&env, &bob);
    let refused = client.fails("held", "claim", json!({"keys": ["wp:1"]}));
    let error = &refused["structuredContent"]["error"];
    assert_eq!(error["holder"]["handle"], handle);
    let line = text(&refused["content"][0]["text"]);
    assert!(line.starts_with("error: wp:1 is held by"), "{line}");
    assert!(
        line.contains("call `why` with {\"key\":\"wp:1\"}"),
        "{line}"
    );
    let why = client.try_call("why", json!({"key": "wp:1"}));
    // Nor for a person's own shell, whose verbs may suggest them.
    let (human, _) = session(&env, "human");
    let mut shell = Client::new(&env, &human);
    let asked = shell.try_call("why", json!({"key": "wp:1"}));
    let taken = shell.try_call("claim", json!({"keys": ["wp:1"]}));
    for answer in [refused, why, asked, taken] {
        let all = answer.to_string();
        for verb in ["takeover", "tenure end", "--reopen", "\"person\"", "repair"] {
            assert!(!all.contains(verb), "{verb}: {answer:#}");
        }
    }
    client.fails("usage", "claim", json!({"keys": ["wp:1"], "reopen": true}));
    client.fails(
        "usage",
        "claim",
        json!({"keys": ["wp:1"], "wait_seconds": 31}),
    );
    client.fails("usage", "claim", json!({"keys": ["wp:1", "wp:2"]}));
    client.fails("usage", "claim", json!({"keys": []}));
    let none = client.ask("tools/call", &json!({"name": "takeover", "arguments": {}}));
    assert!(none["error"].is_object(), "{none:#}");
}

#[test]
fn two_calls_at_once_do_not_wait_for_each_other() {
    let env = env();
    let ((ann, _), (bob, handle)) = (session(&env, "ann"), session(&env, "bob"));
    ann.tenure(&["claim", "wp:1"]).ok();
    let mut client = Client::new(&env, &bob);
    client.waits(&env);
    let waits = client.asked;
    client.call("status", json!({}));
    ann.tenure(&["release", "wp:1"]).ok();
    let granted = client.receive();
    assert_eq!(granted["id"], waits);
    let claim = &granted["result"]["structuredContent"]["claim"];
    assert_eq!(claim["holder"]["handle"], handle, "{granted:#}");
}

#[test]
fn garbage_is_passed_over_and_half_a_line_at_the_end_is_nothing() {
    let env = env();
    let (ann, _) = session(&env, "ann");
    let mut client = Client::silent(&env, &ann);
    for line in ["", "{", "not json", "[1,2", "\u{0}\u{1}"] {
        client.send(line);
    }
    let early = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    client.send(&early.to_string());
    client.ask("initialize", &hello(OLD[1]));
    client.send("{\"jsonrpc\":");
    client.send("{\"jsonrpc\":\"2.0\"}");
    let refused = client.receive();
    assert!(refused["error"].is_object(), "{refused:#}");
    client.call("status", json!({}));
    let input = client.input.as_mut().unwrap();
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":9,").unwrap();
    client.input = None;
    client.is_gone();
}

#[test]
fn f_v21_the_server_ends_with_its_input() {
    let env = env();
    ends_at_once(|| {
        let (ann, _) = session(&env, "ann");
        let mut client = Client::new(&env, &ann);
        client.input = None;
        (vec![ann], client)
    });
}

#[test]
fn f_v21_the_server_ends_with_its_input_while_a_claim_waits() {
    let env = env();
    ends_at_once(|| {
        let ((ann, _), (bob, _)) = (session(&env, "ann"), session(&env, "bob"));
        ann.tenure(&["claim", "wp:1"]).ok();
        let mut client = Client::new(&env, &bob);
        client.waits(&env);
        client.input = None;
        (vec![ann, bob], client)
    });
}

#[test]
fn what_was_asked_before_the_input_ended_is_answered() {
    let env = env();
    let (ann, handle) = session(&env, "ann");
    let mut client = Client::new(&env, &ann);
    client.request("tools/call", &json!({"name": "status", "arguments": {}}));
    client.input = None;
    let answer = client.receive();
    let body = &answer["result"]["structuredContent"];
    assert_eq!(body["status"]["me"]["handle"], handle, "{answer:#}");
    client.is_gone();
}

#[test]
fn f_v21_the_server_ends_with_its_parent_although_its_input_stays_open() {
    let env = env();
    ends_at_once(|| {
        let (ann, _) = session(&env, "ann");
        let client = Client::new(&env, &ann);
        ann.kill9();
        (vec![ann], client)
    });
}

#[test]
fn f_v21_the_server_ends_when_nobody_reads_its_output() {
    let env = env();
    ends_at_once(|| {
        let (ann, _) = session(&env, "ann");
        let mut client = Client::new(&env, &ann);
        client.output = None;
        (vec![ann], client)
    });
}

#[test]
fn a_message_is_told_in_one_answer_and_not_again() {
    let env = env();
    let ((ann, _), (bob, handle)) = (session(&env, "ann"), session(&env, "bob"));
    let (mut a, mut b) = (Client::new(&env, &ann), Client::new(&env, &bob));
    let sent = a.call("tell", json!({"to": handle, "message": "rebase first"}));
    assert_eq!(sent["delivery"], "delivered");
    let told = b.try_call("status", json!({}));
    let notices = &told["structuredContent"]["notices"];
    assert!(
        text(&notices[0]["message"]).contains("rebase first"),
        "{told:#}"
    );
    // A client that shows its model only text shows this.
    assert!(text(&told["content"][1]["text"]).contains("rebase first"));
    poll(SOON, "it counts as delivered", || {
        let again = b.call("status", json!({}));
        let count = again["notices"].as_array().unwrap().len();
        (count == 0).then_some(())
    });
    bob.tenure(&["claim", "wp:1"]).ok();
    let takeover = ["takeover", "wp:1", "--reason", "test", "--json"];
    ann.tenure(&takeover).ok();
    let lost = b.try_call("status", json!({}));
    assert_eq!(
        lost["structuredContent"]["notices"][0]["kind"], "lost",
        "{lost:#}"
    );
}

#[test]
fn a_notice_whose_answer_was_not_written_is_told_again() {
    let env = env();
    let ((ann, _), (bob, handle)) = (session(&env, "ann"), session(&env, "bob"));
    let mut client = Client::new(&env, &bob);
    ann.tenure(&["tell", &handle, "rebase first"]).ok();
    client.output = None;
    client.is_gone();
    let status = json_of(&bob, &["status"]);
    assert_eq!(status["notices"].as_array().unwrap().len(), 1, "{status:#}");
}

#[test]
fn outside_any_session_status_says_so_and_a_claim_fails() {
    let env = env();
    let nobody = env.agent("ann");
    let mut client = Client::new(&env, &nobody);
    let status = client.call("status", json!({}));
    assert!(status["status"]["me"].is_null(), "{status:#}");
    client.fails("no_session", "claim", json!({"keys": ["wp:1"]}));
}

#[test]
fn f_v22_three_servers_and_ten_hooks_share_one_store() {
    let env = env();
    let names = ["ann", "bob", "cat"];
    let crew: Vec<(Agent, String)> = names.iter().map(|name| session(&env, name)).collect();
    let hooked = env.agent("claude");
    let began = Instant::now();
    std::thread::scope(|scope| {
        for (agent, handle) in &crew {
            let env = &env;
            scope.spawn(move || {
                let mut client = Client::new(env, agent);
                for round in 0..10 {
                    let own = format!("wp:{handle}/{round}");
                    let claimed = client.call("claim", json!({"keys": [own]}));
                    assert_eq!(claimed["claim"]["holder"]["handle"], *handle);
                    let shared = json!({"keys": ["wp:shared"], "wait_seconds": 30});
                    client.call("claim", shared);
                    client.call("release", json!({"key": "wp:shared"}));
                }
            });
        }
        let hooks: Vec<Background> = (0..10)
            .map(|number| {
                let event = json!({
                    "hook_event_name": "UserPromptSubmit", "session_id": "c-1", "prompt": number.to_string(),
                });
                let hook = Cmd::new("tenure").args(["hook", "claude"]);
                hooked.start(hook.stdin(event.to_string()))
            })
            .collect();
        for hook in hooks {
            hook.wait().ok();
        }
    });
    let held = env.tenure(&["claims", "--json"]).ok().json();
    assert_eq!(held["claims"].as_array().unwrap().len(), 30);
    assert!(began.elapsed() < SOON * 3, "{:?}", began.elapsed());
}

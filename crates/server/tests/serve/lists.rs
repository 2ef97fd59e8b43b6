//! Lists: the same rows as the commands, page by page, and nothing that the token does not allow.

use serde_json::{Value, json};

use crate::client::Ask;
use crate::{ALL, Server, env, session, text, token};

#[test]
fn a_list_has_the_rows_of_its_command() {
    let env = env();
    let (ann, handle) = session(&env, "ann");
    ann.tenure(&["claim", "wp:1", "--note", "half done"]).ok();
    let server = Server::start(&env);
    let token = token(&env, "t", ALL);
    let rows = |list: &Value| -> Vec<Value> {
        let mut rows = list["sessions"].as_array().unwrap().clone();
        for row in &mut rows {
            // They grow while this runs.
            for part in ["why", "last_seen_at", "lease_until", "place"] {
                row[part].take();
            }
        }
        rows
    };
    let list = server.list("/api/v1/sessions", &token);
    let command = env.tenure(&["ps", "--json"]).ok().json();
    assert_eq!(rows(&list), rows(&command));
    assert_eq!(list["sessions"][0]["handle"], json!(handle));
    let claims = server.list("/api/v1/claims", &token);
    assert_eq!(claims["claims"][0]["note"], "half done");
    assert_eq!(claims["claims"][0]["holder"]["handle"], json!(handle));
    let why = server.list("/api/v1/claims/wp%3A1", &token);
    assert_eq!(why["claim"]["key"], "wp:1");
    let shown = server.list(&format!("/api/v1/sessions/{handle}"), &token);
    assert_eq!(shown["session"]["claims"][0]["key"], "wp:1");
    for path in [
        "lines",
        "missions",
        "conversations",
        "runs",
        "jobs",
        "deliveries",
    ] {
        let list = server.list(&format!("/api/v1/{path}"), &token);
        assert_eq!(list[path], json!([]), "{path}");
        assert_eq!(list["next"], Value::Null);
    }
    let events = server.list("/api/v1/events?kind=claim.granted", &token);
    assert_eq!(events["events"][0]["key"], "wp:1");
}

#[test]
fn the_hooks_of_each_agent_are_listed_with_the_command_that_helps() {
    let env = env();
    let server = Server::start(&env);
    let token = token(&env, "t", "read");
    let none = server.list("/api/v1/agents", &token);
    assert_eq!(none["agents"], json!([]), "no agent is here");
    env.tenure(&["install", "qwen"]).ok();
    std::fs::create_dir_all(env.home().join(".claude")).unwrap();
    let list = server.list("/api/v1/agents", &token);
    let command = env.tenure(&["install", "--check", "--json"]).json();
    let helps = [json!("tenure install claude"), Value::Null];
    let agents = list["agents"].as_array().unwrap();
    assert_eq!(agents.len(), helps.len(), "{list}");
    for (number, (agent, helps)) in agents.iter().zip(&helps).enumerate() {
        assert_eq!(&agent["command"], helps, "{agent}");
        for part in ["agent", "state", "scope", "file", "trust", "notes"] {
            assert_eq!(agent[part], command["agents"][number][part], "{part}");
        }
    }
    // Settings that cannot be read are said, beside the others or alone, and are no fault of the server.
    let settings = env.home().join(".claude/settings.json");
    std::fs::write(&settings, "{").unwrap();
    let list = server.list("/api/v1/agents", &token);
    let states: Vec<String> = list["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| text(&agent["state"]))
        .collect();
    assert_eq!(states, ["installed", "unreadable"]);
    assert_eq!(list["agents"][1]["file"], settings.to_str().unwrap());
    env.tenure(&["uninstall", "qwen"]).ok();
    let answer = server.get("/api/v1/agents", &token);
    assert_eq!(
        (answer.status, answer.kind().as_str()),
        (422, "hooks_not_checked"),
        "{}",
        answer.text
    );
}

#[test]
fn usage_is_what_the_command_adds_up() {
    let env = env();
    let ann = env.agent("claude");
    let file = env.work().join("0123.jsonl");
    let at = tenure_host::clock::wall().to_string();
    let answered = json!({"type": "assistant", "sessionId": "0123", "timestamp": at, "message": {"id": "m1",
        "usage": {"input_tokens": 200, "cache_read_input_tokens": 1000, "output_tokens": 50}}});
    std::fs::write(&file, format!("{answered}\n")).unwrap();
    let (pid, file) = (ann.pid().to_string(), file.to_str().unwrap());
    let words = ["register", "--agent", "claude", "--pid", &pid];
    let of = ["--native-id", "0123", "--transcript", file];
    ann.tenure(&[&words[..], &of].concat()).ok();
    let server = Server::start(&env);
    let token = token(&env, "t", "read");
    // The server reads the transcript itself.
    let usual = server.list("/api/v1/usage", &token);
    assert_eq!(usual["usage"]["by"], "session");
    assert_eq!(usual["usage"]["total"]["tokens_in"], 1200, "{usual}");
    for by in ["session", "item", "day", "agent"] {
        let path = format!("/api/v1/usage?by={by}&since=1d");
        let words = ["usage", "--by", by, "--since", "1d", "--json"];
        let command = env.tenure(&words).ok().json();
        assert_eq!(server.list(&path, &token)["usage"], command["usage"]);
    }
    for wrong in ["by=week", "since=soon"] {
        let answer = server.get(&format!("/api/v1/usage?{wrong}"), &token);
        assert_eq!(answer.status, 400, "{}", answer.text);
    }
}

#[test]
fn a_filter_keeps_what_the_flags_of_ps_keep() {
    let env = env();
    let (ann, first) = session(&env, "ann");
    let (_bob, second) = session(&env, "bob");
    ann.tenure(&["end"]).ok();
    let server = Server::start(&env);
    let token = token(&env, "t", ALL);
    let handles = |list: &Value| -> Vec<String> {
        let rows = list["sessions"].as_array().unwrap();
        rows.iter().map(|row| text(&row["handle"])).collect()
    };
    for (query, flags, expected) in [
        ("state=ended", &["--state", "ended"][..], vec![&first]),
        ("agent=bob", &["--agent", "bob"], vec![&second]),
        (
            "agent=ann&all=true",
            &["--agent", "ann", "--all"],
            vec![&first],
        ),
        (
            "state=ended&agent=bob",
            &["--state", "ended", "--agent", "bob"],
            vec![],
        ),
        ("repo=nowhere", &["--repo", "nowhere"], vec![]),
    ] {
        let list = server.list(&format!("/api/v1/sessions?{query}"), &token);
        assert_eq!(
            handles(&list).iter().collect::<Vec<_>>(),
            expected,
            "{query}"
        );
        let words = [&["ps", "--json"], flags].concat();
        let command = env.tenure(&words).ok().json();
        assert_eq!(handles(&list), handles(&command), "{query}");
    }
}

#[test]
fn a_list_is_read_page_by_page() {
    let env = env();
    let agents: Vec<_> = ["ann", "bob", "eve"].map(|name| session(&env, name)).into();
    for (number, (agent, _)) in agents.iter().enumerate() {
        agent.tenure(&["claim", &format!("wp:{number}")]).ok();
    }
    let server = Server::start(&env);
    let token = token(&env, "t", "read");
    let first = server.list("/api/v1/sessions?limit=2", &token);
    assert_eq!(
        (first["sessions"].as_array().unwrap().len(), &first["more"]),
        (2, &json!(1))
    );
    let next = text(&first["next"]);
    let last = server.list(&format!("/api/v1/sessions?limit=2&after={next}"), &token);
    assert_eq!(last["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(last["next"], Value::Null);
    let claims = server.list("/api/v1/claims?limit=1&after=wp:0", &token);
    assert_eq!(claims["claims"][0]["key"], "wp:1");
    // The log goes on where a page ended.
    let events = server.list("/api/v1/events?after=0&limit=2", &token);
    let cursor = events["cursor"].as_u64().unwrap();
    let rest = server.list(&format!("/api/v1/events?after={cursor}"), &token);
    assert_eq!(rest["events"][0]["cursor"].as_u64(), Some(cursor + 1));
    // Cursors of another store.
    for path in [
        "sessions?after=01",
        "claims?after=wp:x",
        "runs?after=r-7777777777",
        "jobs?after=j-1",
        "jobs?after=j-7777777777",
        "deliveries?after=1",
        "deliveries?after=x",
        "events?after=99999",
    ] {
        let answer = server.get(&format!("/api/v1/{path}"), &token);
        assert_eq!(
            (answer.status, answer.kind().as_str()),
            (400, "bad_cursor"),
            "{path}"
        );
    }
}

#[test]
fn runs_and_jobs_go_on_behind_a_place_in_the_store() {
    let env = env();
    tenure_testkit::Scripted::new(&env, "mine", "init; done_");
    let person = env.agent("person");
    for item in ["wp:1", "wp:2", "wp:3"] {
        let words = ["run", "mine", item, "--prompt", "hello"];
        person.tenure(&words).ok();
        person.tenure(&[&words[..], &["--queue"]].concat()).ok();
    }
    let cancel = [
        "queue",
        "cancel",
        "--item",
        "wp:2",
        "--reason",
        "not needed",
    ];
    person.tenure(&cancel).ok();
    let server = Server::start(&env);
    let token = token(&env, "t", "read");
    for (list, query, rows) in [
        ("runs", "limit=1", 3),
        ("jobs", "limit=1", 2),
        ("jobs", "limit=1&all=true", 3),
    ] {
        let ids = |page: &Value| -> Vec<String> {
            let rows = page[list].as_array().unwrap();
            rows.iter().map(|row| text(&row["id"])).collect()
        };
        let all = query.replace("limit=1", "limit=100");
        let whole = server.list(&format!("/api/v1/{list}?{all}"), &token);
        assert_eq!(ids(&whole).len(), rows, "{whole}");
        let (mut found, mut after) = (Vec::new(), String::new());
        for number in 1..=rows {
            let page = server.list(&format!("/api/v1/{list}?{query}{after}"), &token);
            found.extend(ids(&page));
            assert_eq!(page["more"], u64::from(number < rows), "{page}");
            assert_eq!(page["next"].is_null(), number == rows, "{page}");
            after = format!("&after={}", page["next"].as_str().unwrap_or_default());
        }
        assert_eq!(found, ids(&whole), "{list}?{query}");
    }
}

#[test]
fn prompts_and_questions_need_the_scope_logs() {
    let env = env();
    let ann = env.agent("claude");
    let file = env.work().join("0123.jsonl");
    let asked = json!({"type": "user", "message": {"content": "the secret plan"}});
    std::fs::write(&file, format!("{asked}\n")).unwrap();
    let event = json!({"session_id": "0123", "hook_event_name": "UserPromptSubmit", "prompt": "the secret plan",
        "cwd": env.work(), "transcript_path": file});
    ann.tenure_stdin(&["hook", "claude"], &event.to_string())
        .ok();
    let server = Server::start(&env);
    let (plain, logs) = (
        token(&env, "plain", "read"),
        token(&env, "logs", "read,logs"),
    );
    let full = server.list("/api/v1/sessions", &logs);
    assert_eq!(full["sessions"][0]["title"], "the secret plan");
    let hidden = server.list("/api/v1/sessions", &plain);
    assert_eq!(hidden["sessions"][0]["title"], Value::Null);
    let path = format!("/api/v1/sessions/{}", text(&full["sessions"][0]["handle"]));
    let shown = server.list(&path, &logs);
    assert_eq!(
        shown["session"]["last_words"]["prompt"], "the secret plan",
        "{shown}"
    );
    let hidden = server.list(&path, &plain);
    assert_eq!(hidden["session"]["last_words"], Value::Null);
    let mut stream = Ask::get("/api/v1/events")
        .token(&plain)
        .follow(&server.address);
    let snapshot = stream.until("snapshot").data;
    assert_eq!(snapshot["sessions"][0]["title"], Value::Null, "{snapshot}");
    let metrics = server.get("/metrics", &plain);
    assert!(
        metrics.text.contains("tenure_sessions{"),
        "{}",
        metrics.text
    );
    assert!(
        !metrics.text.contains("claude"),
        "no names: {}",
        metrics.text
    );
    // What a run printed is for that scope alone, whether there is such a run or not.
    let log = server.get("/api/v1/runs/r-7777777777/log", &plain);
    assert_eq!((log.status, log.kind().as_str()), (403, "scope_needed"));
    let log = server.get("/api/v1/runs/r-7777777777/log", &logs);
    assert_eq!(log.status, 404, "{}", log.text);
}

#[test]
fn foreign_text_arrives_as_text() {
    let env = env();
    let (ann, handle) = session(&env, "ann");
    let title = "<script>alert(1)</script>\u{202e}";
    ann.tenure(&["rename", &handle, title]).ok();
    ann.tenure(&["claim", "wp:1", "--note", "\u{1b}[2J<b>"])
        .ok();
    let server = Server::start(&env);
    let token = token(&env, "t", ALL);
    for path in ["sessions", "claims", "events"] {
        let answer = server.get(&format!("/api/v1/{path}"), &token);
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let hostile = |c: char| c == '\u{1b}' || c == '\u{202e}';
        assert!(!answer.text.contains(hostile), "{}", answer.text);
    }
}

#[test]
fn the_log_of_a_run_is_read_and_followed_to_its_end() {
    let env = env();
    let (ann, _) = session(&env, "ann");
    tenure_testkit::Scripted::new(&env, "mine", "init; done_");
    ann.tenure(&["run", "mine", "wp:1", "--prompt", "hello"])
        .ok();
    let server = Server::start(&env);
    let token = token(&env, "t", "read,logs");
    let runs = server.list("/api/v1/runs", &token);
    let run = text(&runs["runs"][0]["id"]);
    let path = format!("/api/v1/runs/{run}/log");
    let log = server.list(&path, &token);
    let lines = log["lines"].as_array().unwrap();
    assert!(!lines.is_empty(), "{log}");
    let mut stream = Ask::get(&path).token(&token).follow(&server.address);
    for line in lines {
        let said = stream.until("line");
        assert_eq!(said.data["data"], line["data"]);
        assert_eq!(said.id, line["end"].as_u64());
    }
    assert_eq!(stream.until("end").data["run"]["state"], "ended");
    assert!(stream.next().is_none(), "it is closed");
    let rest = server.list(&format!("{path}?after={}", log["next"]), &token);
    assert_eq!(rest["lines"], json!([]));
}

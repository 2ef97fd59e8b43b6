//! Ten parsers of bytes that others write: none panics, none hangs, and what is read holds what its type promises.

use bolero::check;
use serde_json::Value;
use tenure_agents::run::Runs;
use tenure_agents::{ADAPTERS, EventAnswer};
use tenure_app::keeper::wire::{KeeperRequest, Response};
use tenure_app::settings::{notify, repo};
use tenure_core::glob::Glob;
use tenure_core::id::NativeId;
use tenure_core::import::{claude_hooks, ehg, openclaw, pact, spec_kitty};
use tenure_core::key::Key;
use tenure_core::shell_line::commands;
use tenure_core::shell_write::shell_writes;
use tenure_core::time::Timestamp;
use tenure_core::transcript;
use tenure_forges::{FORGES, Headers};
use tenure_fuzz::{Input, Seeds};
use tenure_store::server::PostgresUrl;

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What an agent writes to its hook.
#[test]
fn hook_payloads() {
    let seeds = Seeds::of(&["crates/cli/tests/fixtures"]);
    let said = EventAnswer {
        context: Some("context".into()),
        message: Some("message".into()),
        block: Some("block".into()),
        token: Some("token".into()),
        ..EventAnswer::default()
    };
    check!().with_type::<Input>().for_each(|input| {
        let event = seeds.made(input);
        for adapter in ADAPTERS {
            let report = adapter.read(&event);
            if let Some(id) = &report.native_id {
                assert!(NativeId::parse(id.as_str()).is_ok());
            }
            assert!(!report.name.contains(char::is_control));
            assert!(report.dir.is_none_or(|dir| dir.starts_with('/')));
            assert!(adapter.answer(&report.name, &said).is_some());
        }
    });
}

/// What a forge posts: its body, under each of its events.
#[test]
fn webhooks() {
    let seeds = Seeds::of(&["crates/forges/tests/fixtures"]);
    check!().with_type::<(Input, u8)>().for_each(|(input, event)| {
        let body = seeds.made(input);
        for forge in FORGES {
            for header in forge.event_headers {
                let name = EVENTS[usize::from(*event) % EVENTS.len()];
                let headers = Headers::from_iter([(*header, name)]);
                let Ok(Some(read)) = forge.read(&headers, &body) else {
                    continue;
                };
                let again = forge.read_again(read.kind.as_str(), &body);
                assert!(again.is_some(), "a stored {name} is read again");
                let (_, _, _) = (read.text(), read.spoken(), read.closes());
            }
        }
    });
}

const EVENTS: &[&str] = &[
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "push",
    "repository",
    "delete",
    "Issue Hook",
    "Note Hook",
    "Merge Request Hook",
    "Push Hook",
];

/// What an agent prints while it runs, and the end of its conversation's file.
#[test]
fn agents_streams() {
    let seeds = Seeds::of(&["crates/agents/tests/runs"]);
    check!().with_type::<Input>().for_each(|input| {
        let bytes = seeds.made(input);
        let text = lossy(&bytes);
        for run in ADAPTERS.iter().filter_map(|adapter| adapter.runs.as_ref()) {
            bytes.split(|byte| *byte == b'\n').for_each(|line| drop(run.read(line)));
            text.lines().for_each(|line| drop(run.read_stderr(line)));
            drop((run.read_tail(&text), run.totals(&text), run.own_error(1, &text)));
        }
    });
}

/// Files of conversations, whole and their ends.
#[test]
fn transcripts() {
    let seeds = Seeds::of(&["crates/agents/tests/runs", "crates/cli/tests/fixtures"]);
    let id = NativeId::parse("5b2c1d5e-8f2b-4c0e-9a54-0b7d8f0c1a2b").expect("it is one");
    check!().with_type::<Input>().for_each(|input| {
        let bytes = seeds.made(input);
        assert!(transcript::check_lines(&id, &bytes, 10).len() <= 10);
        for records in ADAPTERS.iter().filter_map(|adapter| adapter.turn_records.as_ref()) {
            drop(tenure_agents::turn_records::report(records, &bytes));
        }
    });
}

/// What other systems kept.
#[test]
fn imports() {
    let seeds = Seeds::of(&["fuzz/seeds/imports"]);
    check!().with_type::<Input>().for_each(|input| {
        let text = lossy(&seeds.made(input));
        let now = Timestamp(0);
        drop(openclaw::sessions_json(&text, "s"));
        drop(openclaw::rows(&[vec![Some(text.clone()), None, Some(text.clone())]], "s"));
        drop(claude_hooks::sessions_json(&text, "s"));
        drop(ehg::json_row(&text, "s"));
        drop(pact::context("p", "5b2c1d5e", &text, "s", now));
        drop(spec_kitty::mission("041-login", &text, "s"));
        drop(spec_kitty::pointer(&text, "s"));
    });
}

/// config.toml: its parts that are tables of the user's own.
#[test]
fn settings() {
    let seeds = Seeds::of(&["fuzz/seeds/config.toml", "fuzz/seeds/settings.lines"]);
    check!().with_type::<Input>().for_each(|input| {
        let Ok(table) = lossy(&seeds.made(input)).parse::<toml::Table>() else {
            return;
        };
        if let Some(value) = table.get("notify") {
            drop(notify::parse(value, "config.toml", &[]));
        }
        for (name, value) in table.get("repo").and_then(toml::Value::as_table).into_iter().flatten() {
            drop(repo::parse(name, value, "config.toml"));
        }
    });
}

/// Keys as they are typed, and the globs in them.
#[test]
fn keys_and_globs() {
    let seeds = Seeds::of(&["fuzz/seeds/keys.lines"]);
    check!().with_type::<(Input, Input)>().for_each(|(one, other)| {
        let (one, other) = (lossy(&seeds.made(one)), lossy(&seeds.made(other)));
        if let Ok(key) = Key::parse(&one) {
            assert!(key.as_str().len() <= 512);
            assert_eq!(Key::parse(key.as_str()).as_ref(), Ok(&key), "a key is one as it is printed");
            assert!(Key::stored(key.as_str()).is_ok());
        }
        if let (Ok(one), Ok(other)) = (Glob::parse(&one), Glob::parse(&other))
            && !one.is_costly()
            && !other.is_costly()
        {
            assert_eq!(one.overlaps(&other), other.overlaps(&one));
            if let Some(path) = one.witness(&other) {
                let path = path.trim_start_matches('/');
                assert!(one.matches(path) && other.matches(path), "{path:?}");
            }
        }
    });
}

/// What a model hands to a shell.
#[test]
fn shell_lines() {
    let seeds = Seeds::of(&["fuzz/seeds/shell.lines"]);
    check!().with_type::<Input>().for_each(|input| {
        let line = lossy(&seeds.made(input));
        for write in shell_writes(&commands(&line)) {
            assert!(!write.path.is_empty());
        }
    });
}

/// Addresses of stores and of remotes: no password in what is shown.
#[test]
fn urls() {
    let seeds = Seeds::of(&["fuzz/seeds/urls.lines"]);
    check!().with_type::<Input>().for_each(|input| {
        let text = lossy(&seeds.made(input));
        if let Ok(url) = PostgresUrl::parse(&text) {
            let shown = url.without_password();
            let again = PostgresUrl::parse(&shown);
            assert!(again.is_ok_and(|again| again.password.is_none()), "{shown}");
            drop(url.location());
        }
        if let Some((host, name)) = tenure_host::git::address(&text) {
            assert!(!host.contains('@') && name.contains('/'), "{host} {name}");
        }
    });
}

/// What a process says to a keeper over its socket, and what it is answered.
#[test]
fn keepers_socket() {
    let seeds = Seeds::of(&["fuzz/seeds/keeper.lines"]);
    check!().with_type::<Input>().for_each(|input| {
        let line = seeds.made(input);
        if let Ok(request) = serde_json::from_slice::<KeeperRequest>(&line) {
            let again = serde_json::to_vec(&request).expect("what was read can be written");
            let read: KeeperRequest = serde_json::from_slice(&again).expect("and read again");
            assert_eq!(read, request);
        }
        drop(serde_json::from_slice::<Response>(&line));
        drop(serde_json::from_slice::<Value>(&line));
    });
}

//! `tenure serve` as browsers, programs and attackers meet it: over real sockets, with the real programs.

#![allow(clippy::unwrap_used)]
#![allow(clippy::needless_pass_by_value)] // they are made where they are passed
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

mod acts;
mod bad_input;
mod changes;
mod client;
mod limits;
mod lists;
mod logins;
mod notified;
mod streams;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::{Agent, Background, Cmd, Env, poll};

use client::{Answer, Ask};

/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(20);

fn env() -> Env {
    let server = Path::new(env!("CARGO_BIN_EXE_tenure-server"));
    Env::new(&server.with_file_name("tenure"))
}

fn text(value: &Value) -> String {
    let text = value.as_str();
    text.unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

/// An agent that is a session, and its handle.
fn session(env: &Env, name: &str) -> (Agent, String) {
    let agent = env.agent(name);
    let pid = agent.pid().to_string();
    let words = ["register", "--agent", name, "--pid", &pid, "--json"];
    let answer = agent.tenure(&words).ok().json();
    let handle = text(&answer["session"]["handle"]);
    (agent, handle)
}

/// A new token with these scopes.
fn token(env: &Env, name: &str, scopes: &str) -> String {
    let words = ["token", "new", name, "--scope", scopes, "--json"];
    text(&env.tenure(&words).ok().json()["secret"])
}

const ALL: &str = "read,logs,act,admin";

/// A running server.
struct Server {
    process: Background,
    /// `127.0.0.1:PORT`.
    address: String,
    /// Who started it; its end ends nothing else.
    _agent: Agent,
}

impl Server {
    fn start(env: &Env) -> Server {
        Self::start_with(env, &[])
    }

    fn start_with(env: &Env, more: &[&str]) -> Server {
        let agent = env.agent("person");
        let words = ["serve", "--listen", "127.0.0.1:0", "--json"];
        let process = agent.start(Cmd::new("tenure").args(words.iter().chain(more).copied()));
        let url = said(&process, "serving", |said| said["url"].as_str());
        let address = url.trim_start_matches("http://").to_owned();
        Server {
            process,
            address,
            _agent: agent,
        }
    }

    fn get(&self, path: &str, token: &str) -> Answer {
        Ask::get(path).token(token).send(&self.address)
    }

    /// The answer to a list, which succeeds.
    #[track_caller]
    fn list(&self, path: &str, token: &str) -> Value {
        let answer = self.get(path, token);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.json()
    }

    fn post(&self, path: &str, token: &str, body: Value) -> Answer {
        Ask::post(path, &body.to_string())
            .token(token)
            .send(&self.address)
    }
}

/// What a server said with `--json`.
#[track_caller]
fn said(process: &Background, part: &str, of: impl Fn(&Value) -> Option<&str>) -> String {
    poll(SOON, part, || {
        assert!(process.is_alive(), "{}", process.stderr());
        let lines = process.stdout();
        let mut lines = lines
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find_map(|line| of(&line[part]).map(str::to_owned))
    })
}

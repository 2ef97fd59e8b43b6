//! A forge that sends webhooks to a dispatcher on loopback. The payloads are written from the forges' documentation.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use tenure_testkit::{Agent, Background, Cmd, Env, poll, scratch_git};

use super::line::SOON;

pub const SECRET: &str = "a secret of the tests";

/// A dispatcher with one Forgejo, one repository and a rule for a scripted agent.
pub struct Dispatcher {
    pub process: Background,
    pub address: String,
}

/// Writes what a dispatcher needs; `rule` is added to its rule.
pub fn set_up(env: &Env, rule: &str) {
    let dir = env.home().join(".config/tenure");
    std::fs::create_dir_all(dir.join("skills")).expect("the environment is ours");
    let skills = dir.join("skills");
    std::fs::write(
        skills.join("fix.md"),
        "Fix {{ item }}.\n{{ news | fenced }}",
    )
    .expect("the environment is ours");
    std::fs::write(skills.join("fix-delta.md"), "Go on.\n{{ news | fenced }}")
        .expect("the environment is ours");
    let secret = dir.join("home.secret");
    std::fs::write(&secret, SECRET).expect("the environment is ours");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600))
        .expect("the environment is ours");
    let repo = env.dir().join("web");
    if !repo.exists() {
        let remote = "https://git.example.org/acme/web.git";
        scratch_git(&repo, Some(remote));
    }
    let text = format!(
        "listen = \"127.0.0.1:0\"\n\
         [forge.home]\nkind = \"forgejo\"\nsecret_files = [\"home.secret\"]\nown_account = \"bot\"\n\
         [repo.\"acme/web\"]\nforge = \"home\"\nurl = {repo:?}\n\
         [[rule]]\nname = \"fix\"\nrepo = \"acme/web\"\non = [\"issue.opened\", \"issue.comment\"]\n\
         authors = [\"alice\", \"bob\"]\nagent = \"mine\"\nskill = \"fix\"\n{rule}\n",
    );
    std::fs::write(dir.join("dispatch.toml"), text).expect("the environment is ours");
}

impl Dispatcher {
    #[track_caller]
    pub fn start(agent: &Agent) -> Dispatcher {
        Self::start_as(agent, Cmd::new("tenure").args(["dispatch", "--json"]))
    }

    /// Starts a dispatcher by another command.
    #[track_caller]
    pub fn start_as(agent: &Agent, command: Cmd) -> Dispatcher {
        let process = agent.start(command);
        let address = poll(SOON, "it listens", || {
            assert!(process.is_alive(), "{}", process.stderr());
            let said = process.stdout();
            let mut lines = said
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let found = lines.find(|line| line["event"] == "listening")?;
            Some(found["address"].as_str()?.to_owned())
        });
        Dispatcher { process, address }
    }

    /// Delivers an event as Forgejo does; the status and the answer.
    #[track_caller]
    pub fn deliver(&self, event: &str, delivery: &str, payload: &Value) -> (u16, Value) {
        deliver_to(&self.address, event, delivery, payload)
    }

    /// Delivers an issue event as GitLab does.
    #[track_caller]
    pub fn deliver_gitlab(&self, delivery: &str, payload: &Value) -> (u16, Value) {
        let body = payload.to_string();
        let headers = [
            ("X-Gitlab-Event", "Issue Hook"),
            ("Idempotency-Key", delivery),
            ("X-Gitlab-Token", SECRET),
            ("Content-Type", "application/json"),
        ];
        self.send("POST", "/hooks/home", &headers, body.as_bytes())
    }

    /// The same where the dispatcher may be gone; none if it cannot be reached.
    pub fn try_deliver(
        &self,
        event: &str,
        delivery: &str,
        payload: &Value,
    ) -> Option<(u16, Value)> {
        let reached = TcpStream::connect(&self.address);
        drop(reached.ok()?);
        Some(self.deliver(event, delivery, payload))
    }

    /// Sends a request; the status and the answer.
    #[track_caller]
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (u16, Value) {
        send_to(&self.address, method, path, headers, body)
    }
}

/// Delivers an event as Forgejo does, to a dispatcher that may be gone.
pub fn deliver_to(address: &str, event: &str, delivery: &str, payload: &Value) -> (u16, Value) {
    let body = payload.to_string();
    let signature = sign(body.as_bytes());
    let headers = [
        ("X-Forgejo-Event", event),
        ("X-Forgejo-Delivery", delivery),
        ("X-Forgejo-Signature", &signature),
        ("Content-Type", "application/json"),
    ];
    send_to(address, "POST", "/hooks/home", &headers, body.as_bytes())
}

/// Delivers an event as GitHub does, to a dispatcher that may be gone.
pub fn send_github(address: &str, event: &str, delivery: &str, payload: &Value) -> (u16, Value) {
    let body = payload.to_string();
    let signature = format!("sha256={}", sign(body.as_bytes()));
    let headers = [
        ("X-GitHub-Event", event),
        ("X-GitHub-Delivery", delivery),
        ("X-Hub-Signature-256", &signature),
        ("Content-Type", "application/json"),
    ];
    send_to(address, "POST", "/hooks/home", &headers, body.as_bytes())
}

fn send_to(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, Value) {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return (0, Value::Null);
    };
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    // A server that refuses a body may close before all of it is sent.
    stream.write_all(head.as_bytes()).ok();
    stream.write_all(body).ok();
    read_answer(&mut stream)
}

pub fn read_answer(stream: &mut TcpStream) -> (u16, Value) {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok();
    let text = String::from_utf8_lossy(&bytes);
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (
        status.unwrap_or(0),
        serde_json::from_str(body.trim()).unwrap_or(Value::Null),
    )
}

pub fn sign(body: &[u8]) -> String {
    sign_with(SECRET, body)
}

pub fn sign_with(secret: &str, body: &[u8]) -> String {
    let mut mac =
        Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).expect("the environment is ours");
    mac.update(body);
    let bytes = mac.finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn person(login: &str, id: u64) -> Value {
    json!({"id": id, "login": login, "username": login, "full_name": ""})
}

pub fn repository() -> Value {
    json!({
        "id": 17, "name": "web", "full_name": "acme/web", "private": false,
        "html_url": "https://git.example.org/acme/web", "default_branch": "main",
        "owner": person("acme", 2),
    })
}

fn issue_object(number: u64, state: &str) -> Value {
    json!({
        "id": 100 + number, "number": number, "title": "Login fails", "body": "It answers 500.",
        "state": state, "user": person("alice", 3), "labels": [], "assignees": [],
        "html_url": format!("https://git.example.org/acme/web/issues/{number}"),
        "created_at": "2026-11-16T06:00:00Z", "updated_at": "2026-11-16T06:00:00Z",
        "pull_request": null,
    })
}

/// `opened`, `closed` or `reopened`, by alice.
pub fn issue(number: u64, action: &str) -> Value {
    let state = if action == "closed" { "closed" } else { "open" };
    json!({
        "action": action, "number": number, "issue": issue_object(number, state),
        "repository": repository(), "sender": person("alice", 3),
    })
}

/// A comment with this id.
pub fn comment(number: u64, id: u64, login: &str, text: &str) -> Value {
    let ids = [("alice", 3), ("bob", 4), ("bot", 9)];
    let who = ids
        .iter()
        .find(|(name, _)| *name == login)
        .map_or(77, |(_, id)| *id);
    json!({
        "action": "created", "issue": issue_object(number, "open"),
        "comment": {
            "id": id, "user": person(login, who), "body": text,
            "html_url": format!("https://git.example.org/acme/web/issues/{number}#issuecomment-{id}"),
            "created_at": "2026-11-16T06:05:00Z", "updated_at": "2026-11-16T06:05:00Z",
        },
        "repository": repository(), "sender": person(login, who), "is_pull": false,
    })
}

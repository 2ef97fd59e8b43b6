//! The dispatcher with the real agents: signed deliveries on loopback, from the issue to the merge.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::{Background, Cmd, RecordedRequest, poll};

use crate::state::{LONG, hooked};

each! { [
    an_issue_is_worked_on_from_its_first_line_to_its_merge
    an_agent_that_merges_its_own_pull_request_ends_its_run_by_itself
    a_dispatcher_that_is_killed_in_the_middle_leaves_one_run_that_is_recorded_once
] claude Claude codex Codex }

// What these need of the dispatcher's variables is what the others prove, too: one scenario is enough.
each! { [
    an_issue_is_worked_on_from_its_first_line_to_its_merge
] gemini Gemini opencode Opencode qwen Qwen }

pub(super) const SECRET: &str = "a secret of the tests";
const ISSUE: &str = "issue:team/project#6";

/// A world whose repository sends webhooks to a dispatcher.
struct Forge {
    world: RealWorld,
}

impl Forge {
    fn begin(kind: Real) -> Forge {
        let world = hooked(kind);
        let dir = world.home().join(".config/tenure");
        std::fs::create_dir_all(dir.join("skills")).unwrap();
        std::fs::write(dir.join("config.toml"), "grace = \"1s\"\n").unwrap();
        let full = "FULL-TEXT of {{ item }}\n{{ body | fenced }}\n{{ news | fenced }}";
        std::fs::write(dir.join("skills/work.md"), full).unwrap();
        let delta = "DELTA-TEXT\n{{ news | fenced }}";
        std::fs::write(dir.join("skills/work-delta.md"), delta).unwrap();
        let secret = dir.join("home.secret");
        std::fs::write(&secret, SECRET).unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        let args = match kind {
            Real::Codex => "[\"--dangerously-bypass-hook-trust\"]",
            _ => "[]",
        };
        // Only what keeps the agents of a test from the network: their keys need not be named.
        let env = match kind {
            Real::Codex => "[\"MOCK_KEY\"]",
            Real::Opencode => {
                "[\"OPENCODE_DISABLE_AUTOUPDATE\", \"OPENCODE_DISABLE_MODELS_FETCH\", \"NPM_CONFIG_REGISTRY\"]"
            }
            Real::Gemini | Real::Qwen => "[]",
            _ => {
                "[\"DISABLE_AUTOUPDATER\", \"DISABLE_TELEMETRY\", \"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC\"]"
            }
        };
        let text = format!(
            "listen = \"127.0.0.1:0\"\n\
             [forge.home]\nkind = \"forgejo\"\nsecret_files = [\"home.secret\"]\nown_account = \"bot\"\n\
             [repo.\"team/project\"]\nforge = \"home\"\nurl = {:?}\ntrusted = true\n\
             [[rule]]\nname = \"work\"\nrepo = \"team/project\"\n\
             on = [\"issue.opened\", \"issue.comment\", \"pr.opened\", \"pr.review\"]\n\
             authors = [\"alice\"]\nagent = {:?}\nskill = \"work\"\nargs = {args}\non_close = \"stop\"\n\
             env = {env}\n",
            world.project(),
            kind.name(),
        );
        std::fs::write(dir.join("dispatch.toml"), text).unwrap();
        let forge = Forge { world };
        // What is at the remote: the worktree of an item has nothing that is not there.
        for known in ["refs/remotes/origin/main", "refs/pull/9/head"] {
            forge.git(&["update-ref", known, "HEAD"]);
        }
        // A fetch stays on this machine.
        let remote = forge.git(&["config", "remote.origin.url"]);
        let instead = format!("url.{}.insteadOf", forge.world.project().display());
        forge.git(&["config", &instead, &remote]);
        forge
    }

    fn git(&self, words: &[&str]) -> String {
        let project = self.world.project();
        let said = self
            .world
            .driver()
            .run(
                Cmd::new("git")
                    .arg("-C")
                    .arg(project.to_str().unwrap())
                    .args(words.iter().copied()),
            )
            .ok();
        said.stdout.trim().to_owned()
    }

    #[track_caller]
    fn dispatcher(&self) -> Door {
        Door::open(&self.world)
    }

    fn list(&self, words: &[&str], name: &str) -> Vec<Value> {
        let said = self.world.tenure(words).ok().json();
        said[name].as_array().expect("a list").clone()
    }

    /// All jobs, the oldest first.
    fn jobs(&self) -> Vec<Value> {
        let mut jobs = self.list(&["queue", "--all", "--json"], "jobs");
        jobs.sort_by_key(|job| job["created_at"].as_str().map(str::to_owned));
        jobs
    }

    /// All runs, the oldest first.
    fn runs(&self) -> Vec<Value> {
        let mut runs = self.list(&["runs", "--json"], "runs");
        runs.reverse();
        runs
    }

    /// Waits until so many jobs are over, and all were done.
    #[track_caller]
    fn done(&self, count: usize) -> Vec<Value> {
        let jobs = poll(LONG, "the jobs are over", || {
            let jobs = self.jobs();
            let stuck = jobs.iter().find(|job| job["failures"] != 0);
            assert!(stuck.is_none(), "{stuck:#?}");
            let over = jobs.iter().filter(|job| job["state"] == "ended").count();
            (over == count).then_some(jobs)
        });
        for job in &jobs {
            assert_eq!(job["outcome"], "done", "{job:#}\n{:#?}", self.runs());
        }
        jobs
    }

    /// Waits until the model is asked what comes after a tool.
    #[track_caller]
    fn held(&self) {
        let is_held = |asked: &RecordedRequest| {
            let text = asked.body.to_string();
            let answered = [
                "tool_result\"",
                "_call_output\"",
                "\"functionResponse\"",
                "\"role\":\"tool\"",
            ];
            asked.offers_tools() && answered.iter().any(|mark| text.contains(mark))
        };
        let mock = self.world.mock();
        mock.await_asked(LONG, "what comes after the tool", is_held);
    }

    /// The newest step of a turn that the model was asked for.
    #[track_caller]
    fn last_step(&self) -> RecordedRequest {
        let asked = self.world.mock().asked();
        let mut steps = asked.into_iter().filter(RecordedRequest::offers_tools);
        steps.next_back().expect("a step")
    }

    /// The worktree of the issue.
    fn worktree(&self) -> PathBuf {
        let dir = self.runs()[0]["dir"]
            .as_str()
            .expect("a directory")
            .to_owned();
        PathBuf::from(dir)
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }
}

/// A dispatcher that listens.
pub(super) struct Door {
    process: Background,
    address: String,
}

impl Door {
    #[track_caller]
    pub(super) fn open(world: &RealWorld) -> Door {
        let command = Cmd::new("tenure").args(["dispatch", "--json"]);
        let process = world.driver().start(command);
        let address = poll(LONG, "it listens", || {
            assert!(process.is_alive(), "{}", process.stderr());
            let said = process.stdout();
            let mut lines = said
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let found = lines.find(|line| line["event"] == "listening")?;
            Some(found["address"].as_str()?.to_owned())
        });
        Door { process, address }
    }

    /// Delivers an event; it is accepted with this verdict.
    #[track_caller]
    pub(super) fn deliver(&self, event: &str, id: &str, payload: &Value, verdict: &str) {
        let body = payload.to_string();
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        mac.update(body.as_bytes());
        let signature: String = mac
            .finalize()
            .into_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "POST /hooks/home HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             X-Forgejo-Event: {event}\r\nX-Forgejo-Delivery: {id}\r\nX-Forgejo-Signature: {signature}\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let told = answer.split_once("\r\n\r\n").map_or("", |(_, told)| told);
        let told: Value = serde_json::from_str(told.trim()).unwrap_or_else(|_| panic!("{answer}"));
        assert_eq!(told["verdict"], verdict, "{answer}");
    }
}

pub(super) fn person(login: &str) -> Value {
    let id = match login {
        "alice" => 3,
        _ => 9,
    };
    json!({"id": id, "login": login, "username": login})
}

fn repository() -> Value {
    json!({"id": 17, "name": "project", "full_name": "team/project", "default_branch": "main"})
}

fn issue_object(state: &str, body: &str) -> Value {
    json!({
        "id": 106, "number": 6, "title": "Login fails", "body": body, "state": state,
        "user": person("alice"), "labels": [], "assignees": [],
        "html_url": "https://example.invalid/team/project/issues/6",
        "created_at": "2026-11-16T06:00:00Z", "updated_at": "2026-11-16T06:00:00Z", "pull_request": null,
    })
}

fn issue(action: &str, body: &str) -> Value {
    let state = if action == "closed" { "closed" } else { "open" };
    json!({
        "action": action, "number": 6, "issue": issue_object(state, body),
        "repository": repository(), "sender": person("alice"),
    })
}

fn comment(id: u64, text: &str) -> Value {
    json!({
        "action": "created", "issue": issue_object("open", ""), "repository": repository(),
        "sender": person("alice"), "is_pull": false,
        "comment": {
            "id": id, "user": person("alice"), "body": text,
            "html_url": format!("https://example.invalid/team/project/issues/6#issuecomment-{id}"),
            "created_at": "2026-11-16T06:05:00Z", "updated_at": "2026-11-16T06:05:00Z",
        },
    })
}

fn pull(action: &str, head: &str, by: &str) -> Value {
    json!({
        "action": action, "number": 9, "repository": repository(), "sender": person(by),
        "pull_request": {
            "id": 209, "number": 9, "title": "Mend the login", "body": "Closes #6",
            "state": if action == "closed" { "closed" } else { "open" }, "merged": action == "closed",
            "user": person("alice"), "labels": [], "assignees": [],
            "html_url": "https://example.invalid/team/project/pulls/9",
            "head": {"ref": "tenure/issue-6", "sha": head, "repo": repository()},
            "base": {"ref": "main", "sha": head, "repo": repository()},
            "created_at": "2026-11-16T07:00:00Z",
            "updated_at": format!("2026-11-16T07:00:0{}Z", if action == "closed" { 2 } else { 1 }),
        },
    })
}

fn review(head: &str, text: &str) -> Value {
    let mut payload = pull("reviewed", head, "alice");
    payload["review"] = json!({"type": "pull_request_review_rejected", "content": text});
    payload
}

const HOLDS: &str = "MOCK:bash echo $TENURE_RUN >>noted\nMOCK:hold here";

fn an_issue_is_worked_on_from_its_first_line_to_its_merge(kind: Real) {
    let forge = Forge::begin(kind);
    let door = forge.dispatcher();
    door.deliver(
        "issues",
        "d-1",
        &issue("opened", "MOCK:bash echo began\nMOCK:hold here"),
        "queued",
    );
    forge.held();
    door.deliver(
        "issue_comment",
        "d-2",
        &comment(1, "FIRST-REMARK"),
        "queued",
    );
    door.deliver(
        "issue_comment",
        "d-3",
        &comment(2, "SECOND-REMARK"),
        "joined",
    );
    forge.world.mock().release("here");
    let jobs = forge.done(2);
    assert_eq!(
        jobs[1]["events"].as_array().unwrap().len(),
        2,
        "one job for both"
    );
    let last = forge.last_step();
    for text in ["DELTA-TEXT", "FIRST-REMARK", "SECOND-REMARK"] {
        assert!(last.says(text), "{text}: {:#}", last.body);
    }
    let head = forge.head();
    door.deliver(
        "pull_request",
        "d-4",
        &pull("opened", &head, "alice"),
        "queued",
    );
    forge.done(3);
    door.deliver(
        "pull_request_rejected",
        "d-5",
        &review(&head, "REVIEW-REMARK"),
        "queued",
    );
    forge.done(4);
    assert!(forge.last_step().says("REVIEW-REMARK"));
    let runs = forge.runs();
    assert_eq!(runs.len(), 4, "{runs:#?}");
    let first = &runs[0];
    assert_eq!(first["before"], Value::Null);
    for run in &runs[1..] {
        assert_eq!(
            run["before"], first["native_id"],
            "one conversation: {run:#}"
        );
        assert_eq!(run["native_id"], first["native_id"], "{run:#}");
        assert_eq!(run["session"], first["session"], "{run:#}");
        assert_eq!(
            run["dir"], first["dir"],
            "in the worktree of the issue: {run:#}"
        );
    }
    let deltas = |asked: &RecordedRequest| asked.body.to_string().matches("DELTA-TEXT").count();
    assert_eq!(deltas(&forge.last_step()), 3, "from the second run on");
    assert_eq!(
        forge
            .last_step()
            .body
            .to_string()
            .matches("FULL-TEXT")
            .count(),
        1
    );
    let worktree = forge.worktree();
    assert!(worktree.is_dir());
    door.deliver(
        "pull_request",
        "d-6",
        &pull("closed", &head, "alice"),
        "acted",
    );
    door.deliver("issues", "d-7", &issue("closed", ""), "acted");
    let get = ["conversation", "history", kind.name(), ISSUE, "--json"];
    let history = forge.world.tenure(&get).ok().json()["history"].clone();
    assert_eq!(history.as_array().unwrap().len(), 1, "{history:#}");
    assert_eq!(history[0]["why"], "closed", "{history:#}");
    // The first look of a dispatcher removes what is over.
    let closed = std::time::Instant::now();
    poll(LONG, "the grace is over", || {
        (closed.elapsed() > std::time::Duration::from_secs(2)).then_some(())
    });
    door.process.kill9();
    let _next = forge.dispatcher();
    poll(LONG, "the worktree is removed", || {
        (!worktree.exists()).then_some(())
    });
    assert!(forge.jobs().iter().all(|job| job["state"] == "ended"));
}

/// The merge closes both items while the run that did it goes on.
fn an_agent_that_merges_its_own_pull_request_ends_its_run_by_itself(kind: Real) {
    let forge = Forge::begin(kind);
    let door = forge.dispatcher();
    let head = forge.head();
    door.deliver("issues", "d-1", &issue("opened", "Mend it."), "queued");
    forge.done(1);
    door.deliver(
        "pull_request",
        "d-2",
        &pull("opened", &head, "alice"),
        "queued",
    );
    forge.done(2);
    door.deliver(
        "pull_request_rejected",
        "d-3",
        &review(&head, HOLDS),
        "queued",
    );
    forge.held();
    // The agent merges, so the forge names its account.
    door.deliver(
        "pull_request",
        "d-4",
        &pull("closed", &head, "bot"),
        "acted",
    );
    let runs = forge.runs();
    let running = runs.last().unwrap();
    assert_eq!(running["state"], "running", "{running:#}");
    assert!(running["stop_asked_at"].is_null(), "{running:#}");
    forge.world.mock().release("here");
    forge.done(3);
    let noted = std::fs::read_to_string(forge.worktree().join("noted")).unwrap();
    assert_eq!(noted.lines().count(), 1, "{noted}");
}

fn a_dispatcher_that_is_killed_in_the_middle_leaves_one_run_that_is_recorded_once(kind: Real) {
    let forge = Forge::begin(kind);
    let door = forge.dispatcher();
    door.deliver("issues", "d-1", &issue("opened", HOLDS), "queued");
    forge.held();
    door.process.kill9();
    let job = forge.jobs().remove(0);
    assert_eq!(job["state"], "begun", "{job:#}");
    let next = forge.dispatcher();
    next.deliver("issue_comment", "d-2", &comment(1, "AND-THEN"), "queued");
    forge.world.mock().release("here");
    forge.done(2);
    let runs = forge.runs();
    assert_eq!(runs.len(), 2, "{runs:#?}");
    let noted = std::fs::read_to_string(forge.worktree().join("noted")).unwrap();
    let id = runs[0]["id"].as_str().unwrap();
    assert_eq!(noted.trim(), id, "its tool was run once");
    let log = forge
        .world
        .tenure(&["log", ISSUE, "--limit", "0", "--json"])
        .ok();
    for (kind, count) in [("run.ended", 2), ("job.ended", 2), ("job.begun", 2)] {
        let kind = format!("\"{kind}\"");
        assert_eq!(log.stdout.matches(&kind).count(), count, "{kind}: {log}");
    }
    assert_eq!(runs[1]["before"], runs[0]["native_id"], "{runs:#?}");
}

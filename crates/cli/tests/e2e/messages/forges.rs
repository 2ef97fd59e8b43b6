//! What `dispatch init` writes, rarer faults of dispatch.toml, and a forge that gives no usable answer.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::fake_forge::{Dialect, Fault};
use tenure_testkit::{Agent, Cmd, Env, Output, Scripted, poll};

use super::page::Page;
use crate::env;
use crate::support::cloned::{private, pull};
use crate::support::dispatch::{clone, fill_in};
use crate::support::forge_api::{jobs, set_up_forge};
use crate::support::line::{SOON, session};
use crate::support::webhook::{SECRET, comment, deliver_to, issue, person, send_github, set_up};

fn said(stdout: String) -> Output {
    Output {
        code: 0,
        stdout,
        stderr: String::new(),
    }
}

/// Keeps a delivery, as a person saves it.
fn save(dir: &Path, name: &str, body: &Value) {
    std::fs::write(dir.join(name), body.to_string()).expect("the directory is ours");
}

#[test]
fn files() {
    let env = env();
    let mut page = Page::new("71-dispatch-files", &env);
    let human = session(&env, "human");
    let repo = clone(&env);
    page.cd(&repo);
    page.keep_spans();
    page.title("Without a home directory");
    page.run(&human, "HOME= tenure dispatch init");
    page.run(&human, "HOME= tenure dispatch check");
    human.tenure_in(&repo, &["dispatch", "init"]).ok();
    page.title("The files that `tenure dispatch init` writes");
    for file in ["dispatch.toml", "skills/implement.md"] {
        let path = env.home().join(".config/tenure").join(file);
        let text = std::fs::read_to_string(&path).expect("it was written");
        let typed = format!("cat {}", path.display());
        page.show(human.pid(), &typed, said(text), None);
    }
    page.title("A file that cannot be read");
    page.run(&human, "tenure dispatch check --config .");
    page.check(&env);
}

/// A forge with a token that nobody can reach, and a repository that is cloned when it is needed.
const UNCLONED: &str = r#"clones = "clones"

[forge.home]
kind = "forgejo"
secret_files = ["home.secret"]
url = "http://127.0.0.1:1"
token_file = "home.token"
own_account = "bot"

[repo."acme/web"]
forge = "home"
trusted = true

[[rule]]
on = ["issue.opened"]
authors = ["bot"]
agent = "claude"
skill = "missing"
args = ["--mcp-config=mcp.json"]
wrap = ["env"]
"#;

#[test]
fn rules() {
    let env = env();
    let mut page = Page::new("72-dispatch-rules", &env);
    let human = session(&env, "human");
    let dir = env.work();
    page.cd(&dir);
    page.keep_spans();
    for name in ["home.secret", "home.token", "work.secret"] {
        private(&dir.join(name), SECRET);
    }
    let file = dir.join("dispatch.toml");
    let write = |text: &str| std::fs::write(&file, text).expect("the directory is ours");
    let check = "tenure dispatch check --config dispatch.toml";
    page.title("A token whose account could answer itself");
    write(UNCLONED);
    page.run(&human, check);
    page.title("What cannot be checked yet");
    write(&UNCLONED.replace("[\"bot\"]", "[\"alice\"]"));
    page.run(&human, check);
    page.title("Several forges");
    let known = UNCLONED.replace("[\"bot\"]", "[\"alice\"]");
    write(&format!(
        "{known}\n[forge.work]\nkind = \"github\"\nsecret_files = [\"work.secret\"]\n"
    ));
    page.run(&human, "tenure dispatch ping --config dispatch.toml");
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "on_close = \"stop\"\nwrap = [\"env\"]");
    let events = "on = [\"issue.opened\", \"issue.comment\"]";
    let more = "on = [\"issue.opened\", \"issue.comment\", \"pr.opened\"]";
    fill_in(&env, events, more);
    page.title("Explain more deliveries");
    explain(&mut page, &human, &dir);
    page.title("Deliveries that cannot be read");
    for (name, body) in [
        ("list.json", json!([])),
        (
            "part.json",
            json!({"action": "opened", "issue": {"number": 6}}),
        ),
        ("key.json", {
            let mut odd = issue(6, "opened");
            odd["repository"]["full_name"] = json!("acme/w\u{7}b");
            odd
        }),
    ] {
        save(&dir, name, &body);
        page.run(
            &human,
            &format!("tenure dispatch explain {name} --event issues"),
        );
    }
    page.title("Do deliveries again that act");
    for (name, event) in [("reopened", "issues"), ("reset", "issue_comment")] {
        let line = format!("tenure dispatch replay {name}.json --event {event}");
        page.run_once(&human, &line, None);
    }
    page.title("A delivery of another kind of forge");
    fill_in(&env, "kind = \"forgejo\"", "kind = \"gitlab\"");
    page.run(&human, "tenure dispatch explain 1");
    page.check(&env);
}

/// What a closed and a reopened issue would do, a reset, and code of a stranger.
fn explain(page: &mut Page, human: &Agent, dir: &Path) {
    let mut fork = pull(9, "0123456789abcdef0123456789abcdef01234567");
    fork["pull_request"]["user"] = person("mallory", 8);
    fork["pull_request"]["head"]["repo"] = json!({"id": 99, "full_name": "mallory/web"});
    for (name, event, body) in [
        ("closed", "issues", issue(6, "closed")),
        ("reopened", "issues", issue(6, "reopened")),
        (
            "reset",
            "issue_comment",
            comment(6, 1, "alice", "/tenure reset"),
        ),
        ("fork", "pull_request", fork),
    ] {
        save(dir, &format!("{name}.json"), &body);
        let line = format!("tenure dispatch explain {name}.json --event {event}");
        page.run(human, &line);
    }
}

/// A server on loopback that gives this answer to each request, by its first line; its address.
fn answering(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it listens");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut first = String::new();
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if first.is_empty() {
                    first.clone_from(&line);
                }
                line.clear();
            }
            let answer = answer(&first);
            // The client may have given up.
            reader.into_inner().write_all(answer.as_bytes()).ok();
        }
    });
    format!("http://{address}")
}

fn http(headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Shows a forge on loopback as one elsewhere.
fn elsewhere(page: &mut Page, url: &str, host: &str) {
    let (_, own) = url.split_once("://").expect("an address");
    page.replace(own, host);
    page.replace(url, &format!("https://{host}"));
}

const BY_PERMISSION: &str = "associations = [\"collaborator\"]";
const HOST: &str = "git.example.org";

fn status(code: u16, message: &'static str) -> Fault {
    Fault::Status(code, Vec::new(), message)
}

#[test]
fn answers() {
    let env = env();
    let mut page = Page::new("73-forge-answers", &env);
    let human = session(&env, "human");
    let dir = env.work();
    page.cd(&dir);
    Scripted::new(&env, "mine", "init; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", BY_PERMISSION);
    elsewhere(&mut page, &forge.url, HOST);
    page.title("Check a token");
    for fault in [
        status(401, "no"),
        status(502, "Bad Gateway"),
        status(200, ""),
    ] {
        forge.state().fail("GET /user", 2, fault);
        page.run(&human, "tenure dispatch check");
        forge.state().faults.clear();
    }
    forge
        .state()
        .fail("GET /repos/acme/web/collab", 2, status(500, "broken"));
    page.run(&human, "tenure dispatch check");
    forge.state().faults.clear();
    lost_token(&env, &mut page, &human);
    page.title("Explain, without asking the forge");
    save(&dir, "comment.json", &comment(6, 1, "carol", "do it"));
    page.run(
        &human,
        "tenure dispatch explain comment.json --event issue_comment",
    );
    page.title("Do a delivery again, if its forge cannot be asked");
    let replay = "tenure dispatch replay comment.json --event issue_comment";
    for fault in [
        status(429, "slow down"),
        status(403, "API rate limit exceeded"),
        status(502, "Bad Gateway"),
    ] {
        forge.state().fail("GET /repos/acme/web/collab", 2, fault);
        page.run(&human, replay);
        forge.state().faults.clear();
    }
    let mut asks = comment(9, 2, "alice", "do it");
    asks["is_pull"] = json!(true);
    asks["issue"]["pull_request"] = json!({"merged": false});
    save(&dir, "pull.json", &asks);
    fill_in(
        &env,
        "\"issue.comment\"]",
        "\"issue.comment\", \"pr.comment\"]",
    );
    forge
        .state()
        .fail("GET /repos/acme/web/pulls/9", 2, status(200, ""));
    page.run(
        &human,
        "tenure dispatch replay pull.json --event issue_comment",
    );
    forge.state().faults.clear();
    fill_in(
        &env,
        &format!("url = \"{}\"", forge.url),
        "url = \"http://127.0.0.1:1\"",
    );
    page.run(&human, replay);
    page.check(&env);
}

/// A token that disappears between two questions.
fn lost_token(env: &Env, page: &mut Page, human: &Agent) {
    let file = env.home().join(".config/tenure/dispatch.toml");
    let before = std::fs::read_to_string(&file).expect("it was written");
    let token = env.home().join(".config/tenure/lost.token");
    private(&token, "t-2");
    let first = answering(move |_| {
        std::fs::remove_file(&token).ok();
        http("", "{\"login\":\"bot\",\"id\":9}")
    });
    elsewhere(page, &first, "first.example.org");
    let (head, tail) = before.split_once("[forge.home]").expect("it has a forge");
    let (own, rest) = tail.split_once("[repo.").expect("it has a repository");
    let one = |name: &str, token: &str, url: &str| {
        format!(
            "[forge.{name}]\nkind = \"forgejo\"\nsecret_files = [\"home.secret\"]\n\
             url = \"{url}\"\ntoken_file = \"{token}\"\nown_account = \"bot\"\n"
        )
    };
    let first = one("first", "home.token", &first);
    let lost = one("lost", "lost.token", "https://lost.example.org");
    let text = format!("{head}{first}{lost}[forge.home]{own}[repo.{rest}");
    std::fs::write(&file, text).expect("it is ours");
    page.run_once(human, "tenure dispatch check", None);
    std::fs::write(&file, before).expect("it is ours");
}

/// Runs a dispatcher until it says this about its forge; what it said about it.
fn trouble(env: &Env, forge: &str, host: &str, sends: impl Fn(&str), line: &str) -> String {
    let ann = env.agent("ann");
    let process = ann.start(Cmd::new("tenure").arg("dispatch"));
    let address = poll(SOON, "it listens", || {
        let said = process.stdout();
        let (_, rest) = said.split_once("http://")?;
        Some(rest.split_once('/')?.0.to_owned())
    });
    sends(&address);
    poll(SOON, line, || process.stdout().contains(line).then_some(()));
    poll(SOON, "all jobs end", || {
        let over = |job: &Value| job["state"] == "ended";
        jobs(env).iter().all(over).then_some(())
    });
    ann.tenure(&["dispatch", "stop"]).ok();
    let said = process.wait().ok().stdout;
    let lines = said.lines().filter(|line| line.starts_with("forge home"));
    let own = forge.trim_start_matches("http://");
    lines.map(|line| line.replace(own, host) + "\n").collect()
}

/// The same with a forge that fails when it is asked this.
fn failing(dialect: Dialect, rule: &str, asked: &str, fault: Fault, line: &str) -> String {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let forge = set_up_forge(&env, dialect, OFTEN, rule);
    if asked.ends_with("/issues/6") {
        // Only what is not in the list of what is open is asked for.
        forge.state().threads.remove(&6);
    }
    forge.state().fail(asked, usize::MAX, fault);
    let opened = issue(6, "opened");
    let sends = |address: &str| match dialect {
        Dialect::GitHub => drop(send_github(address, "issues", "d-1", &opened)),
        _ => drop(deliver_to(address, "issues", "d-1", &opened)),
    };
    trouble(&env, &forge.url, HOST, sends, line)
}

/// The same with a forge whose lists have no end.
fn endless() -> String {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, OFTEN, "");
    let own = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let known = own.clone();
    let url = answering(move |first| {
        if first.contains("/user ") {
            return http("", "{\"login\":\"bot\",\"id\":9}");
        }
        let base = known.get().expect("it is set before it is asked");
        let path = first.split(' ').nth(1).unwrap_or_default();
        http(&format!("Link: <{base}{path}>; rel=\"next\"\r\n"), "[]")
    });
    own.set(url.clone()).expect("it is set once");
    fill_in(&env, &forge.url, &url);
    let sends = |address: &str| {
        deliver_to(address, "issues", "d-1", &issue(6, "opened"));
    };
    trouble(&env, &url, HOST, sends, "too many pages")
}

const OFTEN: &str = "sweep = \"200ms\"";

/// A dispatcher reports trouble with a forge once in ten minutes, so each has one of its own.
#[test]
fn sweeps() {
    let env = env();
    let mut page = Page::new("74-forge-faults", &env);
    let human = session(&env, "human");
    let (forgejo, github) = (Dialect::Forgejo, Dialect::GitHub);
    let issues = "GET /repos/acme/web/issues";
    let one = "GET /repos/acme/web/issues/6";
    let hooks = "GET /repos/acme/web/hooks";
    let comments = "POST /repos/acme/web/issues/6/comments";
    let (odd, broken) = (|| status(200, ""), || status(500, "broken"));
    let all = std::thread::scope(|scope| {
        let list = scope.spawn(|| failing(forgejo, "", issues, odd(), "not a list"));
        let state = scope.spawn(|| failing(forgejo, "", one, odd(), "no known state"));
        let pages = scope.spawn(endless);
        let lost = scope.spawn(|| failing(github, "", hooks, broken(), "deliveries of"));
        let reply = "reply = \"comment\"";
        let id = scope.spawn(move || failing(github, reply, comments, odd(), "has no id"));
        [list, state, pages, lost, id].map(|one| one.join().expect("it is told"))
    });
    page.title("A forge that answers nonsense: each of these is a dispatcher of its own");
    for lines in all {
        page.show(
            human.pid(),
            "tenure dispatch | grep '^forge'",
            said(lines),
            None,
        );
    }
    page.check(&env);
}

//! Set-up of the dispatcher, offline.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tenure_testkit::{Agent, Env, Scripted};

use super::page::Page;
use crate::support::dispatch::{clone, fill_in, payload};
use crate::support::line::session;
use crate::support::webhook::{Dispatcher, set_up};

/// What can be wrong with forges, repositories and rules, one of each.
const MANY_FAULTS: &str = r#"concurrency = 0
sweep = "0s"
listen = "here"
keep_deliveries = "soon"

[forge."My Forge"]
kind = "svn"
secret_files = []
bots = ["@ci"]
url = "http://git.example.org"

[forge.work]
kind = "gitlab"
secret_files = ["missing"]
token_file = "missing"
ca_file = "issue.json"

[repo.web]
forge = "home"
dir = ""

[repo."acme/api"]
forge = "work"
url = "ext::sh"

[repo."acme/Api"]
forge = "work"
dir = "/dev"

[[rule]]
name = "fix"
on = ["issue.commented"]
associations = ["friend"]
authors = ["@alice"]
label = ""
branch = "[a"
agent = "claude"
skill = "a b"
timeout = "soon"
reply = "mail"
on_close = "wait"
env = ["1", "TENURE_X"]
wrap = [""]
caps = { runs_per_hour = 0 }
push = true
"#;

pub(super) fn dispatch(env: &mut Env, page: &mut Page) {
    let human = session(env, "human");
    let repo = clone(env);
    for name in ["issue", "comment", "pull_request", "delete"] {
        let to = repo.join(format!("{name}.json"));
        std::fs::copy(payload(&format!("forgejo/{name}")), to).expect("the clone is ours");
    }
    page.cd(&repo);
    page.keep_spans();
    page.title("Write dispatch.toml");
    page.run(&human, "tenure dispatch check");
    page.run_once(&human, "tenure dispatch init", None);
    page.run(&human, "tenure dispatch init");
    page.title("Check it");
    page.run(&human, "tenure dispatch check");
    fill_in(
        env,
        "authors = []",
        "authors = [\"alice\"]\nagnet = \"claude\"",
    );
    fill_in(env, "skill = \"implement\"", "skill = \"missing\"");
    let secret = env.home().join(".config/tenure/home.secret");
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&secret, mode).expect("it is ours");
    };
    mode(0o644);
    page.run(&human, "tenure dispatch check");
    mode(0o600);
    fill_in(env, "\nagnet = \"claude\"", "");
    fill_in(env, "skill = \"missing\"", "skill = \"implement\"");
    page.run(&human, "tenure dispatch check");
    for text in [MANY_FAULTS, "concurrency =\n"] {
        std::fs::write(repo.join("wrong.toml"), text).expect("the clone is ours");
        page.run(&human, "tenure dispatch check --config wrong.toml");
    }
    page.title("Explain a delivery");
    page.run(&human, "tenure dispatch explain issue.json --event issues");
    page.run(
        &human,
        "tenure dispatch explain comment.json --event issue_comment",
    );
    page.run(
        &human,
        "tenure dispatch explain pull_request.json --event pull_request",
    );
    page.run(&human, "tenure dispatch explain delete.json --event delete");
    page.run(&human, "tenure dispatch explain issue.json");
    page.run(
        &human,
        "tenure dispatch explain issue.json --forge work --event issues",
    );
    page.run(
        &human,
        "tenure dispatch explain missing.json --event issues",
    );
    page.title("Do a delivery again");
    page.run_once(
        &human,
        "tenure dispatch replay issue.json --event issues",
        None,
    );
    page.run_once(&human, "tenure dispatch replay 1", None);
    page.run(&human, "tenure dispatch explain 1");
    page.run_once(
        &human,
        "tenure dispatch replay comment.json --event issue_comment",
        None,
    );
    page.run(&human, "tenure queue deliveries");
    page.run(&human, "tenure dispatch replay delete.json --event fork");
    page.run(&human, "tenure dispatch replay 99");
}

/// Runs a line whose answer has a port in it, and shows it with the usual one.
fn with_port(
    page: &mut Page,
    human: &Agent,
    dir: &Path,
    port: &str,
    line: &str,
    kind: Option<&str>,
) {
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let mut output = human.tenure_in(dir, &words);
    let usual = |text: &str| text.replace(&format!(":{port}"), ":7421");
    (output.stdout, output.stderr) = (usual(&output.stdout), usual(&output.stderr));
    page.show(human.pid(), &usual(line), output, kind);
}

fn port_of(address: &str) -> String {
    let (_, port) = address.rsplit_once(':').expect("it has a port");
    port.to_owned()
}

pub(super) fn dispatcher(env: &mut Env, page: &mut Page) {
    let human = session(env, "human");
    Scripted::new(env, "mine", "init; done_");
    set_up(env, "");
    let dir = env.work();
    page.cd(&dir);
    page.title("Send a test delivery");
    page.run(&human, "tenure dispatch ping --listen 127.0.0.1:1");
    page.run(&human, "tenure dispatch ping work");
    let other = TcpListener::bind("127.0.0.1:0").expect("the loopback is there");
    let port = port_of(&other.local_addr().expect("it is bound").to_string());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().expect("it is called");
        let mut head = [0; 4096];
        assert!(stream.read(&mut head).expect("a request") > 0);
        let answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(answer).expect("it listens");
    });
    let line = format!("tenure dispatch ping --listen 127.0.0.1:{port}");
    with_port(page, &human, &dir, &port, &line, Some("other_program"));
    answering.join().expect("it answered");
    let door = Dispatcher::start(&human);
    let port = port_of(&door.address);
    with_port(page, &human, &dir, &port, "tenure dispatch ping", None);
    let secret = env.home().join(".config/tenure/home.secret");
    std::fs::write(&secret, "another").expect("it is ours");
    let kind = Some("not_accepted");
    with_port(page, &human, &dir, &port, "tenure dispatch ping", kind);
    page.title("Stop the dispatcher");
    with_port(page, &human, &dir, &port, "tenure dispatch stop", None);
    page.run(&human, "tenure dispatch stop");
    page.run(&human, "tenure dispatch stop --runs");
    page.run(&human, "tenure dispatch stop --drain 10m");
}

//! The page of what only a server brings about: roles, schemas, poolers, encryption, standbys.

use rustix::process::getuid;
use serde_json::{Value, json};
use tenure_app::late::kept::{Kept, Line};
use tenure_testkit::postgres::{Bouncer, PoolMode, Server, certificate};
use tenure_testkit::{Agent, Cmd, poll};

use crate::env;
use crate::messages::page::Page;
use crate::support::line::{SOON, run, session, take, text};
use crate::support::server::on;

/// A command on a store.
fn typed(url: &str, line: &str) -> String {
    format!("TENURE_STORE={url} tenure {line}")
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_page_shows_what_a_server_refuses() {
    let env = env();
    let mut server = Server::own(&[]);
    let pooler = Bouncer::start(&server, PoolMode::Statement, 3);
    let mut page = Page::new("93-server", &env);
    page.replace(
        &server.socket_dir().display().to_string(),
        "/run/postgresql",
    );
    page.replace(&server.port().to_string(), "5432");
    page.replace(&pooler.port().to_string(), "6432");
    let version = server.ask("SELECT split_part(current_setting('server_version'), ' ', 1)");
    page.replace(&version[0], "17");
    let ann = env.agent("ann");
    let url = server.url("work");
    let here = |line: &str| typed(&url, line);
    let set = |values: &str| server.run(&format!("UPDATE work.store SET {values}"));

    page.title("A store that was never made");
    page.run(&ann, &here("ps"));
    page.run(&ann, &here("store migrate"));
    page.run(&ann, &here("store migrate"));
    page.run(&ann, &here("ps"));
    page.title("A schema that is newer, older or incomplete");
    set("schema = 998, min_writer = 998, needs = '9.0.0'");
    page.run(&ann, &here("ps"));
    page.run(&ann, &here("store migrate"));
    set("schema = 0, min_writer = 0");
    page.run(&ann, &here("claim wp:1"));
    set("schema = 1, min_writer = 1, needs = '0.1.0'");
    server.run("ALTER TABLE work.claims RENAME TO away");
    page.run(&ann, &here("claims"));
    server.run("ALTER TABLE work.away RENAME TO claims");
    page.title("A store that moved, and an unfinished copy");
    set("moved_to = 'postgres://tenure@db.example/work'");
    page.run(&ann, &here("ps"));
    set("moved_to = NULL, copied_from = '/home/dev/.tenure/tenure.db', copy = 'c'");
    page.run(&ann, &here("ps"));
    set("copied_from = NULL, copy = NULL");
    page.title("Tables of another program");
    server.run("CREATE SCHEMA other");
    server.run("CREATE TABLE other.notes (text text)");
    page.run(&ann, &typed(&server.url("other"), "store migrate"));
    page.title("Roles, passwords and databases");
    server.run("CREATE ROLE reader LOGIN");
    let reader = server.url_as("reader", "work");
    page.run(&ann, &typed(&reader, "ps"));
    page.run(
        &ann,
        &typed(&server.url_as("reader", "new"), "store migrate"),
    );
    server.run("GRANT USAGE ON SCHEMA work TO reader");
    server.run("GRANT SELECT ON ALL TABLES IN SCHEMA work TO reader");
    page.run(&ann, &typed(&reader, "register --agent ann --pid 1"));
    server.run("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0");
    page.run(&ann, &typed(&server.url_as("crowded", "work"), "ps"));
    page.run(&ann, &typed(&server.url_as("nobody", "work"), "ps"));
    page.run(&ann, &typed(&server.tcp_url(Some("wrong"), "work"), "ps"));
    page.run(&ann, &typed(&server.tcp_url(None, "work"), "ps"));
    page.run(&ann, &typed(&url.replace("@/tenure?", "@/nowhere?"), "ps"));
    page.title("Encryption");
    let encrypted = server.tcp_url(Some(server.password()), "work");
    page.run(&ann, &typed(&format!("{encrypted}&sslmode=require"), "ps"));
    let unread = format!("{encrypted}&sslmode=verify-full&sslrootcert=/missing.pem");
    page.run(&ann, &typed(&unread, "ps"));
    let other = Server::encrypted();
    certificates(&mut page, &ann, &other);
    page.title("A pooler in statement mode");
    page.run(&ann, &typed(&pooler.url("work"), "ps"));
    page.title("A standby");
    server.stop(false);
    let signal = server.dir().join("data/standby.signal");
    std::fs::write(&signal, "").expect("its data is ours");
    server.start();
    page.run(&ann, &here("ps"));
    page.run(&ann, &here("claim wp:1"));
    page.title("A server that was stopped");
    server.stop(false);
    page.run(&ann, &here("ps"));
    page.run(&ann, &typed(&server.tcp_url(None, "work"), "ps"));
    page.check_without_sessions();
}

/// A server whose certificate is for another name, or from an authority that is not trusted.
fn certificates(page: &mut Page, ann: &Agent, server: &Server) {
    page.replace(&server.port().to_string(), "5433");
    let files = certificate("ca.pem");
    let files = files.parent().expect("they are in a directory");
    page.replace(&files.display().to_string(), "/etc/ssl");
    for (host, mode, roots) in [
        ("127.0.0.1", "verify-full", "ca.pem"),
        ("localhost", "verify-full", "other.pem"),
        ("localhost", "verify-ca", "README.md"),
    ] {
        let url = server.tcp_url(Some(server.password()), "work");
        let url = url.replace("127.0.0.1", host);
        let roots = certificate(roots).display().to_string();
        let url = format!("{url}&sslmode={mode}&sslrootcert={roots}");
        page.run(ann, &typed(&url, "ps"));
    }
}

/// A list of claims is good for four fifths of the lease, which is not over before the page is.
const LEASE: &str = "60s";

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_page_shows_a_keeper_and_a_store_that_cannot_be_reached() {
    let mut server = Server::own(&[]);
    let mut env = on(&server.url("work"));
    env.set("TENURE_HOST_LEASE", LEASE);
    let mut page = Page::new("95-keeper-on-server", &env);
    page.replace(
        &server.socket_dir().display().to_string(),
        "/run/postgresql",
    );
    page.replace(&server.port().to_string(), "5432");
    let claude = session(&env, "claude");
    take(&claude, "wp:1");
    take(&claude, "wp:2");
    page.learn(&env);
    let keeper = claude.start(Cmd::new("tenure").arg("keeper"));
    let shown = poll(SOON, "the keeper lists both claims", || {
        let shown = run(&claude, 0, "keeper status")["keeper"].clone();
        let is_listed = shown["keepers"][0].is_object() && shown["local"]["claims"] == 2;
        is_listed.then_some(shown)
    });
    page.replace(&text(&shown["local"]["id"]), "k-k7qd2m4zw9");
    page.replace(&text(&shown["keepers"][0]["host"]), "laptop");
    page.replace(&format!("uid {}", getuid().as_raw()), "uid 1000");
    page.title("A keeper that watches a session");
    page.ok(&claude, "tenure keeper status");
    page.title("A keeper of another machine that is silent");
    server.run(
        "INSERT INTO work.keepers SELECT 'k-k7qdwz4m9c', 'elsewhere', boot_id, boot_private, pid_ns, uid, pid, \
         version, 'build-3', started_at, seen_at - 259200000, 0, NULL, lease, lock_delay, by_role FROM work.keepers",
    );
    page.ok(&claude, "tenure keeper status");
    page.title("The store cannot be reached");
    server.stop(true);
    poll(SOON, "the keeper has noticed", || {
        let local = run(&claude, 0, "keeper status")["keeper"]["local"].clone();
        local["away_since"].is_string().then_some(())
    });
    page.ok(&claude, "tenure keeper status");
    page.ok(&claude, "tenure guard wp:1");
    page.run(&claude, "tenure guard wp:3");
    page.run(&claude, "tenure claim wp:3");
    let codex = env.agent("codex");
    page.run(&codex, "tenure guard wp:1");
    page.ok(&claude, "tenure ps");
    page.ok(&claude, "tenure status");
    page.ok(&claude, "tenure why wp:9");
    let spool = spool(&env.state().join("keeper"));
    page.replace(
        &spool.display().to_string(),
        "/home/dev/.tenure/keeper/1000-2c26b46b68ff.spool",
    );
    std::fs::create_dir(&spool).expect("nothing was given up yet");
    page.run(&claude, "tenure release wp:1");
    std::fs::remove_dir(&spool).expect("it is empty");
    page.ok(&claude, "tenure release wp:1");
    page.run(&claude, "tenure guard wp:1");
    page.ok(&claude, "tenure end");
    page.title("The store answers again");
    server.start();
    poll(SOON, "the end is in the log", || {
        let ended = env.tenure(&["ps", "--all", "--json"]);
        let is_told = ended.code == 0 && ended.json()["sessions"][0]["state"] == "ended";
        is_told.then_some(())
    });
    page.ok(&claude, "tenure log wp:1");
    page.ok(&claude, "tenure keeper stop");
    keeper.wait().ok();
    page.check(&env);
}

/// Where a release waits: named like the memory, but without the pid namespace.
fn spool(dir: &std::path::Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(dir).expect("a keeper runs").flatten();
    let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    let memory = names.find(|name| name.ends_with(".memory"));
    let memory = memory.expect("the keeper has a memory");
    let mut parts = memory.trim_end_matches(".memory").split('-');
    let (uid, digest) = (
        parts.next().expect("a user"),
        parts.next_back().expect("a store"),
    );
    dir.join(format!("{uid}-{digest}.spool"))
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_page_shows_an_answer_that_came_too_late() {
    const HOOK: &str = "tenure hook claude";
    let server = Server::own(&[]);
    let mut env = on(&server.url("work"));
    // On a busy machine, too, these answers are in time.
    env.set("TENURE_HOOK_WAIT", "10s");
    let mut page = Page::new("96-late-answers", &env);
    let dir = env.work();
    page.cd(&dir);
    let event = |conversation: &str, name: &str, more: Value| {
        let mut event = json!({
            "hook_event_name": name, "session_id": conversation, "cwd": dir,
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut event, more) {
            all.extend(more);
        }
        event
    };
    let write = |conversation: &str| {
        let input = json!({"file_path": dir.join("a.txt")});
        let write = json!({"tool_name": "Write", "tool_input": input});
        event(conversation, "PreToolUse", write)
    };
    let start = |conversation: &str| {
        let agent = env.agent("claude");
        let started = event(conversation, "SessionStart", json!({"source": "startup"}));
        send(&agent, &started);
        agent
    };
    let (ann, ben) = (start("7f3c"), start("91ab"));
    page.learn(&env);
    send(&ann, &write("7f3c"));
    page.title("A write that another session may overwrite");
    let said = page.hook(&ben, &write("91ab"), HOOK).json();
    let warning = said["hookSpecificOutput"]["additionalContext"].as_str();
    let warning = warning.expect("two sessions write one file");
    let message = said["systemMessage"].as_str();
    page.title("The same, if the store answers too late: with the next event");
    let status = env.tenure(&["store", "status", "--json"]).json();
    let store = text(&status["store"]["location"]);
    Kept::of(&env.state(), &store, "claude", "91ab")
        .keep(&[Line::of(warning.to_owned())], message, |_| ())
        .expect("the state is ours");
    let read = json!({"tool_name": "Read", "tool_input": {"file_path": dir.join("b.txt")}});
    page.hook(&ben, &event("91ab", "PostToolUse", read), HOOK);
    page.check(&env);
}

/// Sends an event that no page shows.
fn send(agent: &Agent, event: &Value) {
    let hook = Cmd::new("tenure").args(["hook", "claude"]);
    agent.run(hook.stdin(event.to_string())).ok();
}

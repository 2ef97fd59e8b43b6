//! The page of what only a server brings about: roles, schemas, poolers, encryption, standbys.

use rustix::process::getuid;
use tenure_testkit::postgres::{Bouncer, PoolMode, PostgresServer};
use tenure_testkit::{Cmd, Env, poll};

use super::page::Page;
use crate::support::line::{SOON, run, session, take, text};

/// A command on a store.
fn typed(url: &str, line: &str) -> String {
    format!("TENURE_STORE={url} tenure {line}")
}

pub(super) fn server(env: &mut Env, page: &mut Page) {
    let mut server = PostgresServer::own(&[]);
    let pooler = Bouncer::start(&server, PoolMode::Statement, 3);
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
    server.run("GRANT USAGE ON SCHEMA work TO reader");
    server.run("GRANT SELECT ON ALL TABLES IN SCHEMA work TO reader");
    page.run(&ann, &typed(&reader, "register --agent ann --pid 1"));
    page.run(&ann, &typed(&server.url_as("nobody", "work"), "ps"));
    page.run(&ann, &typed(&server.tcp_url(Some("wrong"), "work"), "ps"));
    page.run(&ann, &typed(&server.tcp_url(None, "work"), "ps"));
    page.run(&ann, &typed(&url.replace("@/tenure?", "@/nowhere?"), "ps"));
    page.title("Encryption");
    let encrypted = server.tcp_url(Some(server.password()), "work");
    page.run(&ann, &typed(&format!("{encrypted}&sslmode=require"), "ps"));
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
}

/// A list of claims is good for four fifths of the lease, which is not over before the page is.
const LEASE: &str = "60s";

pub(super) fn keeper_on_server(env: &mut Env, page: &mut Page) {
    let mut server = PostgresServer::own(&[]);
    env.set("TENURE_STORE", server.url("work"));
    env.tenure(&["store", "migrate"]).ok();
    env.set("TENURE_HOST_LEASE", LEASE);
    page.replace(
        &server.socket_dir().display().to_string(),
        "/run/postgresql",
    );
    page.replace(&server.port().to_string(), "5432");
    let claude = session(env, "claude");
    take(&claude, "wp:1");
    take(&claude, "wp:2");
    page.learn(env);
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
}

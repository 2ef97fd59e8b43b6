//! The page of a store on a server whose rows, clock or rights somebody changed, and of encryption that fails.

use std::io::{Read, Write};
use std::net::TcpListener;

use tenure_testkit::postgres::{Server, certificate};
use tenure_testkit::{Agent, Scripted};

use crate::env;
use crate::messages::page::Page;
use crate::support::line::{session, take};
use crate::support::run::fake_claude;
use crate::support::server::on;
use crate::support::webhook::set_up;

/// Changes of a store that leave it without what every command needs, and how each is undone.
const EMPTIED: &[(&str, &str, &str)] = &[
    (
        "UPDATE work.store SET schema = -1",
        "claims",
        "UPDATE work.store SET schema = 1",
    ),
    (
        "ALTER TABLE work.store ALTER COLUMN base DROP DEFAULT, ALTER COLUMN base TYPE text",
        "claims",
        "ALTER TABLE work.store ALTER COLUMN base TYPE bigint USING base::bigint",
    ),
    (
        "CREATE TABLE work.kept AS SELECT * FROM work.store; DELETE FROM work.store",
        "claims",
        "SELECT 1",
    ),
    (
        "SELECT 1",
        "store status",
        "INSERT INTO work.store SELECT * FROM work.kept; DROP TABLE work.kept",
    ),
    (
        "CREATE TABLE work.kept AS SELECT * FROM work.clock; DELETE FROM work.clock",
        "claim wp:2",
        "INSERT INTO work.clock SELECT * FROM work.kept; DROP TABLE work.kept",
    ),
    (
        "CREATE TABLE work.kept AS SELECT * FROM work.counter; DELETE FROM work.counter",
        "claim wp:1 --wait 5s",
        "INSERT INTO work.counter SELECT * FROM work.kept; DROP TABLE work.kept",
    ),
    (
        "ALTER TABLE work.claims ADD CONSTRAINT few CHECK (epoch < 0) NOT VALID",
        "claim wp:2",
        "ALTER TABLE work.claims DROP CONSTRAINT few",
    ),
    (
        "ALTER TABLE work.runs ALTER COLUMN shares_dir DROP NOT NULL; UPDATE work.runs SET shares_dir = NULL",
        "runs",
        "UPDATE work.runs SET shares_dir = 0",
    ),
    (
        "ALTER TABLE work.delivery_bodies ALTER COLUMN body DROP NOT NULL; \
         INSERT INTO work.deliveries (id, endpoint, received_at, event, verdict, why) \
         OVERRIDING SYSTEM VALUE VALUES (1, 'home', 1, 'issues', 'ignored', 'no rule'); \
         INSERT INTO work.delivery_bodies (delivery, size, body) VALUES (1, 2, NULL)",
        "dispatch explain 1",
        "DELETE FROM work.delivery_bodies",
    ),
];

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_page_shows_a_damaged_store_on_a_server() {
    let mut server = Server::own(&[]);
    let env = on(&server.url("work"));
    let mut page = Page::new("93-server-damaged", &env);
    page.replace(
        &server.socket_dir().display().to_string(),
        "/run/postgresql",
    );
    page.replace(&server.port().to_string(), "5432");
    let (claude, codex) = (session(&env, "claude"), session(&env, "codex"));
    take(&claude, "wp:1");
    fake_claude(&env, "keeps; init; ok 'it works'");
    codex
        .tenure(&["run", "claude", "wp:5", "--prompt", "fix"])
        .ok();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    page.learn(&env);
    page.title("A store that lacks what every command needs");
    for (damage, line, repair) in EMPTIED {
        server.run(damage);
        page.run(&codex, &format!("tenure {line}"));
        server.run(repair);
    }
    page.title("A server that does not answer");
    let mut other = server.asker();
    other.ask("BEGIN; LOCK TABLE work.store IN ACCESS EXCLUSIVE MODE");
    page.run(&codex, "tenure store status");
    other.ask("ROLLBACK");
    page.title("A role that may only read");
    server.run("CREATE ROLE reader LOGIN SUPERUSER");
    server.run("ALTER ROLE reader SET default_transaction_read_only = on");
    let reader = server.url_as("reader", "work");
    page.run(&codex, &format!("TENURE_STORE={reader} tenure claim wp:2"));
    let host = server.socket_dir().display().to_string();
    let twice = reader.replace(&host, &format!("{host},{host}"));
    page.run(&codex, &format!("TENURE_STORE={twice} tenure claim wp:2"));
    page.title("A server that lost its newest changes");
    server.stop(false);
    server.keep("kept");
    server.start();
    take(&codex, "wp:3");
    server.stop(false);
    server.bring_back("kept");
    server.start();
    page.run(&claude, "tenure status");
    page.check(&env);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_page_shows_encryption_that_fails() {
    let env = env();
    let mut page = Page::new("93-server-encryption", &env);
    let ann = env.agent("ann");
    for (title, name) in [
        ("A certificate that signed itself", "own"),
        ("An expired certificate", "past"),
    ] {
        let server = Server::encrypted_by(name);
        page.replace(&server.port().to_string(), "5433");
        let file = certificate(&format!("{name}.pem"));
        let folder = file.parent().expect("they are in a directory");
        page.replace(&folder.display().to_string(), "/etc/ssl");
        page.title(title);
        let url = server.tcp_url(Some(server.password()), "work");
        let url = url.replace("127.0.0.1", "localhost");
        let url = format!("{url}&sslmode=verify-full&sslrootcert={}", file.display());
        page.run(&ann, &format!("TENURE_STORE={url} tenure ps"));
    }
    page.title("A server that only says that it encrypts");
    nonsense(&mut page, &ann);
    page.check_without_sessions();
}

/// Agrees to encrypt, and then sends something else.
fn nonsense(page: &mut Page, ann: &Agent) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    page.replace(&port.to_string(), "5434");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut asked = [0; 8];
            if stream.read_exact(&mut asked).is_ok() {
                stream.write_all(b"Sthis is not TLS").ok();
                // Until the other side has seen it.
                stream.read_to_end(&mut Vec::new()).ok();
            }
        }
    });
    let url = format!("postgres://ann@127.0.0.1:{port}/work?sslmode=require");
    page.run(ann, &format!("TENURE_STORE={url} tenure ps"));
}

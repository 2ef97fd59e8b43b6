//! Files that a person or another program left in a state that tenure cannot use.

use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;
use serde_json::json;
use tenure_testkit::{Cmd, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::forge::forge;
use crate::support::hook::event;
use crate::support::installed::put;
use crate::support::line::{handle, session};
use crate::support::namespace::pid_namespace;

#[test]
fn machine() {
    let env = env();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    let mut page = Page::new("89-machine", &env);
    let human = session(&env, "human");
    page.learn(&env);
    page.title("Settings");
    let config = env.home().join(".config/tenure/config.toml");
    put(&config, "mirror = [\"web\"]\n");
    page.run(&human, "tenure config");
    std::fs::remove_file(&config).expect("it was just made");
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    put(&repo.join(".tenure.toml"), "claim = = 1\n");
    put(&repo.join(".tenure/config.toml"), "claim = = 1\n");
    let line = "tenure config | tail -n 1";
    let said = human.run(Cmd::shell(line).dir(&repo));
    page.show(human.pid(), line, said, None);
    page.title("A token that git asks for");
    let token = env.home().join("home.token");
    let asks = format!(
        "tenure __credential --user bot --file {} get",
        token.display()
    );
    let mode = || {
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&token, mode).expect("it was just made");
    };
    put(&token, "one\ntwo\n");
    mode();
    page.run_once(&human, &asks, Some("credential"));
    std::fs::write(&token, b"\xff\xfe\n").expect("the home is ours");
    page.run_once(&human, &asks, Some("credential"));
    page.title("A store on a server");
    page.run(
        &human,
        "tenure store copy /home/dev/.tenure/tenure.db postgres://ann@db.example:port/work",
    );
    let lonely = env.dir().join("lonely/tenure");
    std::fs::create_dir(env.dir().join("lonely")).expect("the environment is ours");
    std::fs::copy(env.tenure_path(), &lonely).expect("the environment is ours");
    let typed = "TENURE_STORE=postgres://ann@db.example/work tenure store status";
    let words = typed.replace(" tenure ", &format!(" {} ", lonely.display()));
    let said = human.run(Cmd::shell(&words));
    page.show(human.pid(), typed, said, Some("store_unavailable"));
    page.title("Warnings");
    let outages = env.state().join("outages.log");
    let now = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .expect("it is after 1970")
        .as_millis();
    put(&outages, &format!("{{\"at\": {now}}}\n"));
    page.run(&human, "tenure status");
    std::fs::remove_file(&outages).expect("it was just made");
    let file = env.state().join("tenure.db");
    let reader = Connection::open(&file).expect("it is a database");
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM sessions;")
        .expect("it can be read");
    let writer = Connection::open(&file).expect("it is a database");
    let log = env.state().join("tenure.db-wal");
    while std::fs::metadata(&log).expect("there is one").len() < 5 << 19 {
        writer
            .execute_batch("UPDATE sessions SET seen_at = seen_at + 1")
            .expect("it can be written");
    }
    let own = std::fs::read_to_string("/proc/self/comm").expect("it has a name");
    page.replace(&format!("({})", own.trim()), "(sqlite3)");
    page.run(&human, "tenure status");
    let line = format!("exec unshare {} tenure status", flags.join(" "));
    let typed = "unshare --pid --fork --mount-proc tenure status";
    page.show(human.pid(), typed, human.run(Cmd::shell(&line)), None);
    drop((reader, writer));
    page.title("Mirrors");
    put(&config, "[[mirror]]\npath = \"/dev/null/mirror.json\"\n");
    forge(
        &env,
        "CREATE TRIGGER refused BEFORE INSERT ON mirror_failures BEGIN SELECT raise(ABORT, 'no more rows'); END",
    );
    page.run(&human, "tenure claim wp:1");
    forge(&env, "DROP TRIGGER refused");
    forge(
        &env,
        "CREATE TRIGGER refused AFTER INSERT ON events BEGIN UPDATE events SET session = 'no session' WHERE rowid = new.rowid; END",
    );
    page.run_once(&human, "tenure claim wp:2 -- true", None);
    forge(&env, "DROP TRIGGER refused");
    forge(&env, "DELETE FROM events WHERE session = 'no session'");
    std::fs::remove_file(&config).expect("it was just made");
    page.title("What an agent says of itself");
    let claude = env.agent("claude");
    event(
        &claude,
        "SessionStart",
        &json!({"source": "startup", "cwd": env.work()}),
    );
    let now = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .expect("it is after 1970")
        .as_millis();
    page.replace(&format!("c-{}", claude.pid()), "c-1");
    let entry = json!({
        "pid": claude.pid(), "procStart": claude.stat().expect("it lives").start.to_string(),
        "version": "2.1.325", "sessionId": format!("c-{}", claude.pid()),
        "statusUpdatedAt": u64::try_from(now).expect("a time"), "status": "busy",
    });
    let own = env.home().join(".claude/sessions");
    put(
        &own.join(format!("{}.json", claude.pid())),
        &entry.to_string(),
    );
    page.learn(&env);
    let name = handle(&claude);
    page.run(&human, &format!("tenure show {name}"));
    page.check(&env);
}

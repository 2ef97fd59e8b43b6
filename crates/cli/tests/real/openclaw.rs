//! OpenClaw's gateway with our plugin: a session for each id, and ids that stay with their keys. One world, two starts.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;
use serde_json::{Value, json};
use tenure_testkit::real::RealWorld;
use tenure_testkit::{Background, Cmd, Output, poll};

use crate::world;

const VERSION: &str = "2026.9.6";
/// A start and a turn may take a minute each on a busy machine.
const LONG: Duration = Duration::from_secs(200);

/// Without the plugins that come with it, everything starts sooner.
const PLAIN: (&str, &str) = ("OPENCLAW_DISABLE_BUNDLED_PLUGINS", "1");

const A: &str = "agent:main:a";
const B: &str = "agent:main:b";
const C: &str = "agent:main:c";
const D: &str = "agent:main:d";
const E: &str = "agent:main:e";

struct Place {
    world: RealWorld,
    /// The tenure that the plugin runs.
    tenure: PathBuf,
}

/// A key as OpenClaw keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    key: String,
    id: String,
    /// The key of the id's window.
    window: Option<String>,
    /// How many records its transcript has.
    records: i64,
}

impl Place {
    fn begin() -> Self {
        let world = world();
        world.driver().set_patience(LONG);
        let cache = std::env::var_os("TENURE_REAL_AGENTS").map(PathBuf::from);
        let programs = format!("openclaw-{VERSION}/node_modules/.bin");
        let programs = cache.unwrap().join(programs);
        let bin = world.env().dir().join("bin");
        for name in ["openclaw", "node"] {
            symlink(programs.join(name), bin.join(name)).unwrap();
        }
        let tenure = world.env().dir().join("own/tenure");
        fs::create_dir_all(tenure.parent().unwrap()).unwrap();
        symlink(env!("CARGO_BIN_EXE_tenure"), &tenure).unwrap();
        let place = Self { world, tenure };
        fs::create_dir_all(place.dir()).unwrap();
        fs::write(place.config(), place.settings().to_string()).unwrap();
        place
    }

    fn settings(&self) -> Value {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        let model = json!({
            "id": "mock-model", "name": "Mock", "reasoning": false, "input": ["text"],
            "contextWindow": 200_000, "maxTokens": 8_192,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        });
        json!({
            "gateway": {"mode": "local", "port": port, "bind": "loopback", "auth": {"mode": "token", "token": "t"}},
            "agents": {"defaults": {
                "workspace": self.world.project(), "skipBootstrap": true,
                "model": {"primary": "mock/mock-model"}, "models": {"mock/mock-model": {}},
                "modelPolicy": {"allow": ["mock/mock-model"]},
            }},
            "models": {"mode": "merge", "providers": {"mock": {
                "baseUrl": format!("{}/v1", self.world.mock().url()), "apiKey": "dummy",
                "api": "openai-completions", "models": [model],
            }}},
            "tools": {"exec": {"host": "gateway", "security": "full", "ask": "off"}},
        })
    }

    fn dir(&self) -> PathBuf {
        self.world.home().join(".openclaw")
    }

    fn config(&self) -> PathBuf {
        self.dir().join("openclaw.json")
    }

    fn read_config(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.config()).unwrap()).unwrap()
    }

    /// Runs the tenure that the plugin runs.
    fn own(&self, args: &[&str]) -> Output {
        let program = self.tenure.to_str().unwrap();
        let run = Cmd::new(program).args(args.iter().copied());
        self.world.driver().run(run.env(PLAIN.0, PLAIN.1))
    }

    /// Starts the gateway and waits until it is ready.
    fn start(&self) -> Background {
        let run = Cmd::new("openclaw")
            .args(["gateway", "run"])
            .env("NO_COLOR", "1")
            .env(PLAIN.0, PLAIN.1);
        let gateway = self.world.driver().start(run);
        poll(LONG, "the gateway is ready", || {
            let said = gateway.stdout();
            assert!(gateway.is_alive(), "{said}{}", gateway.stderr());
            let is_ready = said.lines().any(|line| line.ends_with("[gateway] ready"));
            is_ready.then_some(())
        });
        gateway
    }

    /// Starts a turn of a key.
    fn turn(&self, key: &str, id: Option<&str>, prompt: &str) -> Background {
        let mut words = vec!["agent", "--session-key", key, "--json", "--timeout", "150"];
        words.extend(["--message", prompt]);
        words.extend(id.iter().flat_map(|id| ["--session-id", id]));
        let run = Cmd::new("openclaw").args(words).env(PLAIN.0, PLAIN.1);
        self.world.driver().start(run)
    }

    /// Starts a turn that runs this command, and returns where its output will be.
    fn shell(&self, key: &str, command: &str, name: &str) -> (Background, PathBuf) {
        let out = self.world.scratch().join(name);
        let fresh = out.with_extension("fresh");
        let (out_name, fresh) = (out.display(), fresh.display());
        let line = format!("({command}; echo code $?) > {fresh} 2>&1; mv {fresh} {out_name}");
        let called = json!({"command": line});
        let turn = self.turn(key, None, &format!("please\nMOCK:tool exec {called}"));
        (turn, out)
    }

    /// What a command printed that a turn of this key ran.
    #[track_caller]
    fn ran(&self, key: &str, command: &str, name: &str) -> String {
        let (turn, out) = self.shell(key, command, name);
        ended(turn);
        fs::read_to_string(out).unwrap()
    }

    fn rows(&self) -> Vec<Row> {
        let path = self.dir().join("agents/main/agent/openclaw-agent.sqlite");
        rows(&path)
    }

    fn row(&self, key: &str) -> Option<Row> {
        self.rows().into_iter().find(|row| row.key == key)
    }

    /// Lets a key take over the id of A; it must be refused, and the id must be its owner's alone again.
    fn intrude(&self, key: &str, id: &str) {
        let refused = self.turn(key, Some(id), "intrudes").wait();
        let is_told = refused.stdout.contains("tenure refused this message");
        assert!(refused.code != 0 || is_told, "{refused}");
        poll(LONG, "the id is its owner's alone again", || {
            let rows = self.rows();
            let mut with = rows.iter().filter(|row| row.id == id);
            let is_owners = |row: &Row| row.key == A && row.window.as_deref() == Some(A);
            (with.next().is_some_and(is_owners) && with.next().is_none()).then_some(())
        });
    }

    fn await_none_live(&self) {
        poll(LONG, "its sessions are over", || {
            self.live().is_empty().then_some(())
        });
    }

    /// The handles of the live sessions, by their titles.
    fn live(&self) -> BTreeMap<String, String> {
        let shown = self.own(&["ps", "--all", "--json"]).ok();
        let shown = shown.json();
        let sessions = shown["sessions"].as_array().unwrap();
        let live = sessions.iter().filter(|one| one["state"] == "live");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        live.map(|one| (text(&one["title"]), text(&one["handle"])))
            .collect()
    }
}

fn rows(path: &Path) -> Vec<Row> {
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    database.busy_timeout(LONG).unwrap();
    let query = "SELECT n.session_key, n.current_session_id, w.session_key,
            (SELECT count(*) FROM transcript_events t WHERE t.session_id = n.current_session_id)
        FROM session_nodes n LEFT JOIN session_windows w ON w.session_id = n.current_session_id";
    let mut statement = database.prepare(query).unwrap();
    let read = statement.query_map([], |row| {
        Ok(Row {
            key: row.get(0)?,
            id: row.get(1)?,
            window: row.get(2)?,
            records: row.get(3)?,
        })
    });
    read.unwrap().map(Result::unwrap).collect()
}

/// Waits for a turn, which must succeed.
#[track_caller]
fn ended(turn: Background) {
    let said = turn.wait();
    assert_eq!(said.code, 0, "{said}");
}

/// Two keys, and a claim refused between them.
fn claim_in_two_sessions(place: &Place) {
    let first = place.ran(A, "tenure claim wp:1", "first");
    assert!(first.contains("code 0"), "{first}");
    let second = place.ran(B, "tenure claim wp:1", "second");
    assert!(second.contains("code 3"), "{second}");
    assert_eq!(Vec::from_iter(place.live().into_keys()), [A, B]);
    assert!(place.world.mock().was_told("tenure knows this session as"));
}

/// By a key with a session of its own; then by a new key, during a turn of the owner and beside turns of two others; then
/// after /new, which OpenClaw accepts in silence.
fn take_over_an_id(place: &Place) -> String {
    let (owner, own) = (place.row(A).unwrap(), place.row(B).unwrap());
    let id = owner.id.clone();
    place.intrude(B, &id);
    assert_eq!(place.row(A).unwrap(), owner, "nothing of it was written");
    assert_eq!(place.row(B).unwrap(), own, "its own session is there");

    let held = [A, C, D];
    let turns = held.map(|key| place.turn(key, None, &format!("please\nMOCK:hold {key}")));
    let mock = place.world.mock();
    for key in held {
        let what = format!("MOCK:hold {key}");
        mock.await_asked(LONG, &what, |asked| asked.says(&what));
    }
    place.intrude(E, &id);
    held.iter().for_each(|key| mock.release(key));
    turns.into_iter().for_each(ended);

    ended(place.turn(A, None, "/new"));
    place.intrude(B, &id);
    let turns = [A, E].map(|key| place.turn(key, None, "again"));
    turns.into_iter().for_each(ended);
    assert_ne!(place.row(E).unwrap().id, id);
    id
}

fn check_what_is_known(place: &Place) {
    let item = format!("session:{A}");
    let log = place.own(&["log", &item, "--kind", "contamination", "--json"]);
    let log = log.ok();
    assert!(log.json()["events"].as_array().unwrap().len() >= 3, "{log}");
    place.own(&["verify", "--openclaw"]).ok();
    let live = place.live();
    let all = [A, B, C, D, E];
    assert!(all.iter().all(|key| live.contains_key(*key)), "{live:?}");
    let records = place.own(&["transcript", "verify", &live[A]]).ok();
    assert!(records.stdout.contains("no problems"), "{records}");
}

/// Another program behind the plugin's path, or none, changes nothing for OpenClaw.
fn go_on_without_tenure(place: &Place) {
    let fresh = place.tenure.with_extension("fresh");
    fs::write(&fresh, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&fresh, &place.tenure).unwrap();
    let slow = place.ran(B, "echo fine", "slow");
    assert!(slow.contains("fine"), "{slow}");
    fs::remove_file(&place.tenure).unwrap();
    let missing = place.ran(B, "echo fine", "missing");
    assert!(missing.contains("fine"), "{missing}");
    symlink(env!("CARGO_BIN_EXE_tenure"), &place.tenure).unwrap();
}

/// The database from before a repair, in a directory of its own.
fn verify_from_before(place: &Place, id: &str) {
    let copies = place.world.state().join("openclaw-copies");
    let copy = fs::read_dir(copies).unwrap().next().unwrap().unwrap();
    let dir = place.world.scratch().join("older");
    let agent = dir.join("agents/main/agent");
    fs::create_dir_all(&agent).unwrap();
    fs::copy(copy.path(), agent.join("openclaw-agent.sqlite")).unwrap();
    let dir = dir.to_str().unwrap();
    let seen = place.own(&["verify", "--openclaw", dir]).fails(6);
    let what = format!("its session id {id} belongs to {A}");
    assert!(seen.stdout.contains(&what), "{seen}");
    place.own(&["verify", "--openclaw", dir, "--fix"]).ok();
    place.own(&["verify", "--openclaw", dir]).ok();
}

fn uninstall(place: &Place, before: &Value) {
    place.own(&["uninstall", "openclaw"]).ok();
    let mut after = place.read_config();
    let settings = after.as_object_mut().unwrap();
    // OpenClaw's own notes, and what it leaves empty.
    settings.remove("meta");
    assert_eq!(settings.remove("plugins"), Some(json!({"entries": {}})));
    assert_eq!(after, *before);
    place.own(&["uninstall", "openclaw"]).ok();
}

#[test]
#[ignore = "runs a real agent"]
fn sessions_of_a_gateway_keep_their_ids_and_their_claims() {
    let place = Place::begin();
    let before = place.read_config();
    place.own(&["install", "openclaw"]).ok();
    place.own(&["install", "openclaw", "--check"]).ok();
    let gateway = place.start();
    claim_in_two_sessions(&place);
    let id = take_over_an_id(&place);
    check_what_is_known(&place);
    go_on_without_tenure(&place);

    gateway.kill9();
    place.await_none_live();
    place.own(&["verify", "--openclaw"]).ok();
    verify_from_before(&place, &id);
    let shown = place.own(&["resume", "--print"]).ok();
    let line = format!("openclaw agent --session-key {A} --message ");
    assert!(shown.stdout.contains(&line), "{shown}");

    // Its claims are free, and its sessions go on.
    let gateway = place.start();
    let third = place.ran(B, "tenure claim wp:1", "third");
    assert!(third.contains("code 0"), "{third}");
    assert!(gateway.signal(Signal::TERM));
    let stopped = gateway.wait();
    assert_eq!(stopped.code, 0, "{stopped}");
    place.await_none_live();
    uninstall(&place, &before);
}

//! OpenClaw's gateway with our plugin: a session for each id, and ids that stay with their keys. One world, two starts.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use tenure_testkit::real::RealWorld;
use tenure_testkit::{Background, Cmd, Output, poll};

use crate::world;

const VERSION: &str = "2026.9.6";
/// A start and a turn take a minute each on a busy machine.
const LONG: Duration = Duration::from_secs(400);

struct Place {
    world: RealWorld,
    /// The tenure that the plugin runs.
    tenure: PathBuf,
}

impl Place {
    fn begin() -> Self {
        let world = world();
        world.driver().set_patience(LONG);
        let cache = std::env::var_os("TENURE_REAL_AGENTS")
            .map(PathBuf::from)
            .unwrap();
        let programs = cache.join(format!("openclaw-{VERSION}/node_modules/.bin"));
        let bin = world.env().dir().join("bin");
        for name in ["openclaw", "node"] {
            symlink(programs.join(name), bin.join(name)).unwrap();
        }
        let tenure = world.env().dir().join("own/tenure");
        std::fs::create_dir_all(tenure.parent().unwrap()).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_tenure"), &tenure).unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let model = json!({
            "id": "mock-model", "name": "Mock", "reasoning": false, "input": ["text"],
            "contextWindow": 200_000, "maxTokens": 8_192,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        });
        let settings = json!({
            "gateway": {"mode": "local", "port": port, "bind": "loopback", "auth": {"mode": "token", "token": "t"}},
            "agents": {"defaults": {
                "workspace": world.project(), "skipBootstrap": true,
                "model": {"primary": "mock/mock-model"}, "models": {"mock/mock-model": {}},
                "modelPolicy": {"allow": ["mock/mock-model"]},
            }},
            "models": {"mode": "merge", "providers": {"mock": {
                "baseUrl": format!("{}/v1", world.mock().url()), "apiKey": "dummy",
                "api": "openai-completions", "models": [model],
            }}},
            "tools": {"exec": {"host": "gateway", "security": "full", "ask": "off"}},
        });
        let dir = world.home().join(".openclaw");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("openclaw.json"), settings.to_string()).unwrap();
        Self { world, tenure }
    }

    fn own(&self, args: &[&str]) -> Output {
        let program = self.tenure.to_str().unwrap();
        self.world
            .driver()
            .run(Cmd::new(program).args(args.iter().copied()))
    }

    fn start(&self) -> Background {
        let run = Cmd::new("openclaw")
            .args(["gateway", "run"])
            .env("NO_COLOR", "1");
        let gateway = self.world.driver().start(run);
        poll(LONG, "the gateway is ready", || {
            assert!(
                gateway.is_alive(),
                "{}{}",
                gateway.stdout(),
                gateway.stderr()
            );
            let said = gateway.stdout();
            said.lines()
                .any(|line| line.ends_with("[gateway] ready"))
                .then_some(())
        });
        gateway
    }

    fn turn(&self, key: &str, id: Option<&str>, prompt: &str) -> Background {
        let prompt = format!("please\n{prompt}");
        let mut words = vec![
            "agent",
            "--session-key",
            key,
            "--json",
            "--timeout",
            "300",
            "-m",
            &prompt,
        ];
        words.extend(id.iter().flat_map(|id| ["--session-id", id]));
        self.world.driver().start(Cmd::new("openclaw").args(words))
    }

    #[track_caller]
    fn turns(&self, key: &str, prompt: &str) -> String {
        let said = self.turn(key, None, prompt).wait();
        assert_eq!(said.code, 0, "{key}: {said}");
        said.stdout
    }

    fn database(&self) -> PathBuf {
        self.world
            .home()
            .join(".openclaw/agents/main/agent/openclaw-agent.sqlite")
    }

    /// Key, id, the key of the id's window and how long its transcript is.
    fn rows(&self) -> Vec<(String, String, Option<String>, i64)> {
        let database =
            Connection::open_with_flags(self.database(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        database.busy_timeout(LONG).unwrap();
        let query = "SELECT n.session_key, n.current_session_id, w.session_key,
                (SELECT count(*) FROM transcript_events t WHERE t.session_id = n.current_session_id)
            FROM session_nodes n LEFT JOIN session_windows w ON w.session_id = n.current_session_id";
        let mut statement = database.prepare(query).unwrap();
        let rows = statement.query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        });
        rows.unwrap().map(Result::unwrap).collect()
    }

    fn row(&self, key: &str) -> Option<(String, Option<String>, i64)> {
        let found = self.rows().into_iter().find(|row| row.0 == key)?;
        Some((found.1, found.2, found.3))
    }

    /// Waits until an id is its owner's alone.
    fn healed(&self, owner: &str, id: &str) {
        poll(LONG, "the id is its owner's alone again", || {
            let rows = self.rows();
            let with: Vec<&str> = rows
                .iter()
                .filter(|row| row.1 == id)
                .map(|row| row.0.as_str())
                .collect();
            let window = rows.iter().find(|row| row.0 == owner)?.2.clone();
            (with == [owner] && window.as_deref() == Some(owner)).then_some(())
        });
    }

    fn sessions(&self) -> Vec<Value> {
        let shown = self.own(&["ps", "--all", "--json"]).ok();
        shown.json()["sessions"].as_array().unwrap().clone()
    }
}

fn write_program(path: &Path, text: &str) {
    let fresh = path.with_extension("fresh");
    std::fs::write(&fresh, text).unwrap();
    std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&fresh, path).unwrap();
}

#[test]
#[ignore = "runs a real agent"]
fn sessions_of_a_gateway_keep_their_ids_and_their_claims() {
    let place = Place::begin();
    place.own(&["install", "openclaw"]).ok();
    place.own(&["install", "openclaw", "--check"]).ok();
    let gateway = place.start();

    // Two keys, and a claim refused between them.
    place.turns(
        "agent:main:a",
        "MOCK:tool exec {\"command\": \"tenure claim wp:1 && tenure whoami\"}",
    );
    let second = place.turns(
        "agent:main:b",
        "MOCK:tool exec {\"command\": \"tenure claim wp:1; echo code $?\"}",
    );
    assert!(second.contains("code 3"), "{second}");
    let sessions = place.sessions();
    for key in ["agent:main:a", "agent:main:b"] {
        let has_it = |session: &&Value| session["title"] == key;
        assert_eq!(sessions.iter().filter(has_it).count(), 1, "{sessions:#?}");
    }
    assert!(
        place
            .world
            .mock()
            .asked()
            .iter()
            .any(|asked| asked.says("tenure knows this session as"))
    );

    // By the command line, with a session of its own before.
    let (id, _, length) = place.row("agent:main:a").unwrap();
    let (other, _, _) = place.row("agent:main:b").unwrap();
    let refused = place.turn("agent:main:b", Some(&id), "intrudes").wait();
    assert_ne!(refused.code, 0, "{refused}");
    place.healed("agent:main:a", &id);
    assert_eq!(
        place.row("agent:main:a").unwrap().2,
        length,
        "nothing of it was written"
    );
    assert_eq!(
        place.row("agent:main:b").unwrap().0,
        other,
        "its own session is there"
    );

    // During a turn of the owner, beside turns of two other keys, by a new key.
    let held = place.turn("agent:main:a", None, "MOCK:hold owner");
    let beside =
        ["agent:main:c", "agent:main:d"].map(|key| place.turn(key, None, "MOCK:hold beside"));
    for name in ["owner", "beside"] {
        let asked = move |asked: &tenure_testkit::Asked| asked.says(&format!("MOCK:hold {name}"));
        place.world.mock().await_asked(LONG, "to hold", asked);
    }
    let refused = place.turn("agent:main:e", Some(&id), "intrudes").wait();
    assert_ne!(refused.code, 0, "{refused}");
    place.healed("agent:main:a", &id);
    place.world.mock().release("owner");
    place.world.mock().release("beside");
    for turn in beside.into_iter().chain([held]) {
        let said = turn.wait();
        assert_eq!(said.code, 0, "{said}");
    }

    // After /new, which OpenClaw accepts in silence.
    place.turns("agent:main:a", "/new");
    let refused = place.turn("agent:main:b", Some(&id), "intrudes").wait();
    assert_ne!(refused.code, 0, "{refused}");
    place.healed("agent:main:a", &id);
    place.turns("agent:main:a", "again");
    place.turns("agent:main:b", "again");
    place.turns("agent:main:e", "again");
    assert_ne!(place.row("agent:main:e").unwrap().0, id);
    let log = place
        .own(&[
            "log",
            "session:agent:main:a",
            "--kind",
            "contamination",
            "--json",
        ])
        .ok();
    assert!(log.json()["events"].as_array().unwrap().len() >= 3, "{log}");
    place.own(&["verify", "--openclaw"]).ok();
    let live = |state: &str| {
        let is_live = |session: &&Value| session["state"] == state;
        place.sessions().iter().filter(is_live).count()
    };
    assert!(live("live") >= 5, "{:#?}", place.sessions());

    // The program behind the plugin is exchanged: OpenClaw goes on.
    let whole = std::fs::read(&place.tenure).unwrap();
    for other in ["#!/bin/sh\nexit 1\n", "#!/bin/sh\nexec sleep 1000\n"] {
        write_program(&place.tenure, other);
        place.turns(
            "agent:main:b",
            "MOCK:tool exec {\"command\": \"echo fine\"}",
        );
    }
    std::fs::remove_file(&place.tenure).unwrap();
    place.turns(
        "agent:main:b",
        "MOCK:tool exec {\"command\": \"echo fine\"}",
    );
    let fresh = place.tenure.with_extension("fresh");
    std::fs::write(&fresh, whole).unwrap();
    std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&fresh, &place.tenure).unwrap();

    // Killed, its sessions are dead and their claims free; started again, they are there again.
    gateway.kill9();
    poll(LONG, "its sessions are dead", || {
        (live("live") == 0).then_some(())
    });
    let gateway = place.start();
    let again = place.turns(
        "agent:main:b",
        "MOCK:tool exec {\"command\": \"tenure claim wp:1; echo code $?\"}",
    );
    assert!(again.contains("code 0"), "{again}");
    gateway.kill9();
    place.own(&["uninstall", "openclaw"]).ok();
    let config =
        std::fs::read_to_string(place.world.home().join(".openclaw/openclaw.json")).unwrap();
    assert!(!config.contains("tenure-plugin"), "{config}");
}

//! Claude Code on two hosts with one store on a server: one claim, one file, and a database that stops in between.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::postgres::PostgresServer;
use tenure_testkit::real::{Real, RealWorld, TurnBuilder};
use tenure_testkit::{Agent, Background, Cmd, Host, poll};

use crate::state::{LONG, Left};

const RESERVED: &str = "path:team/project:src/**";

/// A host with an agent's driver, a state directory and a keeper of its own.
struct Machine<'w> {
    world: &'w RealWorld,
    url: String,
    home: String,
    // Dropped in this order.
    driver: Agent,
    _host: Host,
}

impl<'w> Machine<'w> {
    fn start(
        world: &'w RealWorld,
        server: &PostgresServer,
        name: &str,
        boot: &str,
    ) -> Option<Self> {
        let host = world.env().host(name, boot)?;
        let driver = host.agent("driver");
        driver.set_patience(LONG * 2);
        Some(Self {
            world,
            url: server.url("tenure"),
            home: world.env().dir().join(name).display().to_string(),
            driver,
            _host: host,
        })
    }

    fn variables(&self) -> [(&'static str, &str); 3] {
        [
            ("TENURE_STORE", self.url.as_str()),
            ("TENURE_HOME", self.home.as_str()),
            ("TENURE_KEEPER_START", "true"),
        ]
    }

    fn claude(&self, steps: &[String]) -> Background {
        let ask = self.world.agent(Real::Claude).fresh(&steps.join("\n"));
        let all = self.variables().into_iter();
        let ask = all.fold(ask, |ask: TurnBuilder<'_>, (key, value)| {
            ask.env(key, value)
        });
        self.driver.start(ask.command())
    }

    /// What tenure answers here to a person.
    #[track_caller]
    fn person(&self, line: &str) -> Value {
        let words = line.split_whitespace().chain(["--json"]);
        let all = self.variables().into_iter();
        let command = all.fold(Cmd::new("tenure").args(words), |command, (key, value)| {
            command.env(key, value)
        });
        self.driver.run(command).ok().json()
    }
}

fn write(file: &Path, content: &str) -> String {
    let input = json!({"file_path": file, "content": content});
    format!("MOCK:tool Write {input}")
}

/// The code of a guard, left in a file.
fn guarded(left: &Left) -> String {
    format!(
        "MOCK:bash {}",
        left.by(&format!(
            "tenure guard '{RESERVED}' >/dev/null 2>&1; echo $?"
        ))
    )
}

#[test]
#[ignore = "runs a real agent"]
fn two_hosts_share_a_claim_while_the_database_stops_and_comes_back() {
    let world = crate::world();
    world.agent(Real::Claude);
    let _installed = world.tenure(&["install", "claude", "--mode", "block"]).ok();
    let mut server = PostgresServer::own(&[]);
    let a = Machine::start(&world, &server, "a", "00000000-0000-4000-8000-00000000000a");
    let b = Machine::start(&world, &server, "b", "00000000-0000-4000-8000-00000000000b");
    let (Some(a), Some(b)) = (a, b) else {
        let why = "this machine makes no pid namespaces for us";
        writeln!(std::io::stderr(), "skipped: team: {why}").ok();
        return;
    };
    a.person("store migrate");
    let file = world.project().join("src/db.rs");
    let claimed = Left::new(&world, "claimed");
    let (away, back) = (Left::new(&world, "away"), Left::new(&world, "back"));
    let first = a.claude(&[
        format!(
            "MOCK:bash {}",
            claimed.by(&format!("tenure claim '{RESERVED}'"))
        ),
        "MOCK:hold outage".to_owned(),
        guarded(&away),
        write(&file, "first"),
        "MOCK:hold return".to_owned(),
        guarded(&back),
        "MOCK:hold end".to_owned(),
    ]);
    claimed.text();
    poll(LONG, "its keeper lists the claim", || {
        let local = a.person("keeper status")["keeper"]["local"].clone();
        (local["claims"] == 1).then_some(())
    });
    // The other host is kept from the file, and told by whom.
    let other = world.project().join("src/other.rs");
    let refused = b.claude(&[write(&other, "second")]).wait();
    assert_eq!(refused.code, 0, "{refused}");
    assert!(!other.exists(), "{refused}");
    let holder = a.person("why path:team/project:src/**");
    let holder = holder["claim"]["holder"]["handle"].as_str().unwrap();
    let told = format!("is reserved by {holder} ({RESERVED})");
    assert!(world.mock().was_told(&told), "{told}");
    // The database stops; the first goes on by what its keeper knows.
    server.stop(true);
    world.mock().release("outage");
    assert_eq!(away.text().trim(), "0", "permitted from memory");
    poll(LONG, "it writes", || file.exists().then_some(()));
    server.start();
    world.mock().release("return");
    assert_eq!(back.text().trim(), "0", "it still holds it");
    let waits = format!("tenure claim '{RESERVED}' --wait 60s >/dev/null");
    let mine = Left::new(&world, "mine");
    let second = b.claude(&[
        format!("MOCK:bash {}", mine.by(&format!("{waits}; echo $?"))),
        write(&other, "second"),
    ]);
    poll(LONG, "the second waits", || {
        let shown = b.person("why path:team/project:src/**");
        let waiters = shown["why"]["waiters"].as_array().map(Vec::len);
        (waiters == Some(1)).then_some(())
    });
    world.mock().release("end");
    let first = first.wait();
    assert_eq!(first.code, 0, "{first}");
    assert_eq!(mine.text().trim(), "0", "it got the claim");
    let second = second.wait();
    assert_eq!(second.code, 0, "{second}");
    assert!(other.exists(), "{second}");
    for machine in [&a, &b] {
        machine.person("keeper stop");
    }
}

//! A store with sessions, its server, and a browser that looks at it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Background, Cmd, Env, poll};

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(20);

pub fn env() -> Env {
    let server = Path::new(env!("CARGO_BIN_EXE_tenure-server"));
    Env::new(&server.with_file_name("tenure"))
}

/// An agent that is a session, and its handle.
pub struct Member {
    pub agent: Agent,
    pub handle: String,
}

impl Member {
    pub fn new(env: &Env, name: &str, conversation: &str) -> Self {
        Self::in_dir(env, name, conversation, &env.work())
    }

    pub fn in_dir(env: &Env, name: &str, conversation: &str, dir: &Path) -> Self {
        let agent = env.agent(name);
        let pid = agent.pid().to_string();
        let words = [
            "register",
            "--agent",
            name,
            "--pid",
            &pid,
            "--native-id",
            conversation,
            "--json",
        ];
        let answer = agent.tenure_in(dir, &words).ok().json();
        let handle = answer["session"]["handle"].as_str().unwrap().to_owned();
        Self { agent, handle }
    }

    /// Reports an event in the generic form.
    pub fn report(&self, mut event: Value) {
        event["pid"] = json!(self.agent.pid());
        self.agent
            .tenure_stdin(&["hook", "generic"], &event.to_string())
            .ok();
    }

    pub fn busy(&self, title: &str) {
        self.report(json!({"event": "busy", "title": title}));
    }

    pub fn asks(&self, question: &str) {
        self.report(json!({"event": "waiting", "asks": question}));
    }

    pub fn claim(&self, key: &str) {
        self.agent.tenure(&["claim", key]).ok();
    }
}

/// A running `tenure serve`, started by a person.
pub struct Server {
    _person: Agent,
    pub process: Background,
    pub port: u16,
    /// Where a login begins.
    pub url: String,
}

impl Server {
    pub fn new(env: &Env) -> Self {
        Self::at(env, 0)
    }

    /// On this port; 0 is any.
    pub fn at(env: &Env, port: u16) -> Self {
        let listen = format!("127.0.0.1:{port}");
        let command = Cmd::new("tenure").args(["serve", "--listen", &listen, "--open"]);
        Self::by(env.agent("person"), command)
    }

    /// Started by this person with this command.
    pub fn by(person: Agent, command: Cmd) -> Self {
        let process = person.start(command);
        let url = poll(SOON, "the address of a login", || {
            let said = process.stdout() + &process.stderr();
            assert!(process.is_alive(), "{said}");
            let found = said
                .split_whitespace()
                .find(|word| word.contains("/#code="))?;
            Some(found.to_owned())
        });
        let rest = url.rsplit_once("/#").unwrap().0;
        let port = rest.rsplit_once(':').unwrap().1.parse().unwrap();
        Self {
            _person: person,
            process,
            port,
            url,
        }
    }

    /// The address without a login.
    pub fn page(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}

/// Chromium with its driver. Dropping it ends both.
pub struct Browser {
    driver: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

fn program(variable: &str) -> PathBuf {
    let Some(found) = std::env::var_os(variable) else {
        panic!("{variable} is not set; run: scripts/test --stage browser");
    };
    PathBuf::from(found)
}

impl Browser {
    pub fn start(env: &Env) -> Self {
        let home = env.dir().join("browser");
        std::fs::create_dir_all(&home).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/driver.mjs");
        let mut driver = Command::new("node")
            .arg(script)
            .arg(home.join("profile"))
            .env("HOME", &home)
            .env("TMPDIR", &home)
            .env("TENURE_CHROMIUM", program("TENURE_CHROMIUM"))
            .env("TENURE_WEB_TOOLS", program("TENURE_WEB_TOOLS"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = driver.stdin.take();
        let output = BufReader::new(driver.stdout.take().unwrap());
        Self {
            driver,
            input,
            output,
        }
    }

    /// Logs in, in the first tab, and waits for the fleet.
    pub fn login(env: &Env, server: &Server) -> Self {
        let mut browser = Self::start(env);
        browser.run(&format!("await page.goto({:?})", server.url));
        browser.run("await page.waitForSelector('.link-state:has-text(\"live\")')");
        browser
    }

    /// Runs this as the body of an async function with `page`, and hands out what it returns.
    #[track_caller]
    pub fn run(&mut self, code: &str) -> Value {
        self.run_in(0, code)
    }

    /// The same in another tab, which is opened with this.
    #[track_caller]
    pub fn run_in(&mut self, tab: usize, code: &str) -> Value {
        let line = json!({"tab": tab, "code": code}).to_string();
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        assert_ne!(
            self.output.read_line(&mut answer).unwrap(),
            0,
            "the browser's driver ended"
        );
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(
            answer["error"].is_null(),
            "{code}\n{}",
            answer["error"].as_str().unwrap()
        );
        answer["value"].clone()
    }

    /// The text of the page.
    #[track_caller]
    pub fn text(&mut self) -> String {
        let text = self.run("return await page.innerText('body')");
        text.as_str().unwrap().to_owned()
    }

    /// The handles of the fleet's rows, in their order.
    #[track_caller]
    pub fn rows(&mut self) -> Vec<String> {
        let rows = self.run("return await page.$$eval('table.fleet tbody th button', (all) => all.map((one) => one.textContent))");
        serde_json::from_value(rows).unwrap()
    }

    /// Waits until a row has a text.
    #[track_caller]
    pub fn row_shows(&mut self, handle: &str, text: &str) {
        self.run(&format!(
            "await page.waitForSelector(`table.fleet tr:has(button.link:has-text({handle:?})):has-text({text:?})`)"
        ));
    }

    /// What axe finds wrong with the page as it is.
    #[track_caller]
    pub fn is_accessible(&mut self, what: &str) {
        let found = self.run("return await axe(page)");
        let found: Vec<String> = serde_json::from_value(found).unwrap();
        assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
    }

    /// No script failed, and nothing was refused by the page's policy.
    #[track_caller]
    pub fn ends_clean(mut self) {
        let problems = self.run("return problems");
        assert_eq!(problems, json!([]));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver closes the browser when there are no more lines.
        self.input = None;
        let ended = self.driver.wait();
        assert!(std::thread::panicking() || ended.is_ok_and(|code| code.success()));
    }
}

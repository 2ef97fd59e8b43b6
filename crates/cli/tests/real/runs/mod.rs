//! `tenure run` with the real agents: what is recorded is what they did.
//!
//! `TENURE_RUN_TABLE` names a directory for the cells of the table in docs/agents.md; `scripts/run-table` makes the
//! table of them.

/// Makes a test of a scenario for each of these agents.
macro_rules! of {
    ($scenario:ident $($agent:ident $kind:ident)*) => {
        mod $scenario {
            $(#[test] #[ignore = "runs a real agent"]
            fn $agent() { super::$scenario(tenure_testkit::real::Real::$kind); })*
        }
    };
}

/// A test of each scenario for every agent.
macro_rules! of_every_agent {
    ([$($scenario:ident)*]) => {
        $(of! { $scenario claude Claude codex Codex gemini Gemini opencode Opencode qwen Qwen })*
    };
}

/// The same without Qwen Code; why is in [`table`].
macro_rules! of_each_agent {
    ([$($scenario:ident)*]) => {
        $(of! { $scenario claude Claude codex Codex gemini Gemini opencode Opencode })*
    };
}

/// The same for two agents of different makes: what is tested is tenure's own more than theirs.
macro_rules! of_two_agents {
    ([$($scenario:ident)*]) => { $(of! { $scenario claude Claude codex Codex })* };
}

mod conversations;
mod deaths;
mod holding;
mod prompts;
mod providers;
mod stops;
mod table;
mod trust;

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::{Background, Cmd, Output, RecordedRequest, poll};

use crate::state::{LONG, hooked};

const ITEM: &str = "issue:team/project#6";

/// A world with one agent whose runs are looked at.
struct Runs {
    kind: Real,
    world: RealWorld,
    /// Variables for the commands that start runs.
    env: Vec<(&'static str, Option<&'static str>)>,
    /// Arguments for the agent.
    arguments: Vec<&'static str>,
}

impl Runs {
    /// In a repository that the user trusts.
    #[track_caller]
    fn begin(kind: Real) -> Runs {
        let runs = Runs {
            kind,
            world: hooked(kind),
            env: Vec::new(),
            arguments: match kind {
                Real::Codex => vec!["--dangerously-bypass-hook-trust"],
                Real::Gemini => vec!["-m", "gemini-2.5-flash"],
                _ => Vec::new(),
            },
        };
        runs.settings("[repo.\"team/project\"]\ntrusted = true\n");
        runs
    }

    fn settings(&self, text: &str) {
        let dir = self.world.home().join(".config/tenure");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), text).unwrap();
    }

    /// Writes a file of the user's skills.
    fn skill(&self, name: &str, text: &str) {
        let dir = self.world.home().join(".config/tenure/skills");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(name), text).unwrap();
    }

    /// `tenure run AGENT ITEM` with these words before the agent's own arguments.
    fn command(&self, words: &[&str]) -> Cmd {
        let cmd = Cmd::new("tenure").args(["run", self.kind.name(), ITEM]);
        let own = ["--"].iter().chain(&self.arguments).copied();
        let cmd = cmd.args(words.iter().copied()).args(own);
        self.env.iter().fold(cmd, |cmd, (key, value)| match value {
            Some(value) => cmd.env(key, *value),
            None => cmd.unset(key),
        })
    }

    #[track_caller]
    fn run(&self, words: &[&str]) -> Output {
        self.world.driver().run(self.command(words))
    }

    #[track_caller]
    fn start(&self, words: &[&str]) -> Background {
        self.world.driver().start(self.command(words))
    }

    /// Every run, the newest first.
    #[track_caller]
    fn all(&self) -> Vec<Value> {
        let shown = self.world.tenure(&["runs", "--json"]).ok().json();
        shown["runs"].as_array().unwrap().clone()
    }

    #[track_caller]
    fn newest(&self) -> Value {
        self.all().into_iter().next().expect("a run")
    }

    /// Waits until the newest run is like this.
    #[track_caller]
    fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        poll(LONG, what, || self.all().into_iter().next().filter(&is))
    }

    #[track_caller]
    fn history(&self) -> Value {
        let words = ["conversation", "history", self.kind.name(), ITEM, "--json"];
        self.world.tenure(&words).ok().json()["history"].clone()
    }

    /// Starts a run whose agent has used a tool and waits for its model.
    #[track_caller]
    fn start_held(&self, words: &[&str]) -> (Background, Value) {
        self.start_using("echo began", words)
    }

    /// The same, with a tool that runs this.
    #[track_caller]
    fn start_using(&self, command: &str, words: &[&str]) -> (Background, Value) {
        let prompt = format!("MOCK:bash {command}\nMOCK:hold here");
        let window = self.start(&[&["--prompt", &prompt], words].concat());
        let is_second = |asked: &RecordedRequest| asked.offers_tools() && script_acts(asked) > 0;
        self.world
            .mock()
            .await_asked(LONG, "what comes after the tool", is_second);
        let run = self.until("the conversation is known", |run| {
            run["native_id"].is_string()
        });
        (window, run)
    }

    /// What tenure refused, of a command with `--json`.
    #[track_caller]
    fn refused(&self, words: &[&str]) -> Value {
        let said = self
            .run(&[&["--json", "--prompt", "hello"], words].concat())
            .fails(125);
        let last = said.stdout.lines().last().expect("an object");
        serde_json::from_str::<Value>(last).unwrap()["error"].clone()
    }

    /// How often the model was asked for a step of a turn.
    fn steps(&self) -> usize {
        let asked = self.world.mock().asked();
        asked.iter().filter(|asked| asked.offers_tools()).count()
    }

    /// The newest question to the model that was a step of a turn.
    #[track_caller]
    fn last_step(&self) -> RecordedRequest {
        let asked = self.world.mock().asked();
        asked
            .into_iter()
            .rfind(RecordedRequest::offers_tools)
            .expect("a step")
    }

    /// Leaves a cell of the table.
    fn cell(&self, column: &str, cell: &str) {
        table::leave(self.kind.name(), column, cell);
    }
}

/// How many tools have answered in what the model was shown.
fn script_acts(asked: &RecordedRequest) -> usize {
    let text = asked.body.to_string();
    let marks = [
        "tool_result\"",
        "_call_output\"",
        "\"role\":\"tool\"",
        "functionResponse\"",
    ];
    marks.iter().map(|mark| text.matches(mark).count()).sum()
}

fn text<'a>(run: &'a Value, name: &str) -> &'a str {
    run[name]
        .as_str()
        .unwrap_or_else(|| panic!("{name} in {run:#}"))
}

/// The agent's process in a run that is live.
#[track_caller]
fn agent_of(run: &Value) -> u32 {
    let pid = run["pid"]
        .as_u64()
        .unwrap_or_else(|| panic!("no agent in {run:#}"));
    u32::try_from(pid).unwrap()
}

/// Its runner: the parent.
#[track_caller]
fn runner_of(run: &Value) -> u32 {
    Stat::read(agent_of(run)).expect("its agent lives").parent
}

/// Processes that carry the variable of a run.
fn carrying(run: &Value) -> Vec<u32> {
    let line = format!("TENURE_RUN={}", text(run, "id"));
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|one| one == line.as_bytes())
    })
    .collect()
}

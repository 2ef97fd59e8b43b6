//! Kills with -9 in runs of the real agents, at five moments: what is recorded is right, the work is done once, and the
//! next run goes on in the conversation. They take long: `scripts/test --long --stage run-kills`.

use serde_json::Value;
use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::protocol::Started;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::{Background, Cmd, Output, RecordedRequest, Signal, poll};

use crate::state::{LONG, hooked};

each! { [
    the_runner_is_killed_before_the_agent_says_anything
    the_runner_is_killed_while_the_agent_works
    the_runner_is_killed_when_the_agent_has_ended
    the_agent_is_killed_while_it_works
    both_are_killed_while_the_agent_works
] claude Claude codex Codex }

const ITEM: &str = "issue:team/project#7";

/// A world whose runs do one thing: a tool that notes the run, and a model that is held afterwards.
struct Kills {
    kind: Real,
    world: RealWorld,
}

impl Kills {
    fn begin(kind: Real) -> Self {
        let world = hooked(kind);
        let dir = world.home().join(".config/tenure");
        std::fs::create_dir_all(&dir).unwrap();
        let trusted = "[repo.\"team/project\"]\ntrusted = true\n";
        std::fs::write(dir.join("config.toml"), trusted).unwrap();
        Self { kind, world }
    }

    fn command(&self, prompt: &str) -> Cmd {
        let cmd = Cmd::new("tenure").args(["run", self.kind.name(), ITEM, "--prompt", prompt]);
        match self.kind {
            Real::Codex => cmd.args(["--", "--dangerously-bypass-hook-trust"]),
            _ => cmd,
        }
    }

    fn work(&self) -> std::path::PathBuf {
        self.world.project().join("work")
    }

    /// How often the tool of a run was executed.
    fn times(&self, run: &Value) -> usize {
        let text = std::fs::read_to_string(self.work()).unwrap_or_default();
        let id = run["id"].as_str().expect("an id");
        text.lines().filter(|line| *line == id).count()
    }

    fn start(&self) -> Background {
        let work = self.work();
        let prompt = format!(
            "MOCK:bash echo $TENURE_RUN >>{}\nMOCK:hold here",
            work.display()
        );
        self.world.driver().start(self.command(&prompt))
    }

    /// Starts a run; it is held after its tool when this returns.
    fn start_held(&self) -> (Background, Value) {
        let window = self.start();
        let is_held = |asked: &RecordedRequest| {
            let text = asked.body.to_string();
            let answered = ["tool_result\"", "_call_output\""];
            asked.offers_tools() && answered.iter().any(|mark| text.contains(mark))
        };
        self.world
            .mock()
            .await_asked(LONG, "what comes after the tool", is_held);
        let run = self.until("the conversation is known", |run| {
            run["native_id"].is_string()
        });
        (window, run)
    }

    fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        poll(LONG, what, || {
            let all = self.world.tenure(&["runs", "--json"]).ok().json();
            all["runs"].get(0).filter(|run| is(run)).cloned()
        })
    }

    fn ended(&self) -> Value {
        self.until("it is over", |run| run["state"] == "ended")
    }

    /// The next run is done, in the conversation of the killed one.
    fn next_run_works(&self, killed: &Value) {
        self.world.mock().release("here");
        let said: Output = self.world.driver().run(self.command("hello"));
        let said = said.ok();
        let next = self.ended();
        assert_ne!(next["id"], killed["id"]);
        assert_eq!(next["outcome"], "done", "{next:#}\n{said}");
        assert!(killed["native_id"].is_string(), "{killed:#}");
        assert_eq!(next["before"], killed["native_id"], "{next:#}");
        assert_eq!(next["native_id"], killed["native_id"], "{next:#}");
        assert_eq!(self.times(killed), 1, "{killed:#}");
    }
}

fn agent_of(run: &Value) -> Pinned {
    let pid = run["pid"].as_u64().unwrap_or_else(|| panic!("{run:#}"));
    pinned(u32::try_from(pid).unwrap()).expect("it lives")
}

fn runner_of(agent: &Pinned) -> Pinned {
    let stat = Stat::read(agent.started().pid).expect("its agent lives");
    pinned(stat.parent).expect("it lives")
}

fn pinned(pid: u32) -> Option<Pinned> {
    let start = Stat::read(pid)?.start;
    Pinned::open(Started { pid, start }).ok()
}

fn kill(process: &Pinned) {
    process.signal(Signal::KILL);
    assert!(process.wait_gone(LONG));
}

fn the_runner_is_killed_before_the_agent_says_anything(kind: Real) {
    let kills = Kills::begin(kind);
    let window = kills.start();
    let run = kills.until("the agent is let go", |run| run["pid"].is_u64());
    kill(&runner_of(&agent_of(&run)));
    let left = kills.until("its agent goes on", |run| run["runner"] == "dead");
    assert_eq!(left["state"], "running", "{left:#}");
    kills.world.mock().release("here");
    window.wait().ok();
    let run = kills.ended();
    assert_eq!(run["outcome"], "done", "{run:#}");
    kills.next_run_works(&run);
}

fn the_runner_is_killed_while_the_agent_works(kind: Real) {
    let kills = Kills::begin(kind);
    let (window, run) = kills.start_held();
    kill(&runner_of(&agent_of(&run)));
    let left = kills.until("its agent goes on", |run| run["runner"] == "dead");
    assert_eq!(left["state"], "running", "{left:#}");
    kills.world.mock().release("here");
    window.wait().ok();
    let run = kills.ended();
    assert_eq!(run["outcome"], "done", "{run:#}");
    kills.next_run_works(&run);
}

fn the_runner_is_killed_when_the_agent_has_ended(kind: Real) {
    let kills = Kills::begin(kind);
    let (window, run) = kills.start_held();
    let agent = agent_of(&run);
    let runner = runner_of(&agent);
    kills.world.mock().release("here");
    assert!(agent.wait_gone(LONG));
    kill(&runner);
    window.wait().ok();
    let run = kills.ended();
    assert_eq!(run["outcome"], "done", "{run:#}");
    kills.next_run_works(&run);
}

fn the_agent_is_killed_while_it_works(kind: Real) {
    let kills = Kills::begin(kind);
    let (window, run) = kills.start_held();
    kill(&agent_of(&run));
    assert_eq!(window.wait().code, 137);
    let run = kills.ended();
    assert_eq!(run["outcome"], "interrupted", "{run:#}");
    kills.next_run_works(&run);
}

fn both_are_killed_while_the_agent_works(kind: Real) {
    let kills = Kills::begin(kind);
    let (window, run) = kills.start_held();
    let agent = agent_of(&run);
    let runner = runner_of(&agent);
    kill(&runner);
    kill(&agent);
    assert_eq!(window.wait().code, 1);
    let run = kills.ended();
    assert_eq!(run["outcome"], "interrupted", "{run:#}");
    kills.next_run_works(&run);
}

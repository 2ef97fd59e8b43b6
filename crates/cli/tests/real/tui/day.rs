//! A day with all agents in tmux: after each step `ps`, `status` and `resume --all` say the truth.
//!
//! The truth is what the screens, /proc and the agents' own files say, and what the script itself did to an agent. All
//! agents are compared after each step, not only the one that it was about.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tenure_testkit::Signal;
use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::protocol::Started;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::{Doing, Tmux, Tui};

use super::ends::offered;
use super::revival::{resume_all, revived};
use super::seen::{Seen, settled_as};
use super::truth::{Truth, denied, running};
use super::{at_terminals, newest, newest_of, settles};
use crate::state::{called, handle, is_at_home, sessions};

const AGENTS: [Real; 5] = [
    Real::Claude,
    Real::Codex,
    Real::Gemini,
    Real::Opencode,
    Real::Qwen,
];

struct Day {
    tuis: BTreeMap<Real, Tui>,
    truths: BTreeMap<Real, Truth>,
    /// Whose conversation has no prompt yet.
    silent: BTreeSet<Real>,
    steps: u32,
    mistakes: Vec<String>,
    tmux: Tmux,
    world: RealWorld,
}

impl Day {
    fn tui(&self, kind: Real) -> &Tui {
        &self.tuis[&kind]
    }

    #[track_caller]
    fn open(&mut self, kind: Real) {
        let tui = Tui::open(&self.tmux, &self.world, kind, &[]);
        self.tuis.insert(kind, tui);
    }

    /// What was done is over, and this is the truth about the agent now.
    #[track_caller]
    fn step(&mut self, kind: Real, what: &str, truth: Truth) {
        self.steps += 1;
        self.truths.insert(kind, truth);
        match truth {
            Truth::Live(doing) => self.tui(kind).await_doing(doing),
            Truth::Left | Truth::CutOff => self.tui(kind).window.wait_gone(),
        }
        let wrong = settles(|| self.wrong(), Vec::is_empty);
        if !wrong.is_empty() {
            let (step, name) = (self.steps, kind.name());
            let wrong = wrong.join("\n");
            self.mistakes
                .push(format!("step {step}, {name}: {what}\n{wrong}"));
        }
    }

    /// A person ended the turn, so nothing finished without them.
    fn is_not_finished(&mut self, kind: Real, what: &str) {
        let session = newest(&self.world, kind).unwrap();
        if session["finished"] != false {
            let name = kind.name();
            self.mistakes
                .push(format!("{name} is finished after {what}: {session:#}"));
        }
    }

    /// Where `ps`, `status` and `resume --all` do not say the truth.
    fn wrong(&self) -> Vec<String> {
        let all = sessions(&self.world);
        let mut wrong = Vec::new();
        let mut true_rows = Rows::default();
        for (kind, truth) in &self.truths {
            let Some(session) = newest_of(&all, *kind) else {
                wrong.push(format!("{}: no session", kind.name()));
                continue;
            };
            if !self.agrees(*kind, *truth, session) {
                let seen = Seen::of(session);
                let screen = self.tui(*kind).window.screen();
                wrong.push(format!(
                    "{}: is {truth:?}, ps says {seen}: {session:#}\n{screen}",
                    kind.name()
                ));
            }
            let talked = !self.silent.contains(kind);
            wrong.extend(denied(&self.world, *kind, session, *truth, talked));
            true_rows.add(session, *truth);
        }
        let mut compare = |who: &str, said: &Rows| {
            if *said != true_rows {
                wrong.push(format!("{who} shows {said:?}, the truth is {true_rows:?}"));
            }
        };
        compare("ps", &self.shown_by_ps());
        compare("status", &self.shown_by_status());
        let offers = Rows {
            live: true_rows.live.clone(),
            cut_off: offered(&self.world).into_iter().collect(),
        };
        compare("resume --all", &offers);
        wrong.extend(self.unmanaged());
        wrong
    }

    /// Whether this is what /proc and the screen say of the agent's window.
    fn agrees(&self, kind: Real, truth: Truth, session: &Value) -> bool {
        let (tui, runs) = (self.tui(kind), running(session));
        let is_over = || runs.is_none() && !tui.window.is_alive();
        match truth {
            Truth::Live(doing) => runs == Some(tui.agent_pid()) && Seen::of(session).is(doing),
            Truth::Left => is_over() && session["end_kind"] == "left",
            Truth::CutOff => is_over() && session["end_kind"] == "cut_off",
        }
    }

    fn shown_by_ps(&self) -> Rows {
        let shown = self.world.tenure(&["ps", "--json"]).ok().json();
        let mut rows = Rows::default();
        for session in shown["sessions"].as_array().unwrap() {
            rows.put(session, !session["resume"].is_null());
        }
        rows
    }

    fn shown_by_status(&self) -> Rows {
        let shown = self.world.tenure(&["status", "--json"]).ok().json();
        let mut rows = Rows::default();
        for (list, is_cut_off) in [("others", false), ("cut_off", true)] {
            for session in shown["status"][list].as_array().unwrap() {
                rows.put(session, is_cut_off);
            }
        }
        rows
    }

    /// Processes of this world that `ps` shows as agents of nobody: every agent here is a session, and a daemon or a
    /// wrapper is not an agent.
    fn unmanaged(&self) -> Option<String> {
        let seeing = [("TENURE_PS_UNMANAGED", Some("true"))];
        let shown = self.world.driver().tenure_env(&seeing, &["ps", "--json"]);
        let shown = shown.ok().json();
        let mut ours = shown["unmanaged"].as_array().unwrap().clone();
        ours.retain(|one| {
            let pid = one["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
            pid.is_some_and(|pid| is_at_home(&self.world, pid))
        });
        (!ours.is_empty()).then(|| format!("ps shows as unmanaged: {ours:#?}"))
    }
}

/// Which sessions are shown: those at work with what they do, and those that can be taken up again.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rows {
    live: BTreeSet<(String, String)>,
    cut_off: BTreeSet<String>,
}

impl Rows {
    fn add(&mut self, session: &Value, truth: Truth) {
        let handle = handle(session).to_owned();
        match truth {
            Truth::Live(doing) => {
                self.live.insert((handle, doing.to_string()));
            }
            Truth::CutOff => {
                self.cut_off.insert(handle);
            }
            Truth::Left => {}
        }
    }

    fn put(&mut self, session: &Value, is_cut_off: bool) {
        let handle = handle(session).to_owned();
        if is_cut_off {
            self.cut_off.insert(handle);
        } else {
            let doing = session["activity"].as_str().unwrap_or("nothing");
            self.live.insert((handle, doing.to_owned()));
        }
    }
}

#[test]
#[ignore = "runs a real agent"]
fn a_day_with_all_agents() {
    use Doing::{Busy, Idle, Waiting};
    use Truth::{CutOff, Left, Live};

    let (world, tmux) = at_terminals(&AGENTS);
    let mut day = Day {
        tuis: BTreeMap::new(),
        truths: BTreeMap::new(),
        silent: BTreeSet::new(),
        steps: 0,
        mistakes: Vec::new(),
        tmux,
        world,
    };
    for kind in AGENTS {
        day.open(kind);
        day.tui(kind).hello();
        day.step(kind, "started, and its first turn is over", Live(Idle));
    }
    for kind in AGENTS {
        day.tui(kind).prompt("MOCK:hold here");
        day.step(kind, "the model thinks", Live(Busy));
    }
    for kind in AGENTS {
        day.tui(kind).interrupt();
        day.step(kind, "Esc in a turn", Live(Idle));
        day.is_not_finished(kind, "Esc");
    }
    // Some send the prompt that was interrupted along with the next one.
    day.world.mock().release("here");
    for kind in AGENTS {
        let tui = day.tui(kind);
        tui.prompt(&tui.asking_step("touch refused"));
        day.step(kind, "it asks", Live(Waiting));
    }
    for kind in AGENTS {
        day.tui(kind).no();
        day.step(kind, "No", Live(Idle));
        day.is_not_finished(kind, "No");
    }
    for kind in [Real::Claude, Real::Codex] {
        let tui = day.tui(kind);
        tui.hello();
        let asked = day.world.mock().asked().len();
        tui.command(tui.compact());
        tui.window.wait_for_screen("a summary is asked for", |_| {
            day.world.mock().asked().len() > asked
        });
        day.step(kind, "compact", Live(Idle));
        day.is_not_finished(kind, "/compact");
    }
    for kind in [Real::Claude, Real::Gemini] {
        let tui = day.tui(kind);
        tui.command(tui.clear());
        tui.window
            .wait_for_screen("the conversation is gone", |screen| {
                !screen.contains("MOCK-SAID")
            });
        day.silent.insert(kind);
        day.step(kind, "clear", Live(Idle));
        day.is_not_finished(kind, "/clear");
    }
    day.tui(Real::Claude).hello();
    day.silent.remove(&Real::Claude);
    for kind in [Real::Qwen, Real::Codex, Real::Gemini] {
        let tui = day.tui(kind);
        tui.command(tui.exit());
        day.step(kind, "left; Codex's daemon stays", Left);
    }
    assert_eq!(called(&day.world, "--managed-daemon").len(), 1);
    day.tui(Real::Opencode).window.kill_window();
    day.step(Real::Opencode, "its window was closed", CutOff);
    day.tui(Real::Claude).signal(Signal::KILL);
    day.step(Real::Claude, "kill -9", CutOff);

    resume_all(&day.world, &day.tmux);
    let back = [Real::Claude, Real::Opencode];
    for kind in back {
        let session = newest(&day.world, kind).unwrap();
        let tui = revived(&day.tmux, kind, handle(&session));
        tui.hello();
        day.tuis.insert(kind, tui);
        day.truths.insert(kind, Live(Idle));
    }
    day.step(
        Real::Claude,
        "resumed with the other that was cut off",
        Live(Idle),
    );
    day.tui(Real::Claude).prompt("MOCK:hold again");
    day.step(Real::Claude, "busy once more", Live(Busy));
    day.tmux.kill_server();
    for kind in back {
        day.truths.insert(kind, CutOff);
    }
    day.step(Real::Opencode, "the tmux server was killed", CutOff);
    assert!(day.steps >= 30, "{}", day.steps);
    let (wrong, steps) = (day.mistakes.len(), day.steps);
    let all = day.mistakes.join("\n\n");
    assert!(
        wrong == 0,
        "after {wrong} of {steps} steps it is not the truth:\n{all}"
    );
}

/// A day on which things go wrong, after each step of which `ps` says the truth.
struct BadDay {
    tmux: Tmux,
    world: RealWorld,
}

impl BadDay {
    #[track_caller]
    fn open(&self, kind: Real) -> Tui {
        let tui = Tui::open(&self.tmux, &self.world, kind, &[]);
        tui.hello();
        tui
    }

    /// What `ps` says of an agent, which must be this.
    #[track_caller]
    fn is(&self, kind: Real, activity: &str, when: &str) -> Value {
        let seen = settled_as(&self.world, kind, activity);
        let whole = seen.whole().clone();
        assert!(seen.says(activity), "{when}: {whole:#}");
        whole
    }

    #[track_caller]
    fn branch(&self) {
        let mut git = std::process::Command::new("git");
        git.current_dir(self.world.project());
        let git = git.args(["checkout", "-q", "-b", "second-day"]).status();
        assert!(git.unwrap().success());
        let seen = newest(&self.world, Real::Claude).unwrap();
        assert_eq!(seen["branch"], "second-day", "no one typed /clear");
        assert_eq!(seen["branch_at"], Value::Null);
    }

    #[track_caller]
    fn failed_turn(&self, claude: &Tui) {
        claude.prompt("MOCK:error 400");
        let failed = self.is(Real::Claude, "failed", "the model refuses");
        assert!(failed["activity_why"].is_string(), "{failed:#}");
    }

    /// A turn ended without anyone; a person who looks knows.
    #[track_caller]
    fn look(&self, claude: &Tui) {
        claude.hello();
        let ended = self.is(Real::Claude, "idle", "the next turn ended");
        assert_eq!(ended["finished"], true, "{ended:#}");
        let line = format!("tenure show {}; echo seen; exec cat", handle(&ended));
        let window = self
            .tmux
            .window(&["sh", "-c", &line], &self.world.project(), &[]);
        window.wait_for_screen("a person looks", |screen| screen.contains("seen"));
        window.kill_window();
        let seen = self.is(Real::Claude, "idle", "someone looked");
        assert_eq!(seen["finished"], false, "{seen:#}");
    }

    /// opencode asks its model again, until a person cancels the turn.
    #[track_caller]
    fn retry_and_cancel(&self, opencode: &Tui) {
        opencode.prompt("MOCK:fail server");
        let retries = self.is(Real::Opencode, "retrying", "the provider fails");
        assert!(retries["activity_why"].is_string(), "{retries:#}");
        opencode.interrupt();
        let cancelled = self.is(Real::Opencode, "idle", "Esc while it retries");
        assert_eq!(cancelled["finished"], false, "{cancelled:#}");
    }

    /// Of an agent below a wrapper: tmux continues what stops directly below itself.
    #[track_caller]
    fn suspend(&self, codex: &Tui) {
        self.is(Real::Codex, "idle", "its turn ended");
        let pid = codex.agent_pid();
        let start = Stat::read(pid).unwrap().start;
        let process = Pinned::open(Started { pid, start }).unwrap();
        assert!(process.signal(Signal::STOP));
        self.is(Real::Codex, "suspended", "SIGSTOP");
        assert!(process.signal(Signal::CONT));
        self.is(Real::Codex, "idle", "SIGCONT");
    }

    #[track_caller]
    fn limit(&self, codex: &Tui) {
        codex.prompt("MOCK:fail limit-until");
        let limited = self.is(Real::Codex, "limited", "the provider names a time");
        assert!(limited["activity_until"].is_string(), "{limited:#}");
    }

    /// No event follows the name that the person gives, and then kill -9.
    #[track_caller]
    fn rename(&self, claude: &Tui) {
        let titled = || {
            let session = newest(&self.world, Real::Claude).unwrap();
            session["title"].as_str().unwrap_or_default().to_owned()
        };
        claude.command("/rename The second day");
        let title = settles(titled, |title| title == "The second day");
        assert_eq!(title, "The second day", "{}", claude.window.screen());
        self.leave_running(claude);
        claude.signal(Signal::KILL);
        claude.window.wait_gone();
        let dead = newest(&self.world, Real::Claude).unwrap();
        assert_eq!(dead["state"], "dead", "{dead:#}");
        assert_eq!(dead["title"], "The second day", "{dead:#}");
    }

    /// A command in the background, which outlives its agent.
    #[track_caller]
    fn leave_running(&self, claude: &Tui) {
        let step = claude.background_step("touch begun; sleep 1000").unwrap();
        claude.prompt(&step);
        let begun = || self.world.project().join("begun").exists();
        let asks = || claude.doing() == Some(Doing::Waiting);
        let window = &claude.window;
        window.wait_for_screen("it runs, or it asks", |_| begun() || asks());
        if !begun() {
            claude.yes();
        }
        window.wait_for_screen("it runs", |_| begun());
    }

    /// What the dead agent left is in the lists, and is ended on request.
    #[track_caller]
    fn survivors(&self) {
        let dead = newest(&self.world, Real::Claude).unwrap();
        let name = handle(&dead);
        let table = self.world.tenure(&["ps"]).ok().stdout;
        assert!(
            table.contains("still runs") || table.contains("still run"),
            "{table}"
        );
        let left = || {
            let shown = self.world.tenure(&["show", name, "--json"]).ok().json();
            shown["session"]["survivors"].as_array().unwrap().clone()
        };
        let pids: Vec<u64> = left()
            .iter()
            .map(|one| one["pid"].as_u64().unwrap())
            .collect();
        assert!(!pids.is_empty(), "{dead:#}");
        let line = ["end", name, "--kill-survivors", "--reason", "it still runs"];
        self.world.tenure(&line).ok();
        assert_eq!(left(), Vec::<Value>::new());
        let runs = |pid: &u64| Stat::runs(u32::try_from(*pid).unwrap());
        assert!(!pids.iter().any(runs));
    }

    /// Resumed with the others. An agent that reports nothing before its first prompt is starting; one that has a
    /// name keeps it.
    #[track_caller]
    fn resume_without_typing(&self) {
        resume_all(&self.world, &self.tmux);
        for kind in [Real::Codex, Real::Opencode] {
            let before = newest(&self.world, kind).unwrap();
            let name = handle(&before);
            let tui = revived(&self.tmux, kind, name);
            let seen = is_starting(&self.world, kind);
            assert_eq!(running(&seen), Some(tui.agent_pid()), "{seen:#}");
            assert!(seen["place"].is_string(), "{seen:#}");
            let _alive = self.world.tenure(&["alive", name]).ok();
            tui.hello();
            self.is(kind, "idle", "typed in");
        }
        let before = newest(&self.world, Real::Claude).unwrap();
        let claude = revived(&self.tmux, Real::Claude, handle(&before));
        let named = self.is(Real::Claude, "idle", "resumed, not typed in");
        assert_eq!(named["title"], "The second day", "{named:#}");
        let screen = claude.window.screen();
        assert!(screen.contains("The second day"), "its own name\n{screen}");
    }
}

/// One agent for each step: the others report the same in other words, which the tests of their events hold.
#[test]
#[ignore = "runs a real agent"]
fn a_day_on_which_things_go_wrong() {
    let (world, tmux) = at_terminals(&[Real::Claude, Real::Codex, Real::Opencode]);
    let day = BadDay { tmux, world };
    let claude = day.open(Real::Claude);
    day.branch();
    day.failed_turn(&claude);
    day.look(&claude);
    let opencode = day.open(Real::Opencode);
    day.retry_and_cancel(&opencode);
    let codex = day.open(Real::Codex);
    day.suspend(&codex);
    day.limit(&codex);
    day.rename(&claude);
    day.survivors();
    for tui in [&codex, &opencode] {
        tui.window.kill_window();
        tui.window.wait_gone();
    }
    day.resume_without_typing();
}

/// What `ps` says of an agent that was resumed and not typed in.
fn is_starting(world: &RealWorld, kind: Real) -> Value {
    let listed = || world.tenure(&["ps", "--json"]).ok().json();
    let of = |all: &Value| newest_of(all["sessions"].as_array().unwrap(), kind).cloned();
    let seen = settles(
        || of(&listed()).unwrap_or_default(),
        |one| one["activity"] == "starting",
    );
    assert_eq!(seen["activity"], "starting", "{seen:#}");
    seen
}

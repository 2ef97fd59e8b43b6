//! A day with all agents in tmux: after each step `ps`, `status` and `resume --all` say the truth.
//!
//! The truth is what the screens and /proc say, and what the script itself did to an agent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tenure_testkit::Signal;
use tenure_testkit::pinned::Stat;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::{Doing, Tmux, Tui};

use super::ends::offered;
use super::revival::{resume_all, revived};
use super::seen::Seen;
use super::{at_terminals, newest, settles};
use crate::state::handle;

const AGENTS: [Real; 5] = [
    Real::Claude,
    Real::Codex,
    Real::Gemini,
    Real::Opencode,
    Real::Qwen,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    Live(Doing),
    Left,
    CutOff,
}

struct Day {
    tuis: BTreeMap<Real, Tui>,
    truths: BTreeMap<Real, Truth>,
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

    /// Where tenure does not say the truth.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let (mut live, mut cut_off) = (BTreeSet::new(), BTreeSet::new());
        for (kind, truth) in &self.truths {
            let Some(session) = newest(&self.world, *kind) else {
                wrong.push(format!("{}: no session", kind.name()));
                continue;
            };
            if !self.agrees(*kind, *truth, &session) {
                let seen = Seen::of(&session);
                let screen = self.tui(*kind).window.screen();
                wrong.push(format!(
                    "{}: is {truth:?}, ps says {seen}: {session:#}\n{screen}",
                    kind.name()
                ));
            }
            match truth {
                Truth::Live(_) => live.insert(handle(&session).to_owned()),
                Truth::CutOff => cut_off.insert(handle(&session).to_owned()),
                Truth::Left => continue,
            };
        }
        let status = self.world.tenure(&["status", "--json"]).ok().json();
        let others = status["status"]["others"].as_array().unwrap().iter();
        let here: BTreeSet<String> = others.map(|other| handle(other).to_owned()).collect();
        if here != live {
            wrong.push(format!("status shows {here:?}, at work are {live:?}"));
        }
        let offers: BTreeSet<String> = offered(&self.world).into_iter().collect();
        if offers != cut_off {
            wrong.push(format!(
                "resume --all offers {offers:?}, cut off were {cut_off:?}"
            ));
        }
        wrong
    }

    fn agrees(&self, kind: Real, truth: Truth, session: &Value) -> bool {
        let pid = session["process"]["pid"]
            .as_u64()
            .and_then(|pid| u32::try_from(pid).ok());
        let runs = pid
            .and_then(Stat::read)
            .is_some_and(|stat| stat.state != 'Z');
        match truth {
            Truth::Live(doing) => {
                runs && pid == Some(self.tui(kind).agent_pid()) && Seen::of(session).is(doing)
            }
            Truth::Left => session["end_kind"] == "left",
            Truth::CutOff => !runs && session["end_kind"] == "cut_off",
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
    }
    for kind in AGENTS {
        let tui = day.tui(kind);
        tui.prompt(&tui.asking_step("touch refused"));
        day.step(kind, "it asks", Live(Waiting));
    }
    for kind in AGENTS {
        day.tui(kind).no();
        day.step(kind, "No", Live(Idle));
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
    }
    for kind in [Real::Claude, Real::Gemini] {
        let tui = day.tui(kind);
        tui.command(tui.clear());
        tui.window
            .wait_for_screen("the conversation is gone", |screen| {
                !screen.contains("MOCK-SAID")
            });
        day.step(kind, "clear", Live(Idle));
    }
    day.tui(Real::Claude).hello();
    for kind in [Real::Qwen, Real::Codex, Real::Gemini] {
        let tui = day.tui(kind);
        tui.command(tui.exit());
        day.step(kind, "left; Codex's daemon stays", Left);
    }
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

//! The table of activities: every agent in every case, as `tenure ps` shows it within three seconds.
//!
//! `scripts/test --long --stage activity` names a directory in `TENURE_ACTIVITY_TABLE`; each case leaves its cell
//! there, and the script makes the table of docs/agents.md of them.

use std::cell::RefCell;

use serde_json::Value;
use tenure_testkit::RecordedRequest;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::{Doing, Tmux, Tui};

use super::at_terminals;
use super::seen::{look, settled_as};

at_terminals! { [
    turn_ends turn_fails esc_in_a_turn esc_at_a_prompt no_at_a_prompt compact clear long_tool_call subagent background_task
] }

/// One agent that has had a turn, and what tenure said wrong of it.
struct Case {
    wrong: RefCell<Vec<String>>,
    tui: Tui,
    _tmux: Tmux,
    world: RealWorld,
}

impl Case {
    #[track_caller]
    fn begin(kind: Real) -> Case {
        let (world, tmux) = at_terminals(&[kind]);
        let tui = Tui::open(&tmux, &world, kind, &[]);
        tui.hello();
        Case {
            wrong: RefCell::default(),
            tui,
            _tmux: tmux,
            world,
        }
    }

    /// Waits until the screen shows this, and writes down what tenure says then.
    #[track_caller]
    fn look(&self, case: &str, doing: Doing) {
        let seen = look(&self.world, &self.tui, doing);
        if seen.is(doing) {
            return self.leave(case, &seen.to_string());
        }
        self.leave(case, &format!("**{seen}**, is {doing}"));
        let screen = self.tui.window.screen();
        let line = format!("{case}: is {doing}, ps says {seen:#?}\n{screen}");
        self.wrong.borrow_mut().push(line);
    }

    /// Leaves a cell of the table.
    fn leave(&self, case: &str, cell: &str) {
        let Some(dir) = std::env::var_os("TENURE_ACTIVITY_TABLE") else {
            return;
        };
        std::fs::create_dir_all(&dir).unwrap();
        let name = format!("{}.{}.cell", self.tui.kind().name(), case.replace(' ', "-"));
        let cell = format!("{cell}\n");
        std::fs::write(std::path::Path::new(&dir).join(name), cell).unwrap();
    }

    /// Has the agent ask for this command, and waits until it does.
    #[track_caller]
    fn asks(&self, command: &str) {
        self.tui.prompt(&self.tui.asking_step(command));
        self.look("at a prompt", Doing::Waiting);
    }

    /// Waits for this, and allows what the agent asks for before it.
    #[track_caller]
    fn allow_until(&self, what: &str, is: impl Fn() -> bool) {
        let window = &self.tui.window;
        let asks = || self.tui.doing() == Some(Doing::Waiting);
        window.wait_for_screen(&format!("{what}, or it asks"), |_| is() || asks());
        if !is() {
            self.tui.yes();
        }
        window.wait_for_screen(what, |_| is());
    }

    /// Waits for a file in the project.
    #[track_caller]
    fn until_there(&self, name: &str) {
        let file = self.world.project().join(name);
        let window = &self.tui.window;
        window.wait_for_screen(&format!("there is {name}"), |_| file.exists());
    }

    #[track_caller]
    fn end(self) {
        let wrong = self.wrong.borrow();
        let name = self.tui.kind().name();
        assert!(wrong.is_empty(), "{name}\n{}", wrong.join("\n"));
    }
}

fn turn_ends(kind: Real) {
    let case = Case::begin(kind);
    case.look("turn ends", Doing::Idle);
    case.end();
}

/// The model refuses, for good.
fn turn_fails(kind: Real) {
    let case = Case::begin(kind);
    case.tui.prompt("MOCK:error 400");
    let is_said = |screen: &str| screen.contains("mock error 400");
    let window = &case.tui.window;
    window.wait_for_screen("it says what the model said", is_said);
    case.tui.await_doing(Doing::Idle);
    let seen = settled_as(&case.world, kind, "failed");
    case.leave("turn fails", &seen.to_string());
    assert!(seen.says("failed"), "ps says {seen:#?}");
    case.end();
}

fn esc_in_a_turn(kind: Real) {
    let case = Case::begin(kind);
    case.tui.prompt("MOCK:hold here");
    case.look("in a turn", Doing::Busy);
    case.tui.interrupt();
    case.look("Esc in a turn", Doing::Idle);
    case.end();
}

fn esc_at_a_prompt(kind: Real) {
    let case = Case::begin(kind);
    case.asks("touch made");
    case.tui.escape();
    case.look("Esc at a prompt", Doing::Idle);
    case.end();
}

fn no_at_a_prompt(kind: Real) {
    let case = Case::begin(kind);
    case.asks("touch made");
    case.tui.no();
    case.look("No at a prompt", Doing::Idle);
    case.end();
}

fn compact(kind: Real) {
    let case = Case::begin(kind);
    // A short conversation is not compacted by all.
    case.tui.hello();
    case.tui.hello();
    let mock = case.world.mock();
    let asked = mock.asked().len();
    case.tui.command(case.tui.compact());
    let is_asked = |_: &str| mock.asked().len() > asked;
    let window = &case.tui.window;
    window.wait_for_screen("the model is asked for a summary", is_asked);
    case.look("compact", Doing::Idle);
    case.end();
}

fn clear(kind: Real) {
    let case = Case::begin(kind);
    case.tui.command(case.tui.clear());
    let is_gone = |screen: &str| !screen.contains("MOCK-SAID");
    let window = &case.tui.window;
    window.wait_for_screen("the conversation is gone", is_gone);
    case.look("clear", Doing::Idle);
    case.end();
}

/// Allowed, and then it runs until the gate is opened.
fn long_tool_call(kind: Real) {
    let case = Case::begin(kind);
    case.asks("touch begun; cat gate");
    case.tui.yes();
    case.until_there("begun");
    case.look("long tool call", Doing::Busy);
    std::fs::write(case.world.project().join("gate"), "open\n").unwrap();
    case.look("after the long tool call", Doing::Idle);
    case.end();
}

fn subagent(kind: Real) {
    let case = Case::begin(kind);
    let Some(step) = case.tui.subagent_step("MOCK:hold below") else {
        return case.leave("subagent", "has none");
    };
    case.tui.prompt(&step);
    let mock = case.world.mock();
    case.allow_until("the subagent asks the model", || {
        mock.asked().iter().any(is_of_subagent)
    });
    case.look("subagent", case.tui.with_subagent());
    mock.release("below");
    case.look("after the subagent", Doing::Idle);
    case.end();
}

/// Whether a conversation has the subagent's task, and not the call that started it.
fn is_of_subagent(asked: &RecordedRequest) -> bool {
    let lists = ["messages", "input", "contents"];
    let messages = lists.iter().find_map(|list| asked.body[*list].as_array());
    let texts = messages.into_iter().flatten().map(Value::to_string);
    let said: Vec<String> = texts
        .filter(|text| text.contains("MOCK:hold below"))
        .collect();
    asked.offers_tools() && !said.is_empty() && said.iter().all(|text| !text.contains("MOCK:tool"))
}

/// The turn ends while the command goes on.
fn background_task(kind: Real) {
    let case = Case::begin(kind);
    let Some(step) = case.tui.background_step("touch begun; cat gate") else {
        return case.leave("background task", "has none");
    };
    case.tui.prompt(&step);
    let begun = case.world.project().join("begun");
    case.allow_until("the command runs", || begun.exists());
    case.look("background task", Doing::Idle);
    case.end();
}

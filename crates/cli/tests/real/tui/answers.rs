//! What real agents do with an answer from another window, and with a person who answers first.

use std::path::PathBuf;

use serde_json::{Value, json};
use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::protocol::Started;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::{Doing, Tmux, Tui, Window};
use tenure_testkit::{Signal, poll};

use super::{at_terminals, newest};
use crate::state::{LONG, handle};

each! { [
    a_call_is_allowed_from_another_window
    a_call_is_denied_from_another_window
    the_answer_in_the_agents_own_window_comes_first
    a_question_is_answered_with_a_text_from_another_window
    if_nobody_answers_or_the_hook_is_killed_the_dialog_is_still_there
    a_hook_that_waits_ends_with_its_agent
] claude Claude opencode Opencode }

/// An agent that asks, and a person's shell in another window.
struct Asking {
    id: String,
    handle: String,
    person: Window,
    tui: Tui,
    _tmux: Tmux,
    world: RealWorld,
}

impl Asking {
    #[track_caller]
    fn begin(kind: Real) -> Asking {
        Asking::with(kind, "9m", |tui| tui.asking_step("touch made"))
    }

    #[track_caller]
    fn with(kind: Real, wait: &str, step: impl Fn(&Tui) -> String) -> Asking {
        let (world, tmux) = at_terminals(&[kind]);
        let config = world.home().join(".config/tenure");
        std::fs::create_dir_all(&config).unwrap();
        let text = format!(
            "[answers]\nagents = [\"{}\"]\nwait = \"{wait}\"\n",
            kind.name()
        );
        std::fs::write(config.join("config.toml"), text).unwrap();
        let _installed = world.tenure(&["install", kind.name(), "--answers"]).ok();
        let tui = Tui::open(&tmux, &world, kind, &[]);
        tui.hello();
        tui.prompt(&step(&tui));
        let id = poll(LONG, "its question is there", || asked(&world));
        let session = newest(&world, kind).unwrap();
        let handle = handle(&session).to_owned();
        let person = tmux.window(&["bash", "--norc", "--noprofile"], &world.project(), &[]);
        Asking {
            id,
            handle,
            person,
            tui,
            _tmux: tmux,
            world,
        }
    }

    /// Answers in the other window, and waits until it shows this.
    #[track_caller]
    fn answer(&self, words: &str, shows: &str) {
        let (handle, id) = (&self.handle, &self.id);
        self.person
            .type_line(&format!("tenure answer {handle} {id} {words}"));
        self.person
            .wait_for_screen(shows, |screen| screen.contains(shows));
    }

    /// The hook that waits.
    #[track_caller]
    fn hook(&self) -> Pinned {
        let file = questions(&self.world).join(format!("{}.json", self.id));
        let question: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let pid = u32::try_from(question["waiter"]["pid"].as_u64().unwrap()).unwrap();
        let start = Stat::read(pid).unwrap().start;
        Pinned::open(Started { pid, start }).unwrap()
    }

    fn made(&self) -> PathBuf {
        self.world.project().join("made")
    }
}

fn questions(world: &RealWorld) -> PathBuf {
    world.state().join("questions")
}

fn asked(world: &RealWorld) -> Option<String> {
    let all = std::fs::read_dir(questions(world)).ok()?.flatten();
    let mut names = all.filter_map(|one| one.file_name().into_string().ok());
    names.find_map(|name| Some(name.strip_suffix(".json")?.to_owned()))
}

fn a_call_is_allowed_from_another_window(kind: Real) {
    let asking = Asking::begin(kind);
    asking.answer("allow", "allow sent to");
    let made = asking.made();
    let window = &asking.tui.window;
    window.wait_for_screen("the call ran", |_| made.exists());
    asking.tui.await_doing(Doing::Idle);
}

fn a_call_is_denied_from_another_window(kind: Real) {
    let asking = Asking::begin(kind);
    asking.answer("deny --message 'use the other one'", "deny sent to");
    let world = &asking.world;
    let window = &asking.tui.window;
    window.wait_for_screen("the model reads why", |_| {
        world.mock().was_told("use the other one")
    });
    assert!(!asking.made().exists());
}

fn the_answer_in_the_agents_own_window_comes_first(kind: Real) {
    let asking = Asking::begin(kind);
    asking.tui.await_doing(Doing::Waiting);
    asking.tui.yes();
    let made = asking.made();
    let window = &asking.tui.window;
    window.wait_for_screen("the call ran", |_| made.exists());
    let closed = questions(&asking.world).join(format!("{}.answer", asking.id));
    poll(LONG, "its hook ended", || {
        // A hook that was ended by its agent offers nothing either.
        (closed.exists() || asking.tui.doing() == Some(Doing::Idle)).then_some(())
    });
    asking.answer("deny", "error: ");
}

fn a_question_is_answered_with_a_text_from_another_window(kind: Real) {
    let tool = match kind {
        Real::Claude => "AskUserQuestion",
        _ => "question",
    };
    let input = json!({"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]}]});
    let asking = Asking::with(kind, "9m", |_| format!("MOCK:tool {tool} {input}"));
    asking.answer("Ultraviolet", "answer sent to");
    let (world, window) = (&asking.world, &asking.tui.window);
    window.wait_for_screen("the model reads it", |_| {
        world.mock().was_told("Ultraviolet")
    });
}

fn if_nobody_answers_or_the_hook_is_killed_the_dialog_is_still_there(kind: Real) {
    for (wait, is_killed) in [("9m", true), ("2s", false)] {
        let asking = Asking::with(kind, wait, |tui| tui.asking_step("touch made"));
        asking.tui.await_doing(Doing::Waiting);
        if is_killed {
            asking.hook().signal(Signal::KILL);
        } else {
            let closed = questions(&asking.world).join(format!("{}.answer", asking.id));
            poll(LONG, "its time is over", || closed.exists().then_some(()));
        }
        asking.answer("allow", "error: ");
        assert_eq!(asking.tui.doing(), Some(Doing::Waiting));
        assert!(!asking.made().exists());
        asking.tui.yes();
        let made = asking.made();
        let window = &asking.tui.window;
        window.wait_for_screen("the call ran", |_| made.exists());
    }
}

fn a_hook_that_waits_ends_with_its_agent(kind: Real) {
    let asking = Asking::begin(kind);
    let hook = asking.hook();
    asking.tui.signal(Signal::KILL);
    poll(LONG, "the hook is gone", || hook.is_gone().then_some(()));
    asking.answer("allow", "error: ");
}

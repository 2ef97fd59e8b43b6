//! What real agents do with an answer from another window, and with a person who answers first.

use std::path::PathBuf;

use tenure_testkit::poll;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::{Doing, Tmux, Tui, Window};

use super::{at_terminals, newest};
use crate::state::{LONG, handle};

each! { [
    a_call_is_allowed_from_another_window
    a_call_is_denied_from_another_window
    the_answer_in_the_agents_own_window_comes_first
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
        let (world, tmux) = at_terminals(&[kind]);
        let config = world.home().join(".config/tenure");
        std::fs::create_dir_all(&config).unwrap();
        let text = format!("[answers]\nagents = [\"{}\"]\n", kind.name());
        std::fs::write(config.join("config.toml"), text).unwrap();
        let _installed = world.tenure(&["install", kind.name(), "--answers"]).ok();
        let tui = Tui::open(&tmux, &world, kind, &[]);
        tui.hello();
        tui.prompt(&tui.asking_step("touch made"));
        tui.await_doing(Doing::Waiting);
        let id = poll(LONG, "its question is open", || open(&world));
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

    fn made(&self) -> PathBuf {
        self.world.project().join("made")
    }
}

fn questions(world: &RealWorld) -> PathBuf {
    world.state().join("questions")
}

fn open(world: &RealWorld) -> Option<String> {
    let all = std::fs::read_dir(questions(world)).ok()?.flatten();
    let mut names = all.filter_map(|one| one.file_name().into_string().ok());
    let id = names.find_map(|name| Some(name.strip_suffix(".json")?.to_owned()))?;
    let closed = questions(world).join(format!("{id}.answer"));
    (!closed.exists()).then_some(id)
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

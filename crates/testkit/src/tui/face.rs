//! An agent in a window: what its screen shows, and how a person uses it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use super::doing::Doing;
use super::faces::{self, Answers, Face};
use super::tmux::{Tmux, pin};
use super::window::{Key, LONG, Window, squeezed};
use crate::poll::poll;
use crate::real::{Real, RealWorld, child_of};

/// How long a key may take to have an effect before it is pressed again.
const HEARD: Duration = Duration::from_secs(8);

/// How long an agent may take to start: opencode works for fifteen seconds before it draws
/// anything, and the machine is busy.
const START: Duration = Duration::from_secs(240);

/// How many times in a row a screen must show something: a screen that is being redrawn may briefly
/// omit that the agent works.
const STEADY: u32 = 3;

/// Numbers of prompts. A resumed conversation shows its old prompts and answers again, in another
/// window.
static LINES: AtomicU32 = AtomicU32::new(0);

/// One agent at its terminal.
#[derive(Debug)]
pub struct Tui {
    kind: Real,
    pub window: Window,
}

impl Tui {
    /// Prepares the agent's home so that it asks before it runs a command, and its first screen is
    /// the prompt.
    ///
    /// Call it before installing tenure for the agent, which edits the same files.
    pub fn prepare(world: &RealWorld, kind: Real) {
        world.agent(kind);
        (faces::of(kind).prepare)(&world.home());
    }

    /// Starts it in the world's project, and waits until it is ready for a line.
    #[track_caller]
    pub fn open(tmux: &Tmux, world: &RealWorld, kind: Real, args: &[&str]) -> Tui {
        let tui = Tui::start(tmux, world, kind, args);
        tui.await_ready();
        tui
    }

    /// The same, without waiting.
    #[track_caller]
    pub fn start(tmux: &Tmux, world: &RealWorld, kind: Real, args: &[&str]) -> Tui {
        world.agent(kind);
        let mut argv = vec![kind.name()];
        argv.extend(faces::of(kind).args);
        argv.extend(args);
        let window = tmux.window(&argv, &world.project(), &[]);
        Tui::in_window(kind, window)
    }

    /// An agent in an existing pane.
    #[track_caller]
    pub fn in_pane(tmux: &Tmux, kind: Real, pane: &str) -> Tui {
        Tui::in_window(kind, Window::existing(&tmux.server, pane))
    }

    fn in_window(kind: Real, window: Window) -> Tui {
        Tui { kind, window }
    }

    pub fn kind(&self) -> Real {
        self.kind
    }

    fn face(&self) -> &'static Face {
        faces::of(self.kind)
    }

    /// Waits until it is ready for a line, and answers its questions before the first one.
    #[track_caller]
    pub fn await_ready(&self) {
        let face = self.face();
        let is_ready = |screen: &str| {
            let screen = squeezed(screen);
            shows(&screen, face.idle) && !shows(&screen, face.first)
        };
        let what = format!("{} takes a line or asks", self.kind.name());
        let any = |screen: &str| is_ready(screen) || shows(&squeezed(screen), face.first);
        if !is_ready(&self.window.wait_within(START, &what, any)) {
            for key in face.first_keys {
                self.window.key(*key);
            }
        }
        self.window
            .wait_for_screen(&format!("{} takes a line", self.kind.name()), is_ready);
    }

    /// What it is doing, according to the screen; `None` while it is being redrawn.
    pub fn doing(&self) -> Option<Doing> {
        self.read(&self.window.screen())
    }

    fn read(&self, screen: &str) -> Option<Doing> {
        let (screen, face) = (squeezed(screen), self.face());
        if shows(&screen, face.asks) {
            Some(Doing::Waiting)
        } else if shows(&screen, face.busy) {
            Some(Doing::Busy)
        } else if shows(&screen, face.idle) {
            Some(Doing::Idle)
        } else {
            None
        }
    }

    /// Waits until the screen shows that it does this.
    #[track_caller]
    pub fn await_doing(&self, doing: Doing) {
        let what = format!("{} is {doing}", self.kind.name());
        let is_so = steadily(|screen| self.read(screen) == Some(doing));
        self.window.wait_for_screen(&what, is_so);
    }

    /// Sends a prompt: steps of the mock model, or text without meaning to it.
    ///
    /// Each prompt begins with a unique word, to distinguish it from earlier ones.
    #[track_caller]
    pub fn prompt(&self, steps: &str) {
        let number = next();
        self.window.type_line(&format!("p{number}. ;; {steps}"));
    }

    /// Sends a prompt that is answered at once, and waits for the answer.
    #[track_caller]
    pub fn hello(&self) {
        let number = next();
        self.window.type_line(&format!("MOCK:say it{number}."));
        let said = format!("MOCK-SAIDit{number}.");
        let is_said = |screen: &str| squeezed(screen).contains(&said);
        self.window.wait_for_screen("the model answers", is_said);
        self.await_doing(Doing::Idle);
    }

    /// Interrupts it, and clears the prompt that it puts back into the line.
    #[track_caller]
    pub fn interrupt(&self) {
        let again = self.face().again;
        let is_idle = |screen: &str| self.read(screen) == Some(Doing::Idle);
        for _ in 0..4 {
            self.window.key(Key::Escape);
            let rests = steadily(is_idle);
            let is_heard = |screen: &str| rests(screen) || shows(&squeezed(screen), again);
            let heard = self.window.appears(HEARD, is_heard).unwrap_or_default();
            // The second Escape must not follow at once: two in a row are read as a different key.
            if shows(&squeezed(&heard), again) {
                self.window.key(Key::Escape);
            }
            if self.window.appears(HEARD, steadily(is_idle)).is_some() {
                break;
            }
        }
        self.await_doing(Doing::Idle);
        self.window.key(Key::Ctrl('u'));
    }

    /// Presses Escape at a question.
    #[track_caller]
    pub fn escape(&self) {
        self.answer(|| self.window.key(Key::Escape));
    }

    /// Answers a question with yes, once.
    #[track_caller]
    pub fn yes(&self) {
        self.answer(|| self.window.key(Key::Enter));
    }

    /// Answers a question with no.
    #[track_caller]
    pub fn no(&self) {
        self.answer(|| match self.face().no {
            Answers::Keys(keys) => keys.iter().for_each(|key| self.window.key(*key)),
            Answers::Numbered => {
                let screen = self.window.screen();
                let number = screen.lines().find_map(number_of_no);
                let number = number.unwrap_or_else(|| panic!("nothing offers a no:\n{screen}"));
                self.window.key(Key::Plain(number));
            }
        });
    }

    /// Answers a question, and again if the first key had no effect: a question that has just
    /// appeared ignores a key that was already on its way.
    #[track_caller]
    fn answer(&self, press: impl Fn()) {
        for _ in 0..4 {
            press();
            let is_heard = steadily(|screen| self.read(screen) != Some(Doing::Waiting));
            if self.window.appears(HEARD, is_heard).is_some() {
                return;
            }
        }
        panic!(
            "no answer is heard; the screen shows\n{}",
            self.window.screen()
        );
    }

    /// Runs a slash command.
    #[track_caller]
    pub fn command(&self, line: &str) {
        self.window.type_line(line);
    }

    pub fn compact(&self) -> &'static str {
        self.face().compact
    }

    pub fn clear(&self) -> &'static str {
        self.face().clear
    }

    pub fn exit(&self) -> &'static str {
        self.face().exit
    }

    /// A step that asks before it runs this command.
    pub fn asking_step(&self, command: &str) -> String {
        (self.face().asking)(command)
    }

    /// A step that makes a subagent do this, if the agent has subagents.
    pub fn subagent_step(&self, prompt: &str) -> Option<String> {
        Some((self.face().subagent?)(prompt))
    }

    /// What it shows while a subagent works.
    pub fn with_subagent(&self) -> Doing {
        self.face().with_subagent
    }

    /// A step that runs this command in the background, if the agent can.
    pub fn background_step(&self, command: &str) -> Option<String> {
        Some((self.face().background?)(command))
    }

    /// The process that is the agent itself, below its wrappers.
    #[track_caller]
    pub fn agent_pid(&self) -> u32 {
        let names = self.kind.wrapped().iter();
        names.fold(self.window.pane_pid(), |above, name| {
            poll(LONG, &format!("{above} starts {name}"), || {
                child_of(above, name)
            })
        })
    }

    /// Sends a signal to the agent itself. If the signal ends it, waits until it is gone.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let process = pin(self.agent_pid()).expect("it runs");
        assert!(process.signal(signal));
        assert!(
            process.wait_gone(LONG),
            "{signal:?} does not end it:\n{}",
            self.window.screen()
        );
    }
}

/// Whether the screen matches, and also matched at the last few checks.
fn steadily(is: impl Fn(&str) -> bool) -> impl Fn(&str) -> bool {
    let times = Cell::new(0);
    move |screen| {
        times.set(if is(screen) { times.get() + 1 } else { 0 });
        times.get() >= STEADY
    }
}

/// A number that no earlier prompt of this test had.
fn next() -> u32 {
    LINES.fetch_add(1, Ordering::Relaxed) + 1
}

fn shows(squeezed: &str, any: &[&str]) -> bool {
    any.iter().any(|one| squeezed.contains(one))
}

/// The number in front of an answer that begins with No.
fn number_of_no(line: &str) -> Option<char> {
    let (before, after) = line.split_once(". No")?;
    let fits = after.is_empty() || after.starts_with([',', ' ', '(']);
    before
        .chars()
        .next_back()
        .filter(|one| fits && one.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_of_a_no_is_found() {
        assert_eq!(super::number_of_no("   4. No"), Some('4'));
        assert_eq!(
            super::number_of_no("│ ● 3. No, suggest changes (esc)"),
            Some('3')
        );
        assert_eq!(super::number_of_no("  1. Yes"), None);
        assert_eq!(super::number_of_no("  1. Nothing"), None);
    }
}

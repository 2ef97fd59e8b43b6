//! A window of the server, and the program in it.
//!
//! Screen contents are compared without white space, because a program wraps its lines and draws
//! boxes.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::tmux::{Tmux, TmuxServer, pin};
use crate::pinned::Pinned;
use crate::poll::poll;

/// How long a person would wait on a busy machine.
pub(super) const LONG: Duration = Duration::from_secs(90);

/// How long typed text may take to appear before it is typed again.
const SHOWS: Duration = Duration::from_secs(6);

/// How often the screen is read. Each time starts a process.
const GLANCE: Duration = Duration::from_millis(120);

/// A key, as named by `tmux send-keys`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Enter,
    Escape,
    Down,
    Right,
    /// Ctrl with this letter.
    Ctrl(char),
    Plain(char),
}

impl Key {
    fn name(self) -> String {
        match self {
            Key::Enter => "Enter".to_owned(),
            Key::Escape => "Escape".to_owned(),
            Key::Down => "Down".to_owned(),
            Key::Right => "Right".to_owned(),
            Key::Ctrl(letter) => format!("C-{letter}"),
            Key::Plain(letter) => letter.to_string(),
        }
    }
}

#[derive(Debug)]
pub struct Window {
    server: Arc<TmuxServer>,
    id: String,
    pane: String,
    process: Pinned,
    /// The last screen that was read, because a window closes with its program.
    last: RefCell<String>,
}

impl Tmux {
    /// Runs a program in a new window, with variables in addition to the world's.
    #[track_caller]
    pub fn window(&self, argv: &[&str], dir: &Path, variables: &[(&str, &str)]) -> Window {
        Window::open(&self.server, argv, dir, variables)
    }
}

impl Window {
    #[track_caller]
    pub(super) fn open(
        server: &Arc<TmuxServer>,
        argv: &[&str],
        dir: &Path,
        variables: &[(&str, &str)],
    ) -> Window {
        let dir = dir.to_str().expect("paths of tests are text");
        let form = "#{window_id} #{pane_id} #{pane_pid}";
        let mut words = vec!["new-window", "-d", "-P", "-F", form, "-c", dir];
        let set: Vec<String> = variables
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        for one in &set {
            words.extend(["-e", one]);
        }
        // Because of `env` in front of it, tmux runs the program directly, not through a shell. The
        // variable belongs to the pinned tmux.
        words.extend(["--", "env", "-u", "LD_LIBRARY_PATH"]);
        words.extend(argv);
        let said = server.run(&words);
        let mut parts = said.split_whitespace();
        let (Some(id), Some(pane), Some(pid)) = (parts.next(), parts.next(), parts.next()) else {
            panic!("tmux opened no window: {said}");
        };
        let pid = pid.parse().expect("a pane has a pid");
        Window {
            server: Arc::clone(server),
            id: id.to_owned(),
            pane: pane.to_owned(),
            process: pin(pid).unwrap_or_else(|| panic!("{argv:?} ended at once")),
            last: RefCell::default(),
        }
    }

    /// An existing window of the server.
    #[track_caller]
    pub(super) fn existing(server: &Arc<TmuxServer>, pane: &str) -> Window {
        let form = "#{window_id} #{pane_pid}";
        let said = server.run(&["display-message", "-p", "-t", pane, form]);
        let (id, pid) = said.trim().split_once(' ').expect("a pane is in a window");
        let pid = pid.parse().expect("a pane has a pid");
        Window {
            server: Arc::clone(server),
            id: id.to_owned(),
            pane: pane.to_owned(),
            process: pin(pid).unwrap_or_else(|| panic!("{pane} runs nothing")),
            last: RefCell::default(),
        }
    }

    /// tmux's own id for the pane.
    pub fn pane(&self) -> &str {
        &self.pane
    }

    /// The pid of the process that was started; for some agents that is a wrapper.
    pub fn pane_pid(&self) -> u32 {
        self.process.started().pid
    }

    /// Whether it is running or stopped, not dead.
    pub fn is_alive(&self) -> bool {
        !self.process.is_gone()
    }

    /// The current screen, or the last one if the window has closed.
    pub fn screen(&self) -> String {
        if let Ok(shown) = self
            .server
            .try_run(&["capture-pane", "-p", "-t", &self.pane])
        {
            if !shown.trim().is_empty() {
                *self.last.borrow_mut() = shown.clone();
            }
            return shown;
        }
        self.last.borrow().clone()
    }

    /// Waits until the screen matches.
    #[track_caller]
    pub fn wait_for_screen(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        self.wait_within(LONG, what, is)
    }

    #[track_caller]
    pub(super) fn wait_within(
        &self,
        deadline: Duration,
        what: &str,
        is: impl Fn(&str) -> bool,
    ) -> String {
        match self.appears(deadline, is) {
            Some(screen) => screen,
            None => panic!("{what}: in vain; the screen shows\n{}", self.screen()),
        }
    }

    /// The screen once it matches; `None` on timeout.
    pub(super) fn appears(&self, deadline: Duration, is: impl Fn(&str) -> bool) -> Option<String> {
        let end = Instant::now() + deadline;
        let mut next = Instant::now();
        poll(deadline + LONG, "the screen is read", || {
            if Instant::now() < next {
                return None;
            }
            let screen = self.screen();
            next = Instant::now() + GLANCE;
            if is(&screen) {
                return Some(Some(screen));
            }
            (Instant::now() > end).then_some(None)
        })
    }

    /// Types text unchanged.
    #[track_caller]
    pub fn type_text(&self, text: &str) {
        self.server
            .run(&["send-keys", "-t", &self.pane, "-l", "--", text]);
    }

    #[track_caller]
    pub fn key(&self, key: Key) {
        self.server
            .run(&["send-keys", "-t", &self.pane, &key.name()]);
    }

    /// Presses a key, ignoring that the program may be gone.
    pub fn try_key(&self, key: Key) {
        let words = ["send-keys", "-t", &self.pane, &key.name()];
        self.server.try_run(&words).ok();
    }

    /// Types a line, waits until it is shown, and sends it.
    ///
    /// If both came at once, the program would treat them as pasted text, in which the last key is
    /// only a newline. Some programs lose what is typed before they are ready, without showing that
    /// they are not.
    #[track_caller]
    pub fn type_line(&self, line: &str) {
        let wanted = squeezed(line);
        let before = squeezed(&self.screen()).matches(&wanted).count();
        for _ in 0..4 {
            self.type_text(line);
            // Seen twice, because a key that follows too soon would count as part of the pasted
            // text.
            let times = Cell::new(0);
            let shown = |screen: &str| {
                let is_shown = squeezed(screen).matches(&wanted).count() > before;
                times.set(if is_shown { times.get() + 1 } else { 0 });
                times.get() > 1
            };
            if self.appears(SHOWS, shown).is_some() {
                self.key(Key::Enter);
                return;
            }
            self.key(Key::Ctrl('u'));
        }
        panic!("{line} is not shown; the screen shows\n{}", self.screen());
    }

    /// Closes the window as a person does: its program is hung up.
    pub fn kill_window(&self) {
        self.server.try_run(&["kill-window", "-t", &self.id]).ok();
    }

    /// Sends a signal to the started process.
    pub fn signal(&self, signal: Signal) -> bool {
        self.process.signal(signal)
    }

    /// Waits until the started process is gone.
    #[track_caller]
    pub fn wait_gone(&self) {
        let gone = self.process.wait_gone(LONG);
        assert!(gone, "it goes on; the screen shows\n{}", self.screen());
    }
}

/// Removes white space and box-drawing lines.
pub(super) fn squeezed(text: &str) -> String {
    let is_drawn = |one: char| matches!(one, '\u{2500}'..='\u{259f}' | '\u{200b}');
    text.chars()
        .filter(|one| !one.is_whitespace() && !is_drawn(*one))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn boxes_and_breaks_are_not_compared() {
        assert_eq!(super::squeezed("│ a b │\n╰───╯c"), "abc");
    }
}

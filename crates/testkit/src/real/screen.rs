//! An agent at a terminal, as a person uses it.
//!
//! Screen contents are compared without white space, because the agent moves the cursor instead of
//! printing blanks.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::env::Env;
use crate::pinned::Pinned;
use crate::poll::poll;
use crate::protocol::WorkerMode;
use crate::terminal::Terminal;
use crate::worker;

/// How long a person would wait on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// Longer than a working agent pauses between two drawings.
const QUIET: Duration = Duration::from_millis(700);

/// After this long without an effect, a key was lost.
const LOST: Duration = Duration::from_secs(3);

/// A program that leads a process session at a terminal.
#[derive(Debug)]
pub struct Screen {
    process: Pinned,
    terminal: Terminal,
    /// How much of the output was already matched.
    seen: Cell<usize>,
}

impl Screen {
    pub(super) fn open(env: &Env, program: &str, args: &[&str]) -> Screen {
        let terminal = Terminal::open();
        terminal.resize(40, 120);
        let words = std::iter::once(program).chain(args.iter().copied());
        let mode = WorkerMode::Become {
            terminal: terminal.path().to_owned(),
            argv: words.map(str::to_owned).collect(),
        };
        let mut variables = env.variables();
        variables.push(("TERM".to_owned(), "xterm-256color".to_owned()));
        let order = env.place().order_mode(&mode, "terminal", &[]);
        let process = worker::pin(env.place().launch(&variables, order));
        Screen {
            process,
            terminal,
            seen: Cell::new(0),
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.started().pid
    }

    /// Whether it is running or stopped, not dead.
    pub fn is_alive(&self) -> bool {
        !self.process.is_gone()
    }

    /// All output, without white space and escape sequences.
    pub fn shown(&self) -> String {
        plain(&self.terminal.shown())
    }

    /// Waits for an answer; on timeout, panics with the contents of the terminal.
    #[track_caller]
    pub fn until<T>(&self, what: &str, mut f: impl FnMut() -> Option<T>) -> T {
        let end = Instant::now() + LONG;
        let found = poll(LONG * 2, what, || match f() {
            Some(answer) => Some(Some(answer)),
            None => (Instant::now() > end || !self.is_alive()).then_some(None),
        });
        match found {
            Some(answer) => answer,
            None => panic!("{what}: in vain; the terminal shows\n{}", self.shown()),
        }
    }

    /// Waits until this text appears, after the text that was waited for before.
    #[track_caller]
    pub fn await_text(&self, text: &str) {
        let wanted: String = text.split_whitespace().collect();
        let end = self.until(&format!("the terminal shows {text}"), || {
            let shown = self.shown();
            let from = self.seen.get().min(shown.len());
            let at = shown.get(from..)?.find(&wanted)?;
            Some(from + at + wanted.len())
        });
        self.seen.set(end);
    }

    /// Waits until the agent is ready for a line: it keeps drawing while it works, and then stops.
    ///
    /// No hook reports this. After `/clear` the next session has started while the line is still
    /// shown. An agent that has drawn nothing is still starting: what is typed then is echoed by the
    /// terminal itself, and the key after it does not send it.
    #[track_caller]
    pub fn await_quiet(&self) {
        let (mut length, mut since) = (0, Instant::now());
        self.until("the terminal is quiet", || {
            let now = self.terminal.shown().len();
            if now != length {
                (length, since) = (now, Instant::now());
            }
            (length > 0 && since.elapsed() > QUIET).then_some(())
        });
    }

    /// Types a line when the agent is ready for one: first the text, and once it is shown, the key
    /// that sends it.
    ///
    /// If both came at once, the agent would treat them as pasted text, in which that key is only a
    /// newline.
    #[track_caller]
    pub fn type_line(&self, line: &str) {
        self.await_quiet();
        self.seen.set(self.shown().len());
        self.terminal.write(line);
        self.await_text(line);
        self.terminal.write("\r");
    }

    /// Presses a key until it has the effect that `f` looks for, with a pause before each further
    /// press: a key that comes while a question is still being drawn is lost.
    ///
    /// Without the pause the agent would treat the keys as pasted text: newlines that fill the line
    /// that it reads and push everything else off the screen.
    #[track_caller]
    pub fn press_until<T>(&self, key: &str, what: &str, mut f: impl FnMut() -> Option<T>) -> T {
        let mut pressed: Option<Instant> = None;
        self.until(what, || {
            if pressed.is_none_or(|at| at.elapsed() > LOST) {
                self.terminal.write(key);
                pressed = Some(Instant::now());
            }
            f()
        })
    }

    /// Kills it with -9 and waits until it is gone.
    pub fn kill9(&self) {
        worker::kill9(&self.process);
    }

    /// Waits until it exits by itself.
    #[track_caller]
    pub fn await_end(&self) {
        let gone = self.process.wait_gone(LONG);
        assert!(gone, "it goes on; its terminal shows\n{}", self.shown());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.kill9();
    }
}

/// Removes escape sequences, control characters and white space.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(one) = rest.next() {
        if one != '\u{1b}' {
            if !one.is_whitespace() && !one.is_control() {
                plain.push(one);
            }
            continue;
        }
        match rest.next() {
            // CSI: until its final letter.
            Some('[') => while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
            // OSC and other strings: until BEL or ST.
            Some(']' | 'P' | '_' | '^') => loop {
                match rest.next() {
                    Some('\u{7}') | None => break,
                    Some('\u{1b}') => {
                        rest.next();
                        break;
                    }
                    Some(_) => {}
                }
            },
            Some('(' | ')') => {
                rest.next();
            }
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_moves_and_colours_is_not_shown() {
        let text = "\u{1b}[1;31mred\u{1b}[0m\u{1b}[3Cand\u{1b}]0;title\u{7} \u{1b}(Bblue\r\n";
        assert_eq!(super::plain(text), "redandblue");
        assert_eq!(super::plain("a\u{1b}]8;;x\u{1b}\\b\u{1b}7c"), "abc");
    }
}

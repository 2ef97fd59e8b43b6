//! `tenure top`: the list of sessions, live, with what can be done about each.
//!
//! The service decides what is shown and in which order. `state` is what a person chose, and turns keys into acts;
//! `draw` makes lines of both; `paper` writes the lines that changed. Nothing here waits for the store
//! (`source`), so `q` ends it whatever the store does. Ages are drawn again when the next of them shows something
//! else.
//!
//! However it ends, the terminal is as it was before: see [`crate::screen`].

mod act;
mod draw;
mod keys;
mod paper;
#[cfg(test)]
mod sample;
mod source;
mod state;

use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rustix::process::{Signal, getpgrp, kill_process_group};
use signal_hook::consts::SIGHUP;
use tenure_host::{clock, pause};
use tenure_service::answer::{Class, Hint, Problem};

use self::keys::Key;
use self::paper::Paper;
use self::source::{ScreenEvent, Source};
use self::state::{Effect, Top};
use crate::screen::{MOUSE, Screen, Size, is_in_front};

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub enum TopExit {
    /// With `q`.
    Quit,
    Signal(i32),
    /// To resume this session in this terminal.
    Resume(String),
}

/// How long a process that stops itself may take to stop. One that cannot be stopped goes on after that.
const STOPS: Duration = Duration::from_millis(100);
/// The size of a terminal that does not say it.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

/// Shows the list until it is left.
pub fn run() -> Result<TopExit, Problem> {
    let no_terminal = |error: io::Error| {
        let message = format!("cannot use the terminal: {error}");
        let hint = Hint::verb("ps", "to list sessions once");
        Problem::new(Class::Internal, "internal", message, hint)
    };
    if !is_in_front(&io::stdin()) {
        let message = "tenure top cannot run in the background";
        let hint = Hint::verb("ps", "to list sessions once");
        return Err(Problem::new(Class::Refused, "no_terminal", message, hint));
    }
    // A signal that came in between would leave our screen behind.
    let signals = source::signals()?;
    let screen = Screen::enter(io::stdout(), io::stdin()).map_err(no_terminal)?;
    let source = Source::start(signals, screen.keyboard().map_err(no_terminal)?)?;
    let (mut top, mut paper) = (Top::default(), Paper::default());
    screen.write(MOUSE);
    let (mut is_lent, mut size) = (false, USUAL);
    loop {
        let now = clock::wall();
        // In the background the screen is another job's, and the thread that reads its keyboard is stopped by the kernel,
        // and this whole job with it.
        if screen.is_in_front() {
            if std::mem::take(&mut is_lent) {
                screen.resume().map_err(no_terminal)?;
                screen.write(MOUSE);
                paper.forget();
            }
            size = screen.size().unwrap_or(USUAL);
            let lines = draw::frame(&top, size, now);
            if !paper.show(&screen, &lines, size) {
                return Ok(TopExit::Signal(SIGHUP));
            }
        }
        let event = match source.events.recv_timeout(draw::next_age(&top, now)) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(TopExit::Quit),
        };
        let effects = match event {
            ScreenEvent::Fleet(fleet) => top.take(*fleet, clock::wall()),
            ScreenEvent::Away(problem) => top.take_problem(*problem)?,
            ScreenEvent::Details(wanted, found) => top.take_details(&wanted, found),
            ScreenEvent::Question(found) => top.take_question(found, size),
            ScreenEvent::Did(done) => top.take_done(done),
            ScreenEvent::Keys(keys) => {
                let pressed = |key| match key {
                    Key::Click(row) => {
                        let id = draw::session_at(&top, size, now, row);
                        id.map_or_else(Vec::new, |id| top.click(&id))
                    }
                    other => top.press(other),
                };
                keys.into_iter().flat_map(pressed).collect()
            }
            ScreenEvent::Resized => top.resize(),
            ScreenEvent::Continued => {
                is_lent = true;
                Vec::new()
            }
            ScreenEvent::Signal(signal) => return Ok(TopExit::Signal(signal)),
            ScreenEvent::Panicked(payload) => {
                drop(screen);
                resume_unwind(payload);
            }
        };
        for effect in effects {
            match effect {
                // The thread that answers ends with this process.
                Effect::Ask(ask) => drop(source.asks.send(ask)),
                Effect::Stop => {
                    is_lent = true;
                    screen.suspend();
                    stop().map_err(no_terminal)?;
                }
                Effect::Leave(left) => return Ok(left),
            }
        }
    }
}

/// Stops this job, as Ctrl-Z does, until the shell continues it. One that no shell can continue is not stopped by that.
fn stop() -> io::Result<()> {
    kill_process_group(getpgrp(), Signal::TSTP)?;
    pause::sleep(STOPS);
    Ok(())
}

//! Colours on a terminal, and the only codes for one that leave this program.

use std::io::IsTerminal;
use std::sync::OnceLock;

use tenure_core::text;

/// The only codes for a terminal that leave this program: the end of a colour, and the colours.
pub const CODES: &[&str] = &[
    "\u{1b}[0m",
    "\u{1b}[32m",
    "\u{1b}[1;35m",
    "\u{1b}[36m",
    "\u{1b}[33m",
    "\u{1b}[31m",
    "\u{1b}[2m",
];

/// To the top left corner of an empty screen.
pub const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Whether text on stdout may carry colour; asked once, however many words there are to paint.
pub fn colours() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| std::io::stdout().is_terminal() && wants_colour())
}

fn wants_colour() -> bool {
    !is_dumb() && tenure_host::env::var("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether the terminal understands no codes at all.
pub fn is_dumb() -> bool {
    tenure_host::env::var("TERM").is_some_and(|term| term == "dumb")
}

/// Paints a word for a terminal.
pub fn paint(word: &str, state: &str) -> String {
    if colours() {
        painted(word, state)
    } else {
        word.to_owned()
    }
}

/// Paints words for a program that shows them on its own terminal.
pub fn paint_for_agent(words: &str, state: &str) -> String {
    if wants_colour() {
        painted(words, state)
    } else {
        words.to_owned()
    }
}

fn painted(word: &str, state: &str) -> String {
    let colour = match state {
        "live" | "busy" | "held" => CODES[1],
        "waiting" => CODES[2],
        "idle" | "finished" => CODES[3],
        "unknown" | "suspect" | "stalled" | "starting" => CODES[4],
        "dead" | "cut off" => CODES[5],
        _ => CODES[6],
    };
    format!("{colour}{}{}", text::line(word), CODES[0])
}

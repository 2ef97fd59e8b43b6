//! Colours on a terminal, and the only codes for one that leave this program.
//!
//! Text is escaped before a colour is put beside it, so no text from outside can bring colours of its own.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::OnceLock;

use tenure_core::text;
use unicode_width::UnicodeWidthChar;

/// The end of a colour, and the colours.
const CODES: &[&str] = &[
    "\u{1b}[0m",
    "\u{1b}[32m",
    "\u{1b}[1;35m",
    "\u{1b}[36m",
    "\u{1b}[33m",
    "\u{1b}[31m",
    "\u{1b}[2m",
    "\u{1b}[7m",
];

/// To the top left corner of an empty screen.
pub const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// A line that is ready to be shown, at this row of the screen and instead of what is there.
pub fn to_line(row: usize, line: &str) -> String {
    format!("\u{1b}[{row};1H\u{1b}[K{line}")
}

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

/// A line, or part of one: escaped text with our colours in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Painted(String);

impl Painted {
    #[must_use]
    pub fn and(mut self, more: impl Into<Painted>) -> Self {
        self.push(more);
        self
    }

    pub fn push(&mut self, more: impl Into<Painted>) {
        self.0.push_str(&more.into().0);
    }

    /// Without blanks at its end.
    #[must_use]
    pub fn trim_end(mut self) -> Self {
        self.0.truncate(self.0.trim_end().len());
        self
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Painted {
    fn from(text: &str) -> Self {
        Self(text::line(text).into_owned())
    }
}

impl From<String> for Painted {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&String> for Painted {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Cow<'_, str>> for Painted {
    fn from(text: Cow<'_, str>) -> Self {
        text.as_ref().into()
    }
}

/// Paints a word for a terminal.
pub fn paint(word: &str, state: &str) -> Painted {
    if colours() {
        painted(word, state)
    } else {
        word.into()
    }
}

/// Paints words for a program that shows them on its own terminal.
pub fn paint_for_agent(words: &str, state: &str) -> Painted {
    if wants_colour() {
        painted(words, state)
    } else {
        words.into()
    }
}

/// A line that is ready to be shown, as the one that is chosen.
pub fn chosen(line: &str) -> String {
    if !colours() {
        return line.to_owned();
    }
    let (end, reverse) = (CODES[0], CODES[7]);
    let kept = line.replace(end, &format!("{end}{reverse}"));
    format!("{reverse}{kept}{end}")
}

/// As much of a line that is ready to be shown as fits into this many columns.
pub fn cut_painted(line: &str, most: usize) -> String {
    let (mut kept, mut width, mut in_code) = (String::new(), 0, false);
    for c in line.chars() {
        if c == '\u{1b}' {
            in_code = true;
        } else if !in_code {
            width += c.width().unwrap_or(0);
        }
        // The codes behind the cut are kept: the last one ends the colour.
        if in_code || width <= most {
            kept.push(c);
        }
        in_code &= c != 'm';
    }
    kept
}

fn painted(word: &str, state: &str) -> Painted {
    let colour = match state {
        "live" | "busy" | "held" => CODES[1],
        "waiting" => CODES[2],
        "idle" | "finished" => CODES[3],
        "unknown" | "suspect" | "stalled" | "starting" | "retrying" | "suspended" => CODES[4],
        "dead" | "cut off" | "failed" | "limited" => CODES[5],
        _ => CODES[6],
    };
    Painted(format!("{colour}{}{}", text::line(word), CODES[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_brings_no_colours_of_its_own() {
        let fake = format!("{}live{}", CODES[1], CODES[0]);
        let line = painted(&fake, "dead").and(" ").and(&fake);
        let shown = "\\u{1b}[32mlive\\u{1b}[0m";
        let own = format!("{}{shown}{} {shown}", CODES[5], CODES[0]);
        assert_eq!(line.as_str(), own);
    }

    #[test]
    fn a_painted_line_is_cut_by_what_is_seen_of_it() {
        let line = format!("ab{}cdef{}gh", CODES[1], CODES[0]);
        let cut = cut_painted(&line, 4);
        assert_eq!(cut, format!("ab{}cd{}", CODES[1], CODES[0]));
        assert_eq!(cut_painted("日本", 3), "日");
        assert_eq!(cut_painted("", 1), "");
    }
}

//! Asking the person at the terminal.

use std::io::{BufRead, IsTerminal};

use crate::sink::mention;

/// Whether a person is there to answer.
pub fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks for a yes; anything else, and no person, is a no.
pub fn asked(question: &str) -> bool {
    if !is_at_terminal() {
        return false;
    }
    mention(&format!("{question} [y/N]"));
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    let answer = line.trim().to_ascii_lowercase();
    read.is_ok() && matches!(answer.as_str(), "y" | "yes")
}

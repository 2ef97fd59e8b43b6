//! What an agent's standard error says after a failed exit.

use tenure_core::run::failure::{AgentFailure, ErrorClass};

/// No more than the end of a long text is looked at.
const MAX_LENGTH: usize = 64 * 1024;

/// Words that give an error its class.
pub(crate) type Signs = &'static [(&'static str, ErrorClass)];

/// The text without the sequences that colour a terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut start = text.len().saturating_sub(MAX_LENGTH);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let mut out = String::new();
    let mut rest = &text[start..];
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        rest = after
            .strip_prefix('[')
            .and_then(|code| {
                let end = code.find(|c: char| ('\u{40}'..='\u{7e}').contains(&c))?;
                Some(&code[end + 1..])
            })
            .unwrap_or(after);
    }
    out.push_str(rest);
    out
}

/// The error that a text tells: of the class of the first sign that is in it.
pub(crate) fn failure(text: &str, signs: Signs) -> AgentFailure {
    let sign = signs.iter().find(|(words, _)| text.contains(words));
    let (line, class) = match sign {
        Some((words, class)) => (text.lines().find(|line| line.contains(words)), *class),
        None => (telling(text), ErrorClass::Other),
    };
    AgentFailure::new(class, line.unwrap_or_default())
}

/// The line that most likely tells people what went wrong.
fn telling(text: &str) -> Option<&str> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let error = lines().rfind(|line| line.trim_start().starts_with("Error"));
    error.or_else(|| lines().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_out() {
        assert_eq!(
            plain("\u{1b}[91m\u{1b}[1mError: \u{1b}[0mgone"),
            "Error: gone"
        );
        assert_eq!(plain("a\u{1b}"), "a");
        assert_eq!(plain("a\u{1b}[31"), "a[31");
        let long = "ä".repeat(MAX_LENGTH);
        assert!(plain(&long).len() <= MAX_LENGTH);
    }

    #[test]
    fn an_unknown_text_is_shown_by_its_error() {
        let text = "warning\nError: no such model\n    at main\n}\n";
        assert_eq!(failure(text, &[]).text, "Error: no such model");
        assert_eq!(failure("a\nb\n\n", &[]).text, "b");
        assert_eq!(failure("", &[]).class, ErrorClass::Other);
    }
}

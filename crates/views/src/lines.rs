//! Text for people, built line by line: whatever is put into a line, it stays one line, and nothing in it
//! moves the cursor, reorders the text or hides. Text from outside may therefore stand in any line.

use std::sync::OnceLock;

use tenure_core::text;

use crate::colour::Painted;

/// Lines that are ready to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines(String);

impl Lines {
    pub fn line(&mut self, line: impl Into<Painted>) {
        let line = line.into();
        if is_ascii() {
            self.0.push_str(&in_ascii(line.as_str()));
        } else {
            self.0.push_str(line.as_str());
        }
        self.0.push('\n');
    }

    pub fn extend(&mut self, more: &Lines) {
        self.0.push_str(&more.0);
    }

    /// Text that is wholly our own, as it is.
    pub fn own(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Lines of a file, whose tabs stay.
    pub fn of_file(contents: &str) -> Self {
        let mut lines = Self::default();
        for line in contents.lines() {
            let parts: Vec<_> = line.split('\t').map(text::line).collect();
            lines.0.push_str(&parts.join("\t"));
            lines.0.push('\n');
        }
        lines
    }

    /// At most this many lines; the last one counts those that do not fit.
    #[must_use]
    pub fn at_most(self, most: usize) -> Self {
        let all = self.0.lines().count();
        if all <= most || most == 0 {
            return self;
        }
        let kept = self.0.lines().take(most - 1);
        let text: String = kept.flat_map(|line| [line, "\n"]).collect();
        let mut cut = Self(text);
        cut.line(format!("… {} more", all - (most - 1)));
        cut
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, without the last line's end.
    pub fn as_str(&self) -> &str {
        self.0.trim_end_matches('\n')
    }
}

/// Whether the locale has no other characters.
fn is_ascii() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let set = |name: &str| tenure_host::env::var(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        locale.is_some_and(|locale| locale == "C" || locale == "POSIX")
    })
}

/// Our own marks in ASCII, as wide as they were; names and titles stay what they are.
fn in_ascii(line: &str) -> String {
    let mark = |c| match c {
        '…' => '~',
        '└' => '`',
        '→' => '>',
        other => other,
    };
    line.chars().map(mark).collect()
}

impl From<Painted> for Lines {
    fn from(line: Painted) -> Self {
        let mut lines = Self::default();
        if !line.as_str().is_empty() {
            lines.line(line);
        }
        lines
    }
}

impl From<&str> for Lines {
    fn from(line: &str) -> Self {
        Painted::from(line).into()
    }
}

impl From<String> for Lines {
    fn from(line: String) -> Self {
        line.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let lines = || Lines::own("a\nb\nc\n");
        assert_eq!(lines().at_most(3).as_str(), "a\nb\nc");
        assert_eq!(lines().at_most(2).as_str(), "a\n… 2 more");
        assert_eq!(lines().at_most(1).as_str(), "… 3 more");
    }

    #[test]
    fn our_own_marks_have_a_form_in_ascii() {
        assert_eq!(
            in_ascii("└ claude  …web#42  1→2  日本"),
            "` claude  ~web#42  1>2  日本"
        );
    }

    #[test]
    fn a_line_stays_one_line() {
        let mut lines = Lines::from("one\ntwo".to_owned());
        lines.line("\u{1b}[31mred\r\n");
        assert_eq!(lines.as_str(), "one\\ntwo\n\\u{1b}[31mred\\r\\n");
        let file = Lines::of_file("a\tb\u{1b}\nc\n");
        assert_eq!(file.as_str(), "a\tb\\u{1b}\nc");
    }
}

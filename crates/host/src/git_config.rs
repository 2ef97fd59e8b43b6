//! Parses git's configuration files, as described in git-config(1).
//!
//! Only one file is read: includes are not followed. A file with a syntax error yields everything before the
//! error; git itself refuses such a file.

use std::iter::Peekable;
use std::str::Chars;

/// One `key = value`, with its section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigEntry {
    /// The section's name in lower case.
    pub section: String,
    /// The section's second name, as written.
    pub subsection: Option<String>,
    /// The key in lower case.
    pub key: String,
    /// The value without quotes and comments.
    pub value: String,
}

pub(crate) fn parse(text: &str) -> Vec<ConfigEntry> {
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n");
    let mut chars = text.chars().peekable();
    let mut entries = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => {}
            '#' | ';' => skip_line(&mut chars),
            '[' => match header(&mut chars) {
                Some(found) => section = Some(found),
                None => break,
            },
            c if c.is_ascii_alphabetic() => {
                let Some((key, value)) = variable(c, &mut chars) else {
                    break;
                };
                let Some((section, subsection)) = section.clone() else {
                    break;
                };
                entries.push(ConfigEntry {
                    section,
                    subsection,
                    key,
                    value,
                });
            }
            _ => break,
        }
    }
    entries
}

fn skip_line(chars: &mut Peekable<Chars<'_>>) {
    // The newline goes too; it separates nothing after a comment.
    for c in chars.by_ref() {
        if c == '\n' {
            return;
        }
    }
}

/// What follows `[`: `name]`, `name "second name"]` or the old form `name.second]`.
fn header(chars: &mut Peekable<Chars<'_>>) -> Option<(String, Option<String>)> {
    let mut name = String::new();
    loop {
        match chars.next()? {
            ']' => {
                let lower = name.to_ascii_lowercase();
                return Some(match lower.split_once('.') {
                    Some((first, second)) => (first.to_owned(), Some(second.to_owned())),
                    None => (lower, None),
                });
            }
            ' ' | '\t' => break,
            c if c.is_ascii_alphanumeric() || c == '-' || c == '.' => name.push(c),
            _ => return None,
        }
    }
    while chars.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
    (chars.next()? == '"').then_some(())?;
    let mut second = String::new();
    loop {
        match chars.next()? {
            '"' => break,
            '\n' => return None,
            '\\' => second.push(chars.next()?),
            c => second.push(c),
        }
    }
    (chars.next()? == ']').then(|| (name.to_ascii_lowercase(), Some(second)))
}

/// A key that starts with `first`, and its value; a key alone means true.
fn variable(first: char, chars: &mut Peekable<Chars<'_>>) -> Option<(String, String)> {
    let mut key = String::from(first);
    while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
        key.push(c);
    }
    key.make_ascii_lowercase();
    while chars.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
    match chars.peek() {
        Some('=') => {
            chars.next();
            Some((key, value(chars)?))
        }
        None | Some('\n' | '#' | ';') => Some((key, "true".to_owned())),
        Some(_) => None,
    }
}

fn value(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut value = String::new();
    // The length up to which the value is kept: trailing blanks count only inside quotes.
    let mut kept = 0;
    let mut quoted = false;
    loop {
        let c = match chars.next() {
            None | Some('\n') if quoted => return None,
            None | Some('\n') => break,
            Some(c) => c,
        };
        match c {
            '"' => {
                quoted = !quoted;
                kept = value.len();
                continue;
            }
            '#' | ';' if !quoted => {
                skip_line(chars);
                break;
            }
            ' ' | '\t' if !quoted => {
                if kept > 0 || !value.is_empty() {
                    value.push(c);
                }
                continue;
            }
            '\\' => match chars.next()? {
                '\n' => continue,
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'b' => value.push('\u{8}'),
                c @ ('"' | '\\') => value.push(c),
                _ => return None,
            },
            c => value.push(c),
        }
        kept = value.len();
    }
    value.truncate(kept);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        parse(text).into_iter().map(|entry| entry.value).collect()
    }

    #[test]
    fn sections_are_read_in_all_their_forms() {
        let text =
            "[Core]\n\tbare = false\n[REMOTE \"Or\\\"i\\\\g\"] URL = a # c\n[remote.UP]\nurl=b";
        let found: Vec<_> = parse(text)
            .into_iter()
            .map(|e| (e.section, e.subsection, e.key, e.value))
            .collect();
        let entry = |s: &str, sub: Option<&str>, k: &str, v: &str| {
            (
                s.to_owned(),
                sub.map(str::to_owned),
                k.to_owned(),
                v.to_owned(),
            )
        };
        let expected = [
            entry("core", None, "bare", "false"),
            entry("remote", Some("Or\"i\\g"), "url", "a"),
            entry("remote", Some("up"), "url", "b"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn values_lose_quotes_comments_and_blanks() {
        assert_eq!(values("[a]\nx = \t one two \t; no\n"), ["one two"]);
        assert_eq!(values("[a]\nx = \" one # \" ; no\n"), [" one # "]);
        assert_eq!(values("[a]\nx = a\" b \"c\n"), ["a b c"]);
        assert_eq!(values("[a]\nx = one \\\n two\r\ny\n"), ["one  two", "true"]);
        assert_eq!(
            values("\u{feff}[a]\r\nx = \\\"q\\\" \\t\n# end"),
            ["\"q\" \t"]
        );
        assert_eq!(values("[a]\nx =\ny = \"\"\n"), ["", ""]);
    }

    #[test]
    fn a_broken_file_yields_what_came_before() {
        assert_eq!(values("[a]\nx = 1\n[b\ny = 2\n"), ["1"]);
        assert_eq!(values("[a]\nx = 1\ny = \"open\nz = 3"), ["1"]);
        assert_eq!(values("x = 1\n"), Vec::<String>::new());
    }
}

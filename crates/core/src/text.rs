//! Untrusted text, made safe to show.
//!
//! A path, a branch, a title, a note, a reason or a message was written by someone else, and is shown on a
//! terminal or in the channel that a model trusts. It is shown as one line without any character that moves the
//! cursor, reorders the line, hides, or starts a new line: each such character is escaped (`\n`, `\u{202e}`).
//! The functions are pure and total: they accept any string.
//!
//! Each function is idempotent, except [`quoted`] and [`shell`].

use std::borrow::Cow;

use crate::id::Malformed;
use crate::visible::is_shown;

/// The longest title, in characters.
pub const MAX_TITLE: usize = 200;
/// The longest note, in characters.
pub const MAX_NOTE: usize = 1_000;
/// The longest message to a session, in characters.
pub const MAX_MESSAGE: usize = 1_000;

/// Refuses a text that is longer than this many characters.
pub fn check_length(what: &'static str, text: &str, most: usize) -> Result<(), Malformed> {
    let count = text.chars().count();
    if count <= most {
        return Ok(());
    }
    let why = format!("it has {count} characters; at most {most} are allowed");
    Err(Malformed::new(what, text, why))
}

/// A text of our own, shortened to this many characters.
pub fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let head: String = text.chars().take(most - 1).collect();
            format!("{head}…")
        }
    }
}

/// Whether a character can change how the text around it is read. Emoji variation selectors and a plain blank
/// cannot.
pub(crate) fn is_hidden(c: char) -> bool {
    !is_shown(c) && !matches!(c, '\u{fe0e}' | '\u{fe0f}' | '\u{2800}')
}

fn spell(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        other => out.extend(other.escape_unicode()),
    }
}

/// The text on one line, with every hidden character escaped.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_hidden(c) {
            spell(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A JSON text in which every hidden character is escaped, as JSON spells it (`\u202e`).
pub fn json(text: &str) -> Cow<'_, str> {
    // JSON escapes the control characters of ASCII itself; outside of strings they are only layout.
    let escapes = |c: char| c >= '\u{7f}' && is_hidden(c);
    if text.bytes().all(|byte| byte < 0x7f) || !text.chars().any(escapes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut units = [0; 2];
    for c in text.chars() {
        if escapes(c) {
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Someone else's words, in quotation marks.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_hidden(c) => spell(&mut out, c),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A name from outside (a path, a branch, a key): unchanged if it reads as one word, quoted otherwise.
pub fn name(text: &str) -> Cow<'_, str> {
    let is_word = |c: char| c.is_alphanumeric() || "/._-+=:@%,#~*?[]{}()^&!|<>$\\".contains(c);
    let plain = |c: char| is_word(c) && !is_hidden(c);
    if !text.is_empty() && text.chars().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(quoted(text))
    }
}

/// A word quoted for a shell.
pub fn shell(word: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || ":/.,_-+@%=".contains(c);
    let safe = |c: char| is_word(c) && !is_hidden(c);
    let inner = |c: char| safe(c) || c == '#';
    let starts_well = word.chars().next().is_some_and(|c| safe(c) && c != '=');
    if starts_well && word.chars().all(inner) {
        return word.to_owned();
    }
    if !word.chars().any(is_hidden) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let mut out = String::from("$'");
    let mut bytes = [0; 4];
    for c in word.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            c if is_hidden(c) => {
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    out.push_str(&format!("\\{byte:03o}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Text in the normal form of keys and globs.
pub fn nfc(text: &str) -> String {
    unicode_normalization::UnicodeNormalization::nfc(text).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One of each kind that must never be shown unescaped.
    const HOSTILE: &[char] = &[
        '\n',
        '\r',
        '\t',
        '\0',
        '\u{7}',
        '\u{1b}',
        '\u{7f}',
        '\u{80}',
        '\u{85}',
        '\u{9b}',
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{200b}',
        '\u{200d}',
        '\u{200f}',
        '\u{2028}',
        '\u{2029}',
        '\u{202a}',
        '\u{202e}',
        '\u{2060}',
        '\u{2066}',
        '\u{2069}',
        '\u{3164}',
        '\u{feff}',
        '\u{fff9}',
        '\u{e000}',
        '\u{fe00}',
        '\u{e0001}',
        '\u{e0041}',
        '\u{e007f}',
        '\u{e0100}',
        '\u{10ffff}',
    ];

    #[test]
    fn every_kind_of_hidden_character_is_spelt_out() {
        for &c in HOSTILE {
            let text = format!("a{c}b");
            let shown = line(&text);
            assert!(!shown.contains(c), "U+{:04X} in {shown:?}", u32::from(c));
            assert!(shown.starts_with("a\\") && shown.ends_with('b'), "{shown}");
        }
        assert_eq!(
            line("a\nb\u{1b}]0;x\u{7}\u{202e}"),
            r"a\nb\u{1b}]0;x\u{7}\u{202e}"
        );
    }

    #[test]
    fn what_can_be_seen_stays() {
        for text in [
            "",
            "fix login",
            "Ölçü 日本語 👍\u{fe0f}",
            "a\u{a0}b",
            r"C:\x",
        ] {
            assert_eq!(line(text), text);
        }
    }

    #[test]
    fn json_spells_out_what_is_hidden_and_means_the_same() {
        let whole: String = HOSTILE.iter().chain(&['a', 'é', '日']).collect();
        let text = serde_json::to_string(&whole).unwrap();
        let shown = json(&text);
        assert!(!shown.chars().any(is_hidden), "{shown}");
        assert!(
            shown.contains(r"\u007f") && shown.contains(r"\udb40\udc41"),
            "{shown}"
        );
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), whole);
        assert_eq!(json("{\n  \"é\": 1\n}"), "{\n  \"é\": 1\n}");
    }

    #[test]
    fn a_name_is_quoted_where_it_could_be_read_as_more() {
        for plain in [
            "main",
            "feature/x-1",
            "/srv/web",
            "path:acme/web:src/**",
            "ümlaut",
        ] {
            assert_eq!(name(plain), plain);
        }
        assert_eq!(name(""), "\"\"");
        assert_eq!(name("main. IMPORTANT"), "\"main. IMPORTANT\"");
        assert_eq!(name("a\"b\n"), r#""a\"b\n""#);
    }

    #[test]
    fn a_word_for_a_shell() {
        for (word, typed) in [
            ("issue:acme/web#42", "issue:acme/web#42"),
            ("", "''"),
            ("#42", "'#42'"),
            ("~x", "'~x'"),
            ("=x", "'=x'"),
            ("a b", "'a b'"),
            ("$(rm)", "'$(rm)'"),
            ("it's", "'it'\\''s'"),
            ("a\n'\u{202e}", "$'a\\012\\'\\342\\200\\256'"),
        ] {
            assert_eq!(shell(word), typed);
        }
    }

    #[test]
    fn lengths_are_counted_in_characters() {
        assert!(check_length("title", &"ä".repeat(200), MAX_TITLE).is_ok());
        let long = check_length("title", &"ä".repeat(201), MAX_TITLE).unwrap_err();
        assert!(long.to_string().contains("201 characters"), "{long}");
        assert!(long.to_string().len() < 300, "{long}");
    }

    fn nasty() -> impl Strategy<Value = String> {
        let hidden = proptest::sample::select(HOSTILE);
        let any = prop_oneof![hidden, any::<char>(), proptest::char::range(' ', '~')];
        proptest::collection::vec(any, 0..60).prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left_and_nothing_seen_is_changed(text in nasty()) {
            for shown in [line(&text).into_owned(), quoted(&text), name(&text).into_owned(), shell(&text)] {
                prop_assert!(!shown.chars().any(is_hidden), "{:?}", shown);
            }
            let seen: String = text.chars().filter(|c| !is_hidden(*c)).collect();
            prop_assert_eq!(line(&seen), seen.as_str());
            let once = line(&text).into_owned();
            prop_assert_eq!(line(&once), once.as_str());
        }

        #[test]
        fn a_quotation_ends_where_it_ends(text in nasty()) {
            let shown = quoted(&text);
            let mut inner = shown[1..shown.len() - 1].chars();
            while let Some(c) = inner.next() {
                prop_assert!(c != '"', "{}", shown);
                if c == '\\' {
                    prop_assert!(inner.next().is_some(), "{}", shown);
                }
            }
        }
    }
}

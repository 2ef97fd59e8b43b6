//! Claim keys: `scheme:rest`, one canonical spelling for one work item.
//!
//! Two spellings of one item would be two claims, so everything that can be spelt twice is brought to
//! one form here, before it is compared byte for byte: text is put into NFC, and short forms (`#42`,
//! `issue:42`, `pr:42`) are completed with the repository's owner and name. What cannot be told apart by
//! a reader (format and unassigned characters, spaces at the ends) is refused.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use crate::glob::Glob;
use crate::id::Malformed;

/// The longest key, in bytes.
pub const MAX_BYTES: usize = 512;

/// The canonical name of a work item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(String);

/// The repository in which a key was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repo {
    /// Owner and name of its remote, else its common directory.
    pub name: String,
    /// Whether that is the remote's.
    pub has_remote: bool,
}

/// Schemes whose number may be written without the repository.
const NUMBERED: [&str; 2] = ["issue", "pr"];

impl Key {
    /// Reads what a person typed, completing short forms with the repository that it was typed in.
    ///
    /// Numbers need the remote's `owner/name`; path globs also have a repository without a remote.
    pub fn complete(typed: &str, repo: Option<&Repo>) -> Result<Self, Malformed> {
        if let Some(glob) = typed
            .strip_prefix("path:")
            .filter(|rest| !rest.contains(':'))
        {
            return match repo {
                Some(repo) => Self::parse(&format!("path:{}:{glob}", repo.name)),
                None => Err(Malformed::new(
                    "key",
                    typed,
                    "this directory is in no git repository; write path:OWNER/NAME:GLOB",
                )),
            };
        }
        let repo = repo
            .filter(|repo| repo.has_remote)
            .map(|repo| repo.name.as_str());
        match short_form(typed) {
            None => Self::parse(typed),
            Some((scheme, number)) => match repo {
                Some(repo) => Self::parse(&format!("{scheme}:{repo}#{number}")),
                None => Err(Malformed::new(
                    "key",
                    typed,
                    format!(
                        "this directory has no git remote to complete it from; write {scheme}:OWNER/NAME#{number}"
                    ),
                )),
            },
        }
    }

    /// Reads a whole key.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let bad = |why: &str| Err(Malformed::new("key", text, why));
        if text.is_empty() {
            return bad("it is empty");
        }
        let canonical: String = match text.is_ascii() {
            // As it is in NFC.
            true => text.to_owned(),
            false => text.nfc().collect(),
        };
        if canonical.len() > MAX_BYTES {
            return bad("it is longer than 512 bytes");
        }
        if let Some(c) = canonical.chars().find(|c| !is_printable(*c)) {
            return bad(&format!(
                "it contains U+{:04X}, which cannot be seen",
                u32::from(c)
            ));
        }
        let Some((scheme, rest)) = canonical.split_once(':') else {
            return bad("expected SCHEME:NAME, such as issue:acme/web#42");
        };
        if !is_scheme(scheme) {
            return bad(
                "the part before the colon must be a lower-case letter, then a-z, 0-9, + . or -",
            );
        }
        if rest.is_empty() {
            return bad("nothing follows the colon");
        }
        if rest.starts_with(char::is_whitespace) || rest.ends_with(char::is_whitespace) {
            return bad("it has a space at an end");
        }
        if NUMBERED.contains(&scheme) && short_form(&canonical).is_some() {
            return bad("it lacks the repository; write SCHEME:OWNER/NAME#NUMBER");
        }
        if scheme == "path" {
            let Some((repo, glob)) = rest.rsplit_once(':').filter(|(repo, _)| !repo.is_empty())
            else {
                return bad("expected path:REPOSITORY:GLOB");
            };
            Glob::parse(glob)
                .map_err(|error| Malformed::new("key", text, format!("{}: {}", repo, error.why)))?;
        }
        Ok(Self(canonical))
    }

    /// The repository and the glob of a `path:` key.
    pub fn path(&self) -> Option<(&str, Glob)> {
        let (repo, glob) = self.0.strip_prefix("path:")?.rsplit_once(':')?;
        Glob::parse(glob).ok().map(|glob| (repo, glob))
    }

    /// What all `path:` keys of this key's repository begin with.
    pub fn path_space(&self) -> Option<String> {
        let (repo, _) = self.0.strip_prefix("path:")?.rsplit_once(':')?;
        Some(format!("path:{repo}:"))
    }

    /// The text of the key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key as it can be typed at a shell.
    pub fn quoted(&self) -> String {
        crate::text::shell(&self.0)
    }

    /// The part before the colon.
    pub fn scheme(&self) -> &str {
        self.0.split_once(':').map_or("", |(scheme, _)| scheme)
    }

    /// The part after the colon.
    pub fn rest(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, rest)| rest)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Recognises `#42`, `issue:42`, `issue:#42`, `pr:42`, `pr:#42`.
fn short_form(typed: &str) -> Option<(&str, &str)> {
    let (scheme, number) = match typed.strip_prefix('#') {
        Some(number) => ("issue", number),
        None => {
            let (scheme, rest) = typed.split_once(':')?;
            (scheme, rest.strip_prefix('#').unwrap_or(rest))
        }
    };
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (NUMBERED.contains(&scheme) && is_number).then_some((scheme, number))
}

fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'+' | b'.' | b'-')
        })
}

/// Whether a reader can see the character; the only space is the plain one.
fn is_printable(c: char) -> bool {
    use GeneralCategory as G;
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    !matches!(
        c.general_category(),
        G::Control
            | G::Format
            | G::Surrogate
            | G::PrivateUse
            | G::Unassigned
            | G::LineSeparator
            | G::ParagraphSeparator
            | G::SpaceSeparator
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web() -> Repo {
        Repo {
            name: "acme/web".into(),
            has_remote: true,
        }
    }

    #[test]
    fn f_c20_short_forms_and_spellings_are_one_key() {
        let full = Key::parse("issue:acme/web#42").unwrap();
        for typed in ["#42", "issue:42", "issue:#42", "issue:acme/web#42"] {
            assert_eq!(
                Key::complete(typed, Some(&web())),
                Ok(full.clone()),
                "{typed}"
            );
        }
        assert_eq!(
            Key::complete("pr:7", Some(&web())),
            Key::parse("pr:acme/web#7")
        );
        let composed = Key::parse("doc:caf\u{e9}").unwrap();
        assert_eq!(Key::parse("doc:cafe\u{301}"), Ok(composed));
        let path = Key::complete("path:src/**", Some(&web())).unwrap();
        assert_eq!(path.as_str(), "path:acme/web:src/**");
        assert_eq!(path.path_space().as_deref(), Some("path:acme/web:"));
        for bad in [
            "path:",
            "path:acme/web:",
            "path:acme/web:/etc/x",
            "path:acme/web:../x",
            "path:acme/web:[z-a]",
        ] {
            assert!(Key::parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert!(Key::complete("path:src/**", None).is_err());
    }

    #[test]
    fn a_short_form_without_a_remote_is_refused_not_guessed() {
        assert!(Key::complete("#42", None).is_err());
        assert!(Key::complete("issue:42", None).is_err());
    }

    #[test]
    fn f_c17_malformed_keys_are_refused() {
        let long = format!("wp:{}", "x".repeat(510));
        assert_eq!(long.len(), 513);
        let bad = [
            "",
            "x",
            ":",
            "wp:",
            ":x",
            "WP:1",
            "1p:x",
            "wp: x",
            "wp:x ",
            "wp:a\nb",
            "wp:a\0b",
            "wp:a\u{200b}b",
            "wp:a\u{202e}b",
            "wp:a\u{e000}",
            "wp:\u{a0}x",
            "wp:a\u{378}",
            "#",
            "#x",
            "issue:7",
            &long,
        ];
        for text in bad {
            assert!(Key::complete(text, None).is_err(), "{text:?} was accepted");
        }
        assert!(Key::parse(&long[..512]).is_ok());
        assert!(Key::parse("wp:041/WP03 second part").is_ok());
    }
}

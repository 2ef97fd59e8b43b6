//! Claim keys: `scheme:rest`, one canonical spelling for one work item.
//!
//! Two spellings of one item would be two claims, so everything that can be spelled in two ways is normalised
//! here ([`crate::spelling`]) before keys are compared byte for byte: text is converted to NFC, short forms
//! (`#42`, `issue:42`, `!7`) are completed with the repository's owner and name, and paths are resolved from
//! where they were typed. Characters that a reader cannot see or distinguish are refused.
//!
//! *Older version*: [`Key::stored`] reads what an older version wrote and changes nothing about it. A key that
//! is held keeps its text, whatever the rules are now.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use crate::glob::Glob;
use crate::id::Malformed;
use crate::repository::Repository;
use crate::spelling::{self, Within};
use crate::visible::is_shown;

/// The longest key, in bytes.
pub const MAX_BYTES: usize = 512;

/// The name of a work item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(String);

/// The worktree in which a key was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    pub repository: Repository,
    /// Its root, absolute.
    pub root: String,
    /// The directory in which it was typed, below the root; empty for the root itself.
    pub dir: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Directory,
    Other,
    Nothing,
}

pub struct Here<'a> {
    /// The worktree, if there is one.
    pub worktree: Option<&'a Worktree>,
    pub exists: bool,
    pub look: &'a dyn Fn(&str) -> Entry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    pub key: Key,
    /// What the typed text was taken for, if that may surprise.
    pub note: Option<String>,
}

/// Schemes whose number may be given without the repository.
const NUMBERED: [&str; 2] = ["issue", "pr"];

impl Key {
    /// Parses what a person typed, and completes short forms from where it was typed.
    ///
    /// Numbers need the remote's `owner/name`; paths work in a repository without a remote too.
    pub fn complete(typed: &str, here: &Here<'_>) -> Result<Typed, Malformed> {
        if let Some(rest) = typed.strip_prefix("path:") {
            return Self::complete_path(typed, rest, here);
        }
        let plain = |key: Key| Typed { key, note: None };
        let Some((scheme, number)) = short_form(typed) else {
            return Self::parse(typed).map(plain);
        };
        let remote = here
            .worktree
            .and_then(|found| found.repository.remote.as_deref());
        match remote {
            Some(repo) => Self::parse(&format!("{scheme}:{repo}#{number}")).map(plain),
            None => {
                let why = match (here.exists, here.worktree) {
                    (false, _) => "the current directory no longer exists",
                    (true, None) => "this directory is not in a git repository",
                    (true, Some(_)) => "this git repository has no remote that names it",
                };
                let why = format!("{why}; write {scheme}:OWNER/NAME#{number}");
                Err(Malformed::new("key", typed, why))
            }
        }
    }

    /// Parses a `path:` key: of this repository, from where it was typed; or of a named one, from its root.
    fn complete_path(typed: &str, rest: &str, here: &Here<'_>) -> Result<Typed, Malformed> {
        let bad = |why: String| Malformed::new("key", typed, why);
        if let Some((name, glob)) = rest.rsplit_once(':') {
            let name = spelling::repository_name(name);
            let own = here
                .worktree
                .filter(|found| found.repository.is_called(&name));
            let within = spelling::within("", glob).map_err(|why| bad(why.to_owned()))?;
            return Self::of_path(typed, &name, &within, glob, own.map(|own| (own, here)));
        }
        let Some(worktree) = here.worktree else {
            let why = if here.exists {
                "this directory is not in a git repository"
            } else {
                "the current directory no longer exists"
            };
            return Err(bad(format!("{why}; write path:OWNER/NAME:GLOB")));
        };
        if rest.is_empty() {
            return Err(bad("nothing follows the colon".into()));
        }
        let from = match below(&worktree.root, rest) {
            Some(inside) => inside,
            None => match outside_worktree(worktree, rest, here.look) {
                Some(outside) => {
                    let why = format!(
                        "{outside} is outside this repository; \
                         write path:{}:GLOB for a path from its root",
                        worktree.repository.name()
                    );
                    return Err(bad(why));
                }
                None => rest,
            },
        };
        let within = spelling::within(&worktree.dir, from).map_err(|why| bad(why.to_owned()))?;
        let name = worktree.repository.name();
        let mut done = Self::of_path(typed, name, &within, from, Some((worktree, here)))?;
        if done.note.is_none() && is_elsewhere(worktree, from, here.look) {
            done.note = Some(format!(
                "{typed} was typed in {} and means {}; write path:/{from} for the one in the root",
                worktree.dir, done.key
            ));
        }
        Ok(done)
    }

    /// The key of a path; a directory means everything below it.
    fn of_path(
        typed: &str,
        name: &str,
        within: &Within,
        asked: &str,
        own: Option<(&Worktree, &Here<'_>)>,
    ) -> Result<Typed, Malformed> {
        if asked.is_empty() || name.is_empty() {
            return Err(Malformed::new(
                "key",
                typed,
                "expected path:REPOSITORY:GLOB",
            ));
        }
        let glob = spelling::whole(within);
        let is_directory = own.is_some_and(|(worktree, here)| {
            let path = Glob::parse(&glob).ok().and_then(|glob| glob.is_literal());
            path.is_some_and(|path| {
                (here.look)(&format!("{}/{path}", worktree.root)) == Entry::Directory
            })
        });
        if !is_directory {
            let key = Self::parse_as(typed, &format!("path:{name}:{glob}"))?;
            return Ok(Typed { key, note: None });
        }
        let key = Self::parse_as(typed, &format!("path:{name}:{glob}/**"))?;
        let note = Some(format!("{typed} is a directory and means {key}"));
        Ok(Typed { key, note })
    }

    /// Parses a complete key and normalises its spelling.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        Self::parse_as(text, text)
    }

    /// The same; an error quotes what was typed.
    fn parse_as(typed: &str, text: &str) -> Result<Self, Malformed> {
        let bad = |why: String| Err(Malformed::new("key", typed, why));
        // Before anything is cut or joined, so that the error names what was typed.
        if let Some(c) = text.chars().find(|c| !is_printable(*c)) {
            return bad(format!(
                "it contains the invisible character U+{:04X}",
                u32::from(c)
            ));
        }
        let composed: String = if text.is_ascii() {
            text.to_owned()
        } else {
            text.nfc().collect()
        };
        if composed.starts_with("path:") && spelling::path_key(&composed).is_none() {
            let glob = composed.rsplit(':').next().unwrap_or_default();
            let why = spelling::within("", glob).err();
            return bad(why.unwrap_or("expected path:REPOSITORY:GLOB").to_owned());
        }
        let canonical = spelling::canonical(&composed);
        let key =
            Self::stored(&canonical).map_err(|error| Malformed::new("key", typed, error.why))?;
        if short_form(key.as_str()).is_some() {
            return bad("it lacks the repository; write SCHEME:OWNER/NAME#NUMBER".into());
        }
        Ok(key)
    }

    /// Parses a key from a store, whatever version wrote it.
    pub fn stored(text: &str) -> Result<Self, Malformed> {
        let bad = |why: &str| Err(Malformed::new("key", text, why));
        if text.is_empty() {
            return bad("it is empty");
        }
        if text.len() > MAX_BYTES {
            return bad("it is longer than 512 bytes");
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            return bad("it has no scheme");
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
            return bad("it begins or ends with a space");
        }
        if scheme == "path" {
            let Some((_, glob)) = rest.rsplit_once(':').filter(|(repo, _)| !repo.is_empty()) else {
                return bad("expected path:REPOSITORY:GLOB");
            };
            Glob::parse(glob).map_err(|why| Malformed::new("key", text, why))?;
        }
        Ok(Self(text.to_owned()))
    }

    /// The same item in the current canonical spelling.
    pub fn canonical(&self) -> Self {
        Self(spelling::canonical(&self.0))
    }

    /// Whether it names an issue or a pull request of a repository by number.
    pub fn is_numbered(&self) -> bool {
        NUMBERED.contains(&self.scheme()) && spelling::item(self.rest()).is_some()
    }

    /// Whether the same item may be stored under another text: a path, by another name of its repository.
    pub fn has_other_names(&self) -> bool {
        self.scheme() == "path"
    }

    /// The repository and the glob of a `path:` key.
    pub fn path(&self) -> Option<(&str, Glob)> {
        let (repo, glob) = self.path_parts()?;
        Glob::parse(glob).ok().map(|glob| (repo, glob))
    }

    /// The same, with the glob as text.
    pub fn path_parts(&self) -> Option<(&str, &str)> {
        self.0.strip_prefix("path:")?.rsplit_once(':')
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key, quoted for a shell.
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

/// Recognises `#42`, `issue:42`, `issue:#42`, `pr:42`, `mr:42`, `!42`.
fn short_form(typed: &str) -> Option<(&str, &str)> {
    let (scheme, number) = match (typed.strip_prefix('#'), typed.strip_prefix('!')) {
        (Some(number), _) => ("issue", number),
        (_, Some(number)) => ("pr", number),
        (None, None) => {
            let (scheme, rest) = typed.split_once(':')?;
            let number = rest.strip_prefix(['#', '!']).unwrap_or(rest);
            (spelling::scheme(scheme), number)
        }
    };
    let is_number = spelling::number(number).is_some();
    (NUMBERED.contains(&scheme) && is_number).then_some((scheme, number))
}

/// The part of an absolute path below the root of a worktree.
fn below<'t>(root: &str, typed: &'t str) -> Option<&'t str> {
    let inside = typed.strip_prefix(root)?;
    match inside {
        "" => Some("/"),
        inside => inside.starts_with('/').then_some(inside),
    }
}

/// What an absolute path names outside a worktree: its first part exists there, and not in the worktree.
fn outside_worktree<'t>(
    worktree: &Worktree,
    typed: &'t str,
    look: &dyn Fn(&str) -> Entry,
) -> Option<&'t str> {
    let first = first_part(typed.strip_prefix('/')?)?;
    let inside = look(&format!("{}/{first}", worktree.root)) != Entry::Nothing;
    let outside = look(&format!("/{first}")) != Entry::Nothing;
    (outside && !inside).then_some(typed)
}

/// Whether a relative path begins with something that exists in the root but not where it was typed.
fn is_elsewhere(worktree: &Worktree, typed: &str, look: &dyn Fn(&str) -> Entry) -> bool {
    let (root, dir) = (&worktree.root, &worktree.dir);
    let Some(first) = first_part(typed).filter(|first| !dir.is_empty() && *first != "..") else {
        return false;
    };
    let there = |path: String| look(&path) != Entry::Nothing;
    !there(format!("{root}/{dir}/{first}")) && there(format!("{root}/{first}"))
}

/// The first part of a path, if it is plain text.
fn first_part(path: &str) -> Option<&str> {
    let first = path.split('/').next()?;
    (!first.is_empty() && first != "." && !first.contains(['*', '?', '[', '{', '\\']))
        .then_some(first)
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
    is_shown(c) && (c == ' ' || c.general_category() != GeneralCategory::SpaceSeparator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Home;

    fn web(dir: &str) -> Worktree {
        Worktree {
            repository: Repository {
                home: Home {
                    dir: "/r/.git".into(),
                    mark: None,
                },
                remote: Some("acme/web".into()),
            },
            root: "/r".into(),
            dir: dir.into(),
        }
    }

    /// The directories of a machine with the repository.
    fn look(path: &str) -> Entry {
        match path {
            "/etc" | "/lib" | "/r" | "/r/src" | "/r/src/db" | "/r/docs" | "/r/lib" => {
                Entry::Directory
            }
            "/etc/passwd" | "/r/src/a.rs" => Entry::Other,
            _ => Entry::Nothing,
        }
    }

    fn typed(text: &str, worktree: Option<&Worktree>) -> Result<Typed, Malformed> {
        let here = Here {
            worktree,
            exists: true,
            look: &look,
        };
        Key::complete(text, &here)
    }

    #[test]
    fn f_c20_short_forms_and_spellings_are_one_key() {
        let full = Key::parse("issue:acme/web#42").unwrap();
        for text in [
            "#42",
            "#042",
            "issue:42",
            "issue:#42",
            "issue:acme/web#42",
            "issue:Acme/Web.git#042",
            "https://github.com/acme/web/issues/42",
        ] {
            let found = typed(text, Some(&web(""))).map(|typed| typed.key);
            assert_eq!(found, Ok(full.clone()), "{text}");
        }
        for text in ["pr:7", "mr:7", "!7", "mr:acme/web!7", "pr:ACME/web#07"] {
            let found = typed(text, Some(&web(""))).map(|typed| typed.key);
            assert_eq!(found, Key::parse("pr:acme/web#7"), "{text}");
        }
        let composed = Key::parse("doc:caf\u{e9}").unwrap();
        assert_eq!(Key::parse("doc:cafe\u{301}"), Ok(composed));
        for bad in [
            "path:",
            "path:acme/web:",
            "path::x",
            "path:acme/web:../x",
            "path:acme/web:[z-a]",
        ] {
            assert!(Key::parse(bad).is_err(), "{bad:?} was accepted");
            assert!(typed(bad, None).is_err(), "{bad:?} was accepted");
        }
        assert!(typed("path:src/**", None).is_err());
    }

    #[test]
    fn f_c20_a_path_is_what_it_means_where_it_was_typed() {
        for (dir, text, glob, surprises) in [
            ("", "src/a.rs", "src/a.rs", false),
            ("", "src", "src/**", true),
            ("", "src/", "src/**", false),
            ("", "src/**/", "src/**", false),
            ("", "/src", "src/**", true),
            ("", "/lib/x", "lib/x", false),
            ("", "/new/x", "new/x", false),
            ("", "/r/src/a.rs", "src/a.rs", false),
            ("", "/r", "**", false),
            ("", ".", "**", false),
            ("src", "db", "src/db/**", true),
            ("src", "*.rs", "src/*.rs", false),
            ("src", "docs/x", "src/docs/x", true),
            ("src", "/docs/x", "docs/x", false),
            ("src", "../docs/x", "docs/x", false),
            ("src", "acme/web:src", "src/**", true),
            ("src", "ACME/web.git:/x", "x", false),
            ("src", "/r/.git:x", "x", false),
        ] {
            let found = typed(&format!("path:{text}"), Some(&web(dir))).unwrap();
            let name = if text.starts_with("/r/.git:") {
                "/r/.git"
            } else {
                "acme/web"
            };
            assert_eq!(
                found.key.as_str(),
                format!("path:{name}:{glob}"),
                "{text} in {dir:?}"
            );
            assert_eq!(
                found.note.is_some(),
                surprises,
                "{text} in {dir:?}: {:?}",
                found.note
            );
        }
        for (dir, text) in [
            ("", "../x"),
            ("src", "../../x"),
            ("", "/etc/passwd"),
            ("", "a/*/../b"),
        ] {
            assert!(
                typed(&format!("path:{text}"), Some(&web(dir))).is_err(),
                "{text}"
            );
        }
        // Nothing is known about the files of another repository.
        let other = typed("path:acme/api:src", Some(&web(""))).unwrap();
        assert_eq!(
            (other.key.as_str(), other.note),
            ("path:acme/api:src", None)
        );
    }

    #[test]
    fn a_short_form_without_a_remote_is_refused_not_guessed() {
        let refused = |text: &str, worktree: Option<&Worktree>| {
            typed(text, worktree).unwrap_err().to_string()
        };
        for short in ["#42", "issue:42"] {
            let why = refused(short, None);
            let missing = "not in a git repository; write issue:OWNER/NAME#42";
            assert!(why.contains(missing), "{why}");
        }
        let mut local = web("");
        local.repository.remote = None;
        let why = refused("#42", Some(&local));
        let missing = "has no remote that names it; write issue:OWNER/NAME#42";
        assert!(why.contains(missing), "{why}");
        let path = typed("path:x", Some(&local)).unwrap();
        assert_eq!(path.key.as_str(), "path:/r/.git:x");
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
            "wp:a\u{3164}",
            "wp:a\u{fe0f}",
            "path:acme/web:a\u{2800}",
            "#",
            "#x",
            "issue:7",
            "mr:7",
            &long,
        ];
        for text in bad {
            assert!(typed(text, None).is_err(), "{text:?} was accepted");
        }
        assert!(Key::parse(&long[..512]).is_ok());
        assert!(Key::parse("wp:041/WP03 second part").is_ok());
    }

    #[test]
    fn f_c20_a_stored_key_keeps_its_text_and_knows_its_canonical_one() {
        for (old, now) in [
            ("issue:Acme/Web.git#042", "issue:acme/web#42"),
            ("mr:acme/web#7", "pr:acme/web#7"),
            ("path:Acme/Web:src/**", "path:acme/web:src/**"),
            ("path:/R/.git:src/**", "path:/R/.git:src/**"),
            ("wp:a\u{3164}", "wp:a\u{3164}"),
            ("issue:JIRA-042", "issue:JIRA-042"),
        ] {
            let key = Key::stored(old).unwrap();
            assert_eq!((key.as_str(), key.canonical().as_str()), (old, now));
        }
    }
}

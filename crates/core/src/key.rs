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

use crate::glob::{self, Glob};
use crate::id::{HostId, Malformed};
use crate::repository::{self, Repository};
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
pub enum PathKind {
    Directory,
    Other,
    Nothing,
}

pub struct PathContext<'a> {
    /// The worktree, if there is one.
    pub worktree: Option<&'a Worktree>,
    /// This machine, if several use the store: a directory is one of this machine.
    pub host: Option<&'a HostId>,
    pub exists: bool,
    pub look: &'a dyn Fn(&str) -> PathKind,
    /// A path of the worktree, from its root, without symbolic links; none if it leads out of the worktree.
    pub resolve: &'a dyn Fn(&str) -> Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedKey {
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
    pub fn complete(typed: &str, here: &PathContext<'_>) -> Result<TypedKey, Malformed> {
        if let Some(rest) = typed.strip_prefix("path:") {
            return Self::complete_path(typed, rest, here);
        }
        let plain = |key: Key| TypedKey { key, note: None };
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
    fn complete_path(
        typed: &str,
        rest: &str,
        here: &PathContext<'_>,
    ) -> Result<TypedKey, Malformed> {
        let bad = |why: String| Malformed::new("key", typed, why);
        let file = file_with_colon(rest, here);
        let named = spelling::split_path(rest).filter(|_| file.is_none());
        if let Some((name, glob)) = named {
            let name = match (here.host, spelling::repository_name(name)) {
                (Some(host), dir) if spelling::is_directory(&dir) => repository::on(host, &dir),
                (_, name) => name,
            };
            let glob = &glob::escape_colons(glob);
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
        let rest = file.as_deref().unwrap_or(rest);
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
        own: Option<(&Worktree, &PathContext<'_>)>,
    ) -> Result<TypedKey, Malformed> {
        if asked.is_empty() || name.is_empty() {
            return Err(Malformed::new(
                "key",
                typed,
                "expected path:REPOSITORY:GLOB",
            ));
        }
        let written = spelling::whole(within);
        let resolved = own.and_then(|(_, here)| without_links(&written, here));
        let is_linked = resolved.as_ref().is_some_and(|found| *found != written);
        let glob = resolved.unwrap_or(written);
        let is_directory = own.is_some_and(|(worktree, here)| {
            let path = literal_path(&glob);
            path.is_some_and(|path| {
                (here.look)(&format!("{}/{path}", worktree.root)) == PathKind::Directory
            })
        });
        if !is_directory {
            let key = Self::parse_as(typed, &format!("path:{name}:{glob}"))?;
            let note = format!("{typed} leads through a symbolic link and means {key}");
            let note = is_linked.then_some(note);
            return Ok(TypedKey { key, note });
        }
        let key = Self::parse_as(typed, &format!("path:{name}:{glob}/**"))?;
        let note = Some(format!("{typed} is a directory and means {key}"));
        Ok(TypedKey { key, note })
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
            let glob = spelling::split_path(&composed[5..]).map_or("", |(_, glob)| glob);
            let why = spelling::within("", glob).err();
            return bad(why.unwrap_or("expected path:REPOSITORY:GLOB").to_owned());
        }
        let canonical = spelling::canonical(&composed);
        let key =
            Self::stored(&canonical).map_err(|error| Malformed::new("key", typed, error.why))?;
        if short_form(key.as_str()).is_some() {
            return bad("it lacks the repository; write SCHEME:OWNER/NAME#NUMBER".into());
        }
        if key.path().is_some_and(|(_, glob)| glob.is_costly()) {
            return bad(
                "it has too many wildcards for its length; claim fewer paths at once".into(),
            );
        }
        if NUMBERED.contains(&key.scheme()) {
            check_numbered(key.rest()).map_err(|why| Malformed::new("key", typed, why))?;
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
            let parts = spelling::split_path(rest).filter(|(repo, _)| !repo.is_empty());
            let Some((_, glob)) = parts else {
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

    /// The repository that it names, if it names one.
    pub fn repository(&self) -> Option<&str> {
        let name = match self.scheme() {
            "path" => self.path_parts()?.0,
            "branch" => self.rest().split_once(':')?.0,
            _ if self.is_numbered() => self.rest().rsplit_once('#')?.0,
            _ => return None,
        };
        name.contains('/').then_some(name)
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
        spelling::split_path(self.0.strip_prefix("path:")?)
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

/// The rules for what names an issue or a pull request: a number of a repository, or a name without one.
fn check_numbered(rest: &str) -> Result<(), &'static str> {
    let is_lookalike = |c: char| {
        let is_full_width = ('\u{ff01}'..='\u{ff5e}').contains(&c);
        is_full_width || (c.is_numeric() && !c.is_ascii_digit())
    };
    if rest.contains(is_lookalike) {
        Err("it has characters that look like others; write its number with the digits 0 to 9")
    } else if rest.contains('#') && spelling::item(rest).is_none() {
        Err("expected SCHEME:OWNER/NAME#NUMBER")
    } else {
        Ok(())
    }
}

/// The path of a glob without wildcards.
fn literal_path(glob: &str) -> Option<String> {
    Glob::parse(glob).ok()?.is_literal()
}

/// A typed text as the path of a file whose name has a colon. What stands before the colon is a repository,
/// unless the text is the path of something that exists, or of something in a directory that does.
fn file_with_colon(rest: &str, here: &PathContext<'_>) -> Option<String> {
    let worktree = here.worktree?;
    let (name, _) = spelling::split_path(rest)?;
    if worktree
        .repository
        .is_called(&spelling::repository_name(name))
    {
        return None;
    }
    let escaped = glob::escape_colons(rest);
    let from = below(&worktree.root, &escaped).unwrap_or(&escaped);
    let within = spelling::within(&worktree.dir, from).ok()?.glob;
    let is = |glob: &str, wanted: fn(PathKind) -> bool| {
        let path = literal_path(glob);
        path.is_some_and(|path| wanted((here.look)(&format!("{}/{path}", worktree.root))))
    };
    let folder = within.rsplit_once('/').map(|(folder, _)| folder);
    let is_there = is(&within, |found| found != PathKind::Nothing)
        || folder.is_some_and(|folder| is(folder, |found| found == PathKind::Directory));
    is_there.then_some(escaped)
}

/// A glob whose literal part, up to the first wildcard, has no symbolic links; none if that is not known.
fn without_links(glob: &str, here: &PathContext<'_>) -> Option<String> {
    let parts: Vec<&str> = glob.split('/').collect();
    let plain: Vec<String> = parts.iter().map_while(|part| literal_path(part)).collect();
    if plain.is_empty() {
        return None;
    }
    let found = (here.resolve)(&plain.join("/"))?;
    let found = glob::literal(&found);
    let rest = &parts[plain.len()..];
    let whole: Vec<&str> = [found.as_str()]
        .into_iter()
        .filter(|text| !text.is_empty())
        .chain(rest.iter().copied())
        .collect();
    Some(if whole.is_empty() {
        "**".to_owned()
    } else {
        whole.join("/")
    })
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
    look: &dyn Fn(&str) -> PathKind,
) -> Option<&'t str> {
    let first = first_part(typed.strip_prefix('/')?)?;
    let inside = look(&format!("{}/{first}", worktree.root)) != PathKind::Nothing;
    let outside = look(&format!("/{first}")) != PathKind::Nothing;
    (outside && !inside).then_some(typed)
}

/// Whether a relative path begins with something that exists in the root but not where it was typed.
fn is_elsewhere(worktree: &Worktree, typed: &str, look: &dyn Fn(&str) -> PathKind) -> bool {
    let (root, dir) = (&worktree.root, &worktree.dir);
    let Some(first) = first_part(typed).filter(|first| !dir.is_empty() && *first != "..") else {
        return false;
    };
    let there = |path: String| look(&path) != PathKind::Nothing;
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
mod tests;

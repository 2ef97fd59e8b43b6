//! Spelling: one canonical form for what people can write in several ways.
//!
//! Pure text. Two spellings of one item would be two claims with two holders, so the parts of a key that tenure
//! understands are normalised before anything is compared: the repository's name, the number of an issue or
//! pull request, and the path in a `path:` key. Other text is left as it is.
//!
//! *Older version*: keys that were stored before a rule existed keep their text, and are found through a table
//! that the migration fills by the same rules (schema 0002). A new rule needs such a migration.

use crate::glob;

/// A repository's name without what forges ignore: case, `.git`, and leading, trailing or doubled slashes.
///
/// A directory stays as it is.
pub fn repository_name(typed: &str) -> String {
    if is_directory(typed) {
        return typed.to_owned();
    }
    let joined: Vec<&str> = typed.split('/').filter(|part| !part.is_empty()).collect();
    let lower = joined.join("/").to_ascii_lowercase();
    let bare = lower.strip_suffix(".git").unwrap_or(&lower);
    bare.trim_end_matches('/').to_owned()
}

/// Whether a name begins like that of a directory, of this machine or, as `@MACHINE/…`, of one.
pub fn is_directory(name: &str) -> bool {
    name.starts_with(['/', '@'])
}

/// Whether a canonical name can be that of a repository: a directory, or parts of which none is a step.
fn is_name(name: &str) -> bool {
    let is_step = |part: &str| matches!(part, "." | "..");
    !name.is_empty() && (is_directory(name) || !name.split('/').any(is_step))
}

/// The repository and the glob of a `path:` key, given what follows `path:`.
///
/// A directory may contain colons, a name cannot. In the glob every colon has a backslash in front.
pub fn split_path(rest: &str) -> Option<(&str, &str)> {
    let mut colons = glob::plain_colons(rest);
    let at = if is_directory(rest) {
        colons.next_back()?
    } else {
        colons.next()?
    };
    Some((&rest[..at], &rest[at + 1..]))
}

/// A number without leading zeros.
pub fn number(typed: &str) -> Option<&str> {
    let digits = !typed.is_empty() && typed.bytes().all(|b| b.is_ascii_digit());
    let short = typed.trim_start_matches('0');
    digits.then_some(if short.is_empty() { "0" } else { short })
}

/// The part of an issue or pull request key after the colon, `OWNER/NAME#NUMBER`.
pub fn item(typed: &str) -> Option<String> {
    let (name, digits) = typed.rsplit_once(['#', '!'])?;
    let name = repository_name(name.trim_start_matches('/'));
    let number = number(digits)?;
    is_name(&name).then(|| format!("{name}#{number}"))
}

/// The scheme that an alias stands for.
pub fn scheme(typed: &str) -> &str {
    match typed {
        "mr" => "pr",
        other => other,
    }
}

/// The key of an issue or pull request page: its scheme, and the rest.
pub fn page(typed: &str) -> Option<(&'static str, String)> {
    let rest = typed
        .strip_prefix("https://")
        .or_else(|| typed.strip_prefix("http://"))?;
    let path = rest.split(['?', '#']).next()?.split_once('/')?.1;
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != "-")
        .collect();
    let kind = |word: &str| match word {
        "issues" | "work_items" => Some("issue"),
        "pull" | "pulls" | "pull-requests" | "merge_requests" => Some("pr"),
        _ => None,
    };
    let at = parts.iter().position(|part| kind(part).is_some())?;
    if at < 2 {
        return None;
    }
    let number = number(parts.get(at + 1)?)?;
    let name = repository_name(&parts[..at].join("/"));
    Some((kind(parts[at])?, format!("{name}#{number}")))
}

/// A complete key in its canonical spelling; an unknown scheme stays as it is.
pub fn canonical(key: &str) -> String {
    let found = page(key)
        .map(|(scheme, rest)| format!("{scheme}:{rest}"))
        .or_else(|| path_key(key))
        .or_else(|| {
            let (typed, rest) = key.split_once(':')?;
            let scheme = scheme(typed);
            let is_numbered = matches!(scheme, "issue" | "pr");
            let rest = is_numbered.then(|| item(rest)).flatten()?;
            Some(format!("{scheme}:{rest}"))
        });
    found.unwrap_or_else(|| key.to_owned())
}

/// A key prefix or pattern, normalised as far as its spelling is known.
pub fn beginning(typed: &str) -> String {
    let Some((typed_scheme, rest)) = typed.split_once(':') else {
        return typed.to_owned();
    };
    match scheme(typed_scheme) {
        "path" => match split_path(rest) {
            Some((name, glob)) => format!("path:{}:{glob}", repository_name(name)),
            None if is_directory(rest) => typed.to_owned(),
            None => format!("path:{}", rest.to_ascii_lowercase()),
        },
        scheme @ ("issue" | "pr") if rest.contains('/') => {
            let lower = rest.to_ascii_lowercase();
            format!("{scheme}:{}", lower.replace(".git#", "#"))
        }
        scheme => format!("{scheme}:{rest}"),
    }
}

/// A `path:` key in its canonical spelling, if it can be resolved.
pub fn path_key(key: &str) -> Option<String> {
    let (name, glob) = split_path(key.strip_prefix("path:")?)?;
    let within = within("", &glob::escape_colons(glob)).ok()?;
    let name = repository_name(name);
    let complete = is_name(&name) && !glob.is_empty();
    complete.then(|| format!("path:{name}:{}", whole(&within)))
}

/// The glob of a resolved path: a directory means everything below it.
pub fn whole(within: &Within) -> String {
    match (within.glob.as_str(), within.is_dir) {
        ("", _) => "**".to_owned(),
        (glob, true) if glob != "**" && !glob.ends_with("/**") => format!("{glob}/**"),
        (glob, _) => glob.to_owned(),
    }
}

/// A path or glob within a repository, normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Within {
    /// From the repository's root; empty for the root itself.
    pub glob: String,
    /// Whether it was written as a directory: ending in a slash, a dot or two dots.
    pub is_dir: bool,
}

/// Resolves a path that was typed in `dir`, a directory below the root (empty for the root itself).
///
/// A leading slash means the root.
pub fn within(dir: &str, typed: &str) -> Result<Within, &'static str> {
    let mut parts: Vec<&str> = if typed.starts_with('/') {
        Vec::new()
    } else {
        dir.split('/').filter(|part| !part.is_empty()).collect()
    };
    // The typed text is a pattern; the directory in which it was typed is not.
    let literal = parts.len();
    for part in typed.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                None => return Err("it leads out of the repository"),
                Some(last)
                    if parts.len() > literal && last.contains(['*', '?', '[', '{', '\\']) =>
                {
                    return Err("it has .. after a wildcard");
                }
                Some(_) => {
                    parts.pop();
                }
            },
            "**" if parts.len() > literal && parts.last() == Some(&"**") => {}
            part => parts.push(part),
        }
    }
    let literal = literal.min(parts.len());
    let escaped: Vec<String> = parts
        .iter()
        .enumerate()
        .map(|(place, part)| {
            if place < literal {
                glob::literal(part)
            } else {
                (*part).to_owned()
            }
        })
        .collect();
    let last = typed.rsplit('/').next().unwrap_or_default();
    Ok(Within {
        glob: escaped.join("/"),
        is_dir: matches!(last, "" | "." | "..") || parts.is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_c20_a_repository_has_one_name() {
        for typed in [
            "acme/web",
            "Acme/Web",
            "acme/web.git",
            "acme//web/",
            "ACME/web.GIT/",
        ] {
            assert_eq!(repository_name(typed), "acme/web", "{typed}");
        }
        assert_eq!(repository_name("/Home/Me/web/.git"), "/Home/Me/web/.git");
        assert_eq!(repository_name("Group/Sub/Name"), "group/sub/name");
    }

    #[test]
    fn f_c20_a_number_has_one_spelling() {
        assert_eq!(number("042"), Some("42"));
        assert_eq!(number("000"), Some("0"));
        assert_eq!((number(""), number("4x"), number("-4")), (None, None, None));
        assert_eq!(item("Acme/Web.git#042").as_deref(), Some("acme/web#42"));
        assert_eq!(item("acme/web!7").as_deref(), Some("acme/web#7"));
        for other in [
            "JIRA-42",
            "acme/web",
            "#42",
            "acme/web#x",
            "../x#1",
            "acme/./x#1",
        ] {
            assert_eq!(item(other), None, "{other}");
        }
    }

    #[test]
    fn f_c20_the_beginning_of_keys_is_spelt_as_they_are() {
        for (typed, expected) in [
            ("issue:Acme/Web.git#", "issue:acme/web#"),
            ("issue:Acme/*", "issue:acme/*"),
            ("mr:", "pr:"),
            ("issue:JIRA-", "issue:JIRA-"),
            ("path:Acme/Web:src/DB", "path:acme/web:src/DB"),
            ("path:Acme", "path:acme"),
            ("path:/Home/Me", "path:/Home/Me"),
            ("wp:041/WP", "wp:041/WP"),
            ("iss", "iss"),
        ] {
            assert_eq!(beginning(typed), expected, "{typed}");
        }
    }

    #[test]
    fn f_c20_the_page_of_an_item_is_the_item() {
        for (url, scheme, rest) in [
            (
                "https://github.com/Acme/Web/issues/042",
                "issue",
                "acme/web#42",
            ),
            (
                "http://forge.example:3000/acme/web/issues/4#comment-1",
                "issue",
                "acme/web#4",
            ),
            (
                "https://gitlab.com/a/b/web/-/issues/4?x=1",
                "issue",
                "a/b/web#4",
            ),
            (
                "https://gitlab.com/a/web/-/merge_requests/4/diffs",
                "pr",
                "a/web#4",
            ),
            (
                "https://github.com/acme/web/pull/4/files",
                "pr",
                "acme/web#4",
            ),
            (
                "https://bitbucket.org/acme/web/pull-requests/4",
                "pr",
                "acme/web#4",
            ),
        ] {
            assert_eq!(page(url), Some((scheme, rest.to_owned())), "{url}");
        }
        for other in [
            "https://example.com/x",
            "https://github.com/acme/web",
            "https://github.com/acme/web/issues",
            "https://github.com/issues/4",
            "ssh://github.com/acme/web/issues/4",
        ] {
            assert_eq!(page(other), None, "{other}");
        }
    }

    #[test]
    fn f_c20_a_path_is_resolved_where_it_was_typed() {
        let glob = |dir: &str, typed: &str| within(dir, typed).unwrap().glob;
        for (dir, typed, expected) in [
            ("", "src/db/**", "src/db/**"),
            ("src", "db/**", "src/db/**"),
            ("src", "/db/**", "db/**"),
            ("src", "../db", "db"),
            ("src/db", "../../a", "a"),
            ("", "./a//b/./c", "a/b/c"),
            ("", "a/../b", "b"),
            ("", "a/**/**/b", "a/**/b"),
            ("odd[1]", "*.rs", "odd\\[1\\]/*.rs"),
            ("odd[1]", "../a", "a"),
            ("src", ".", "src"),
            ("src", "..", ""),
            ("src", "/", ""),
        ] {
            assert_eq!(glob(dir, typed), expected, "{typed} in {dir:?}");
        }
        for (dir, typed) in [
            ("", ".."),
            ("src", "../../a"),
            ("", "a/*/../b"),
            ("", "/../a"),
        ] {
            assert!(within(dir, typed).is_err(), "{typed} in {dir:?}");
        }
        for (typed, is_dir) in [
            ("src/", true),
            (".", true),
            ("/", true),
            ("src", false),
            ("src/**", false),
        ] {
            assert_eq!(within("", typed).unwrap().is_dir, is_dir, "{typed}");
        }
    }
}

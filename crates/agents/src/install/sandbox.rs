//! Codex's sandbox: adds the state directory to the paths that its shell tool may write to.
//!
//! Without it, nothing in the sandbox can claim or ask who it is: even reading a database with a write-ahead
//! log needs to write. One entry in `sandbox_workspace_write.writable_roots` of config.toml is added and
//! removed; comments, order and formatting of the rest stay as they are.

use std::ops::Range;

use toml_edit::{Array, Document, InlineTable, Item, Table, Value};

use super::hooks_file::{Edited, HooksFileError};
use super::splice::{Comments, List, indent_of_line, line_end, spliced};

const TABLE: &str = "sandbox_workspace_write";
const KEY: &str = "writable_roots";
/// The comment above a table that we added.
const COMMENT: &str = "# Lets tenure work inside the sandbox; `tenure uninstall codex` removes it.";
/// The same as earlier versions wrote it.
const OLDER_COMMENT: &str =
    "# So that tenure works from the sandbox; `tenure uninstall codex` removes it.";

/// What the user should know before this directory is allowed in this file.
pub fn note(file: &str, dir: &str) -> String {
    format!(
        "{file}: allows Codex's sandbox to write to {dir}, so that whoami, claim and guard work in its shell tool"
    )
}

/// What the user should know if only a project's hooks are installed.
pub fn project_notes(is_allowed: bool) -> Vec<String> {
    let mut notes = vec!["Codex reads a project's hooks only if it trusts the project".to_owned()];
    if !is_allowed {
        notes.push("Codex's sandbox blocks tenure in its shell tool; run `tenure install codex` to allow it for your user".to_owned());
    }
    notes
}

/// Where the list of writable paths is, or would be.
enum RootsLocation<'a> {
    Roots(&'a Array),
    /// A table with its own header, without the list.
    Header(Range<usize>),
    /// Dotted keys, without the list.
    Dotted(Range<usize>),
    Inline(&'a InlineTable),
    Nothing,
}

/// The byte order mark.
const MARK: char = '\u{feff}';

/// Whether this directory is writable.
pub fn allows(text: &str, dir: &str) -> Result<bool, HooksFileError> {
    let document = parse(text)?;
    Ok(match found(text, document.as_table())? {
        RootsLocation::Roots(roots) => place_of(roots, dir).is_some(),
        _ => false,
    })
}

/// The text with this directory writable.
pub fn allow(text: &str, dir: &str) -> Result<String, HooksFileError> {
    // Codex accepts a byte order mark, which stays where it is.
    if let Some(rest) = text.strip_prefix(MARK) {
        return Ok(format!("{MARK}{}", allow(rest, dir)?));
    }
    let document = parse(text)?;
    let (end, name) = (line_end(text), quoted(dir));
    let line = format!("{KEY} = [ {name} ]");
    Ok(match found(text, document.as_table())? {
        RootsLocation::Roots(roots) if place_of(roots, dir).is_some() => text.to_owned(),
        RootsLocation::Roots(roots) => list_of(text, roots)?.insert(text, &name, Comments::Hash),
        RootsLocation::Inline(table) => {
            inline_list(text, table)?.insert(text, &line, Comments::Hash)
        }
        RootsLocation::Header(key) => {
            let rest = &text[key.end..];
            let at = key.end + rest.find(['\r', '\n']).unwrap_or(rest.len());
            let indent = indent_of_line(text, key.start);
            spliced(text, &[(at..at, format!("{end}{indent}{line}"))])
        }
        RootsLocation::Dotted(key) => {
            let start = text[..key.start].rfind('\n').map_or(0, |at| at + 1);
            let indent = indent_of_line(text, key.start);
            let whole = format!("{indent}{TABLE}.{line}{end}");
            spliced(text, &[(start..start, whole)])
        }
        RootsLocation::Nothing => format!("{text}{}", block(text, COMMENT, &name)),
    })
}

/// The text without it, as it was before.
pub fn disallow(text: &str, dir: &str) -> Result<Edited, HooksFileError> {
    if let Some(rest) = text.strip_prefix(MARK) {
        return Ok(match disallow(rest, dir)? {
            Edited::Text(left) => Edited::Text(format!("{MARK}{left}")),
            Edited::Nothing => Edited::Text(MARK.to_string()),
        });
    }
    let document = parse(text)?;
    let RootsLocation::Roots(roots) = found(text, document.as_table())? else {
        return Ok(Edited::Text(text.to_owned()));
    };
    let Some(index) = place_of(roots, dir) else {
        return Ok(Edited::Text(text.to_owned()));
    };
    let list = list_of(text, roots)?;
    let is_ours = list.is_made_for(text, index, Comments::Hash);
    let cut = if is_ours {
        made_for_it(text, document.as_table(), dir)?
    } else {
        None
    };
    let left = cut.unwrap_or_else(|| list.remove(text, index, Comments::Hash));
    Ok(if left.trim().is_empty() {
        Edited::Nothing
    } else {
        Edited::Text(left)
    })
}

/// The text without the key, or the table, that was added only for this entry.
fn made_for_it(text: &str, root: &Table, dir: &str) -> Result<Option<String>, HooksFileError> {
    let item = root.get(TABLE);
    if let Some(Item::Value(Value::InlineTable(table))) = item {
        let list = inline_list(text, table)?;
        let index = table.iter().position(|(key, _)| key == KEY);
        return Ok(index.map(|index| list.remove(text, index, Comments::Hash)));
    }
    let Some(Item::Table(table)) = item else {
        return Ok(None);
    };
    let keys = table.iter().filter(|(_, item)| item.is_value()).count();
    if keys == 1 {
        let written = [COMMENT, OLDER_COMMENT];
        let mut blocks = written
            .map(|comment| block(text, comment, &quoted(dir)))
            .into_iter();
        if let Some(rest) = blocks.find_map(|whole| without(text, &whole)) {
            return Ok(Some(rest));
        }
    }
    let Some(key) = table.get_key_value(KEY).and_then(|(key, _)| key.span()) else {
        return Ok(None);
    };
    let start = text[..key.start].rfind('\n').map_or(0, |at| at + 1);
    let rest = &text[key.end..];
    let end = key.end + rest.find(['\r', '\n']).unwrap_or(rest.len());
    if text[start..end].contains('#') {
        // The user added a comment, so only the entry is removed.
        return Ok(None);
    }
    let break_after = text[end..].len() - text[end..].trim_start_matches('\r').len();
    let after = (end + break_after + 1).min(text.len());
    let break_before = text[..start].len() - text[..start].trim_end_matches(['\r', '\n']).len();
    let cut = if table.is_dotted() {
        start..after
    } else {
        // With the line break before it.
        start - break_before.min(line_end(text).len())..end
    };
    Ok(Some(spliced(text, &[(cut, String::new())])))
}

/// The text without a block that was added at its end, or that was all of it.
fn without(text: &str, block: &str) -> Option<String> {
    match text.find(block) {
        Some(at) => Some(spliced(text, &[(at..at + block.len(), String::new())])),
        None => text.strip_prefix(block.trim_start()).map(str::to_owned),
    }
}

/// The block for the end of a file without such a table.
fn block(text: &str, comment: &str, name: &str) -> String {
    let end = line_end(text);
    let before = if text.is_empty() { "" } else { end };
    format!("{before}{comment}{end}[{TABLE}]{end}{KEY} = [ {name} ]{end}")
}

fn parse(text: &str) -> Result<Document<&str>, HooksFileError> {
    Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        HooksFileError::at(text, at, error.message().replace('\n', "; "))
    })
}

fn found<'a>(text: &str, root: &'a Table) -> Result<RootsLocation<'a>, HooksFileError> {
    let Some((key, item)) = root.get_key_value(TABLE) else {
        return Ok(RootsLocation::Nothing);
    };
    let at = key.span().unwrap_or_default();
    let roots = match item {
        Item::Table(table) => table.get(KEY),
        Item::Value(Value::InlineTable(table)) => {
            return match table.get(KEY) {
                Some(Value::Array(roots)) => Ok(RootsLocation::Roots(roots)),
                Some(_) => Err(no_list(text, at.start)),
                None => Ok(RootsLocation::Inline(table)),
            };
        }
        _ => {
            return Err(HooksFileError::at(
                text,
                at.start,
                format!("{TABLE} is not a table"),
            ));
        }
    };
    match (roots, item) {
        (Some(Item::Value(Value::Array(roots))), _) => Ok(RootsLocation::Roots(roots)),
        (Some(_), _) => Err(no_list(text, at.start)),
        (None, Item::Table(table)) if table.is_dotted() => Ok(RootsLocation::Dotted(at)),
        (None, Item::Table(table)) if table.is_implicit() => Ok(RootsLocation::Nothing),
        (None, _) => Ok(RootsLocation::Header(at)),
    }
}

fn no_list(text: &str, at: usize) -> HooksFileError {
    HooksFileError::at(text, at, format!("{TABLE}.{KEY} is not a list"))
}

fn place_of(roots: &Array, dir: &str) -> Option<usize> {
    roots.iter().position(|root| root.as_str() == Some(dir))
}

fn quoted(dir: &str) -> String {
    Value::from(dir).to_string().trim().to_owned()
}

fn list_of(text: &str, array: &Array) -> Result<List, HooksFileError> {
    let spans = array.iter().map(Value::span);
    list(text, array.span(), spans.collect())
}

fn inline_list(text: &str, table: &InlineTable) -> Result<List, HooksFileError> {
    let spans = table.iter().map(|(name, value)| {
        let key = table.get_key_value(name)?.0.span()?;
        Some(key.start..value.span()?.end)
    });
    list(text, table.span(), spans.collect())
}

fn list(
    text: &str,
    whole: Option<Range<usize>>,
    items: Option<Vec<Range<usize>>>,
) -> Result<List, HooksFileError> {
    let (Some(whole), Some(items)) = (whole.clone(), items) else {
        let at = whole.map_or(0, |whole| whole.start);
        let what = format!("{TABLE} is written in a form that tenure cannot edit");
        return Err(HooksFileError::at(text, at, what));
    };
    Ok(List {
        open: whole.start + 1,
        close: whole.end - 1,
        items,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: &str = "/home/ann/.local/state/tenure";

    #[test]
    fn the_directory_comes_in_and_goes_out_without_a_trace() {
        for text in [
            "model = \"o3\"",
            "model = \"o3\"\n",
            "\u{feff}model = \"o3\"\n",
            "\u{feff}[sandbox_workspace_write]\nwritable_roots = []\n",
            "\u{feff}sandbox_workspace_write.network_access = true\n",
            "# mine\r\nmodel = \"o3\"\r\n\r\n[features]\r\nx = true\r\n",
            "model = \"o3\"\n\n\n",
            "[sandbox_workspace_write]\n",
            "[sandbox_workspace_write]",
            "[sandbox_workspace_write] # mine\nnetwork_access = true\n[a]\nb = 1\n",
            "[sandbox_workspace_write]\nwritable_roots = []\n",
            "[sandbox_workspace_write]\nwritable_roots = [\"/a\", '/b'] # two\n",
            "[sandbox_workspace_write]\r\nwritable_roots = [\r\n  \"/a\", # one\r\n  \"/b\" # two\r\n]\r\n",
            "[sandbox_workspace_write]\nwritable_roots = [\n  \"/a\",\n]\nx = 1",
            "  [ sandbox_workspace_write ]\n  writable_roots = [ ]\n",
            "sandbox_workspace_write = { network_access = true }\n",
            "sandbox_workspace_write = {}\n",
            "sandbox_workspace_write = { writable_roots = [\"/a\"] }\n",
            "a = 1\nsandbox_workspace_write.network_access = true\nb = 2\n",
            "sandbox_workspace_write.writable_roots = [\"/a\"]\n",
            "[sandbox_workspace_write.sub]\na = 1\n",
        ] {
            let with = allow(text, DIR).unwrap();
            assert_ne!(with, text);
            assert!(allows(&with, DIR).unwrap(), "{with}");
            assert!(!allows(text, DIR).unwrap());
            assert_eq!(allow(&with, DIR).unwrap(), with);
            let back = disallow(&with, DIR).unwrap();
            assert_eq!(back, Edited::Text(text.to_owned()), "through\n{with}");
        }
        let made = allow("", DIR).unwrap();
        assert_eq!(disallow(&made, DIR).unwrap(), Edited::Nothing);
    }

    /// As versions before the first release wrote it.
    #[test]
    fn a_table_with_an_older_comment_goes_out_too() {
        let old = "# So that tenure works from the sandbox; `tenure uninstall codex` removes it.";
        for before in ["", "model = \"o3\"\n", "# mine\r\nmodel = \"o3\"\r\n"] {
            let now = allow(before, DIR).unwrap();
            let then = now.replace(COMMENT, old);
            assert_ne!(now, then);
            let back = match before {
                "" => Edited::Nothing,
                text => Edited::Text(text.to_owned()),
            };
            assert_eq!(disallow(&then, DIR).unwrap(), back, "through\n{then}");
        }
    }

    #[test]
    fn what_codex_adds_behind_ours_stays() {
        let more = "\n[hooks.state.\"x\"]\ntrusted_hash = \"sha256:1\"\n";
        let with = allow("model = \"o3\"\n", DIR).unwrap() + more;
        let back = Edited::Text(format!("model = \"o3\"\n{more}"));
        assert_eq!(disallow(&with, DIR).unwrap(), back);
        let mine = allow("", DIR).unwrap() + "network_access = true\n";
        let Edited::Text(left) = disallow(&mine, DIR).unwrap() else {
            panic!("theirs was eaten")
        };
        assert!(
            left.contains("network_access = true\n") && !left.contains(DIR),
            "{left}"
        );
        assert!(left.parse::<toml_edit::DocumentMut>().is_ok());
    }

    #[test]
    fn what_does_not_parse_is_refused_with_its_place() {
        let error = allow("a = 1\nb = = 2\n", DIR).unwrap_err();
        assert_eq!((error.line, error.column), (2, 5), "{error}");
        for text in [
            "sandbox_workspace_write = 1",
            "[sandbox_workspace_write]\nwritable_roots = 1",
        ] {
            assert!(allow(text, DIR).is_err() && disallow(text, DIR).is_err());
        }
    }
}

//! Which directories Codex trusts: `[projects."DIR"] trust_level` in its config.toml.
//!
//! In a directory that it trusts Codex starts the servers that the repository names, and it writes a directory
//! down as trusted by itself when it may write there. A directory that is written down as untrusted before the
//! first start stays so. An entry is added at the end of the file; the rest keeps every byte where TOML allows
//! it. What the user wrote about a directory is never changed.

use toml_edit::{Document, DocumentMut, Item, Table, TableLike, value};

use super::hooks_file::HooksFileError;
use super::splice::line_end;

const TABLE: &str = "projects";
const KEY: &str = "trust_level";
const UNTRUSTED: &str = "untrusted";

/// What the file has to be so that Codex does not trust a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distrust {
    /// It says so already.
    AsItIs,
    /// It says so with this text.
    Text(String),
    /// It says that the directory is trusted, or something that we do not know.
    OtherLevel(String),
}

/// Makes Codex distrust a directory.
pub fn distrust(text: &str, dir: &str) -> Result<Distrust, HooksFileError> {
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        HooksFileError::at(text, at, error.message().replace('\n', "; "))
    })?;
    let root = document.as_table();
    let projects = root.get(TABLE);
    let own = projects.and_then(|projects| projects.get(dir));
    if let Some(level) = own.and_then(|own| own.get(KEY)) {
        let level = level.as_str().unwrap_or("something that is not text");
        return Ok(match level {
            UNTRUSTED => Distrust::AsItIs,
            other => Distrust::OtherLevel(other.to_owned()),
        });
    }
    let can_append = own.is_none()
        && projects
            .is_none_or(|projects| matches!(projects, Item::Table(table) if !table.is_dotted()));
    let after = if can_append {
        appended(text, dir)
    } else {
        edited(text, document.into_mut(), dir)?
    };
    Ok(Distrust::Text(after))
}

fn appended(text: &str, dir: &str) -> String {
    let end = line_end(text);
    let name = toml_edit::Key::new(dir).to_string();
    let before = match text {
        "" => "",
        text if text.ends_with('\n') => end,
        _ => &end.repeat(2),
    };
    format!("{text}{before}[{TABLE}.{name}]{end}{KEY} = \"{UNTRUSTED}\"{end}")
}

/// The same where the table is written in a way that cannot be continued at the end.
fn edited(text: &str, mut document: DocumentMut, dir: &str) -> Result<String, HooksFileError> {
    let refused = |what: &str| HooksFileError::at(text, 0, what);
    let projects = document.entry(TABLE).or_insert(Item::Table(Table::new()));
    let projects: &mut dyn TableLike = projects
        .as_table_like_mut()
        .ok_or_else(|| refused("projects is not a table"))?;
    if projects.get(dir).is_none() {
        projects.insert(dir, toml_edit::table());
    }
    let own = projects.get_mut(dir).and_then(Item::as_table_like_mut);
    let own = own.ok_or_else(|| refused("an entry of projects is not a table"))?;
    own.insert(KEY, value(UNTRUSTED));
    let mark = if text.starts_with('\u{feff}') {
        "\u{feff}"
    } else {
        ""
    };
    Ok(format!("{mark}{document}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: &str = "/home/ann/my \"work\"/issue-6";

    fn level(text: &str) -> Option<String> {
        let document: DocumentMut = text.parse().unwrap();
        let own = document.get(TABLE)?.get(DIR)?.get(KEY)?;
        own.as_str().map(str::to_owned)
    }

    #[test]
    fn a_directory_is_added_and_every_other_byte_stays() {
        for text in [
            "",
            "model = \"o3\"",
            "# mine\r\nmodel = \"o3\"\r\n\r\n[features]\r\nx = true # y\r\n",
            "[projects.\"/other\"]\ntrust_level = \"trusted\"\n\n[mcp_servers.x]\ncommand = \"y\"\n",
            "[projects]\n[projects.'/other']\ntrust_level = 'trusted'",
        ] {
            let Distrust::Text(after) = distrust(text, DIR).unwrap() else {
                panic!("{text}")
            };
            assert!(after.starts_with(text), "{after}");
            assert_eq!(level(&after).as_deref(), Some(UNTRUSTED), "{after}");
            assert_eq!(distrust(&after, DIR).unwrap(), Distrust::AsItIs);
        }
    }

    #[test]
    fn tables_in_other_forms_are_edited_in_place() {
        let quoted = toml_edit::Key::new(DIR).to_string();
        for text in [
            "a = 1\nprojects.\"/other\".trust_level = \"trusted\"\n".to_owned(),
            "\u{feff}projects.\"/other\".trust_level = \"trusted\"\n".to_owned(),
            "projects = { \"/other\" = { trust_level = \"trusted\" } } # mine\n".to_owned(),
            format!("[projects.{quoted}]\nnote = 1\n[z]\n"),
        ] {
            let Distrust::Text(after) = distrust(&text, DIR).unwrap() else {
                panic!("{text}")
            };
            assert_eq!(level(&after).as_deref(), Some(UNTRUSTED), "{after}");
            assert_eq!(after.contains("/other"), text.contains("/other"), "{after}");
            assert_eq!(after.contains("# mine"), text.contains("# mine"), "{after}");
            assert_eq!(
                after.matches('\u{feff}').count(),
                text.matches('\u{feff}').count()
            );
            assert_eq!(after.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
        }
    }

    #[test]
    fn what_the_user_wrote_about_it_stays() {
        let quoted = toml_edit::Key::new(DIR).to_string();
        let trusted = format!("[projects.{quoted}]\ntrust_level = \"trusted\"\n");
        let found = distrust(&trusted, DIR).unwrap();
        assert_eq!(found, Distrust::OtherLevel("trusted".to_owned()));
        let odd = trusted.replace("\"trusted\"", "1");
        assert!(matches!(
            distrust(&odd, DIR).unwrap(),
            Distrust::OtherLevel(_)
        ));
    }

    #[test]
    fn what_does_not_parse_is_refused_with_its_place() {
        let error = distrust("a = 1\nb = = 2\n", DIR).unwrap_err();
        assert_eq!((error.line, error.column), (2, 5), "{error}");
        assert!(distrust("projects = 1\n", DIR).is_err());
        let quoted = toml_edit::Key::new(DIR).to_string();
        assert!(distrust(&format!("[projects]\n{quoted} = 1\n"), DIR).is_err());
    }
}

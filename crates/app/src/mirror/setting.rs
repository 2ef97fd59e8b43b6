//! The mirror settings: `[[mirror]]` with a path, a format, an action for the end, and fields.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use tenure_core::id::AgentName;
use tenure_service::mirror::content::{Document, Format, OWN_FIELDS, SessionContext, documents};

use super::template;
use crate::mission_token;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Mirror {
    /// The path of the file; by default one per session in the state directory.
    pub path: Option<String>,
    #[serde(serialize_with = "format_name")]
    #[schemars(with = "String")]
    pub format: Format,
    pub end: AtEnd,
    /// Only sessions of this agent.
    pub agent: Option<String>,
    /// Fields of the file, each with its template.
    pub fields: BTreeMap<String, String>,
    /// The settings file that defines it.
    pub origin: String,
}

/// What happens to a mirror at its session's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AtEnd {
    /// It is removed.
    Remove,
    /// It stays, marked as ended.
    Mark,
}

fn format_name<S: serde::Serializer>(format: &Format, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(match format {
        Format::Json => "json",
        Format::Pact => "pact",
        Format::SpecKitty => "spec-kitty",
    })
}

/// Parses the value of `mirror`, which must be an array of tables.
pub fn parse(value: &toml::Value, origin: &str) -> Result<Vec<Mirror>, String> {
    let Some(tables) = value.as_array() else {
        return Err("expected [[mirror]], with two brackets on each side".into());
    };
    tables.iter().map(|table| one(table, origin)).collect()
}

fn one(value: &toml::Value, origin: &str) -> Result<Mirror, String> {
    let Some(table) = value.as_table() else {
        return Err("expected [[mirror]] with path, format, end and agent".into());
    };
    let mut mirror = Mirror {
        path: None,
        format: Format::Json,
        end: AtEnd::Remove,
        agent: None,
        fields: BTreeMap::new(),
        origin: origin.to_owned(),
    };
    for (key, value) in table {
        let Some(text) = value.as_str() else {
            return Err(format!("{key}: expected a string in quotes"));
        };
        match key.as_str() {
            "path" => {
                check_path(text)?;
                mirror.path = Some(text.to_owned());
            }
            "format" => mirror.format = Format::parse(text).map_err(|error| error.to_string())?,
            "end" => {
                mirror.end = match text {
                    "remove" => AtEnd::Remove,
                    "mark" => AtEnd::Mark,
                    _ => return Err(format!("end {text:?}: expected remove or mark")),
                }
            }
            "agent" => {
                AgentName::parse(text).map_err(|error| error.to_string())?;
                mirror.agent = Some(text.to_owned());
            }
            _ => {
                check_field(key, text)?;
                mirror.fields.insert(key.clone(), text.to_owned());
            }
        }
    }
    Ok(mirror)
}

fn check_path(text: &str) -> Result<(), String> {
    if !text.starts_with('/') && !text.starts_with("~/") {
        return Err(format!("path {text:?} must begin with / or ~/"));
    }
    if text.split('/').any(|part| part == "..") {
        return Err(format!("path {text:?} must not contain .."));
    }
    template::check(text).map_err(|why| format!("path {text:?} {why}"))
}

/// Any other key is a field of the file.
fn check_field(name: &str, text: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
        return Err(format!(
            "unknown setting {name:?} of a mirror; expected path, format, end, agent, or a field in lower case"
        ));
    }
    if OWN_FIELDS.contains(&name) {
        return Err(format!(
            "{name}: tenure sets this field itself, because it identifies the session"
        ));
    }
    template::check(text).map_err(|why| format!("{name} {text:?} {why}"))
}

impl Mirror {
    /// Whether it is for a session of this agent.
    pub fn is_for(&self, agent: &str) -> bool {
        self.agent.as_deref().is_none_or(|only| only == agent)
    }

    /// Its files for a session. Tokens are in the state directory.
    pub fn documents(&self, context: &SessionContext, state: &Path) -> Vec<Document> {
        let filled = |(name, text): (&String, &String)| {
            let value = template::fill(text, context, str::to_owned)?;
            Some((name.clone(), value))
        };
        let fields: Vec<_> = self.fields.iter().filter_map(filled).collect();
        let mut all = documents(self.format, context, &fields);
        if self.format.is_directory() {
            for document in &mut all {
                let mission = document.mission().map(str::to_owned);
                let token = mission
                    .and_then(|mission| mission_token::read(state, &context.session.id, &mission));
                if let Some(token) = token {
                    document.show_token(&token);
                }
            }
        }
        all
    }

    /// Its location for a session; none if the session lacks a value that the path names.
    pub fn place(
        &self,
        context: &SessionContext,
        home: Option<&str>,
        state: &Path,
    ) -> Option<Location> {
        let session = &context.session;
        let Some(spelt) = &self.path else {
            let name = if self.format.is_directory() {
                session.id.clone()
            } else {
                format!("{}.json", session.id)
            };
            return Some(Location {
                path: state.join("mirrors").join(name),
                fixed: state.to_owned(),
            });
        };
        let path = match spelt.strip_prefix("~/") {
            Some(below) => format!("{}/{below}", home?.trim_end_matches('/')),
            None => spelt.clone(),
        };
        let fixed = fixed_part(&path, home, self.format.is_directory());
        let path = template::fill(&path, context, one_part)?;
        let path = PathBuf::from(path);
        Some(Location { path, fixed })
    }
}

/// Where a mirror is, and which part of that the user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file, or the directory of a mirror with several files.
    pub path: PathBuf,
    /// Symbolic links are followed here, and nowhere below.
    pub fixed: PathBuf,
}

/// The literal part of the template above the mirror's own directory, at least the home directory.
/// The mirror's own directory does not count, because a link in its place would redirect the
/// mirror.
fn fixed_part(path: &str, home: Option<&str>, is_directory: bool) -> PathBuf {
    let own = if is_directory { 1 } else { 2 };
    let parts: Vec<Component<'_>> = Path::new(path).components().collect();
    let spelt = |part: &&Component<'_>| !part.as_os_str().to_string_lossy().contains('{');
    let spelt = parts.iter().take_while(spelt).count();
    let above = parts.len().saturating_sub(own).max(1);
    let fixed: PathBuf = parts[..spelt.min(above)].iter().collect();
    match home.map(Path::new) {
        Some(home) if Path::new(path).starts_with(home) && !fixed.starts_with(home) => {
            home.to_owned()
        }
        _ => fixed,
    }
}

/// A value as one path component. No value can escape it, and no two values share one.
fn one_part(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let mut part = String::new();
    for (place, byte) in value.bytes().enumerate() {
        if plain(byte) && !(place == 0 && byte == b'.') {
            part.push(char::from(byte));
        } else {
            part.push_str(&format!("%{byte:02X}"));
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Mirror>, String> {
        let table: toml::Table = text.parse().expect("it is TOML");
        parse(&table["mirror"], "config.toml")
    }

    #[test]
    fn mirrors_are_read_and_what_is_wrong_is_named() {
        let good = read(
            "[[mirror]]\npath = \"~/.pact/{native_id}.json\"\nformat = \"pact\"\nend = \"mark\"\nagent = \"claude\"\n[[mirror]]",
        )
        .expect("it is fine");
        assert_eq!(
            (good.len(), good[0].end, good[1].format),
            (2, AtEnd::Mark, Format::Json)
        );
        assert!(good[0].is_for("claude") && !good[0].is_for("codex") && good[1].is_for("codex"));
        for (bad, word) in [
            ("mirror = 1", "[[mirror]]"),
            ("mirror = [1]", "[[mirror]]"),
            ("[[mirror]]\npath = \"x/y\"", "begin with"),
            ("[[mirror]]\npath = \"/a/../b\"", ".."),
            ("[[mirror]]\npath = \"/a/{home}\"", "{home}"),
            ("[[mirror]]\npath = \"/a/{session\"", "closed"),
            ("[[mirror]]\nformat = \"xml\"", "xml"),
            ("[[mirror]]\nend = \"keep\"", "keep"),
            ("[[mirror]]\nformat = 1", "format"),
            ("[[mirror]]\ncolour = 1", "colour"),
            ("[[mirror]]\nColour = \"red\"", "Colour"),
            ("[[mirror]]\nsession_id = \"x\"", "identifies"),
            (
                "[[mirror]]\nteam_name = \"s-{native_id:x}\"",
                "{native_id:8}",
            ),
            (
                "[[mirror]]\nteam_name = \"s-{native_id:0}\"",
                "{native_id:8}",
            ),
            ("[[mirror]]\nteam_name = \"s-{colour}\"", "{colour}"),
            ("[[mirror]]\nagent = \"A B\"", "A B"),
        ] {
            let said = read(bad).expect_err(bad);
            assert!(said.contains(word), "{bad}: {said}");
        }
    }

    #[test]
    fn f_k12_what_the_user_spelt_out_above_a_mirrors_directory_is_fixed() {
        let fixed = |path: &str, is_directory: bool| {
            fixed_part(path, Some("/home/ann"), is_directory)
                .display()
                .to_string()
        };
        for (path, is_directory, part) in [
            ("/home/ann/.pact/x.json", false, "/home/ann"),
            ("/home/ann/x.json", false, "/home/ann"),
            ("/home/ann/.kitty", true, "/home/ann"),
            ("/home/ann/.config/pact/x.json", false, "/home/ann/.config"),
            (
                "/home/ann/.config/pact/{repo}/x.json",
                false,
                "/home/ann/.config/pact",
            ),
            ("/home/ann/a-{agent}/b/c/x.json", false, "/home/ann"),
            ("/srv/{repo}/x.json", false, "/srv"),
            ("/x.json", false, "/"),
            ("/{repo}", true, "/"),
        ] {
            assert_eq!(fixed(path, is_directory), part, "{path}");
        }
    }

    #[test]
    fn f_i15_a_value_is_one_part_of_a_path() {
        for (value, part) in [
            ("acme/web", "acme%2Fweb"),
            ("acme-web", "acme-web"),
            ("..", "%2E."),
            (".hidden", "%2Ehidden"),
            ("/srv/r", "%2Fsrv%2Fr"),
            ("a%b", "a%25b"),
        ] {
            assert_eq!(one_part(value), part);
        }
    }
}

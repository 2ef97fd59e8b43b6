//! A TOML file in sections, each of which knows its lines.
//!
//! Each section is parsed separately. A key that is unknown or has the wrong type is reported and
//! removed before the section is parsed again, so one mistake does not hide the others.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::fault::ConfigFault;
use tenure_app::toml_words::plain;

/// A table of the file.
pub(super) struct Section<'t> {
    /// Its name for people: `forge home`, `rule 2`; empty for the top of the file.
    pub name: String,
    text: &'t str,
    start: usize,
    table: DeTable<'t>,
}

impl Section<'_> {
    /// The line of a key, or of the section if it does not have the key.
    pub fn line(&self, key: &str) -> usize {
        let found = self.table.get(key).map(|value| value.span().start);
        line_of(self.text, found.unwrap_or(self.start))
    }

    /// A fault of this section.
    pub fn fault(&self, key: &str, why: impl Into<String>) -> ConfigFault {
        let name = match (self.name.as_str(), key) {
            ("", key) => key.to_owned(),
            (name, "") => name.to_owned(),
            (name, key) => format!("{name}: {key}"),
        };
        ConfigFault {
            line: self.line(key),
            key: name,
            why: why.into(),
        }
    }

    /// Parses the section; reports what cannot be parsed.
    pub fn read<T: DeserializeOwned>(&self, faults: &mut Vec<ConfigFault>) -> Option<T> {
        let mut table = self.table.clone();
        let mut taken: Vec<String> = Vec::new();
        let mut is_whole = true;
        loop {
            let value = Spanned::new(self.start..self.start, DeValue::Table(table.clone()));
            let error = match T::deserialize(ValueDeserializer::from(value)) {
                Ok(read) => return is_whole.then_some(read),
                Err(error) => error,
            };
            let message = error.message().lines().collect::<Vec<_>>().join(" ");
            let missing = message.strip_prefix("missing field `");
            let missing = missing.map(|rest| rest.trim_end_matches('`'));
            // A key that was removed has already been reported.
            if missing.is_some_and(|key| taken.iter().any(|one| one == key)) {
                return None;
            }
            let culprit = error.span().and_then(|span| key_at(&table, span.start));
            let Some(key) = culprit.filter(|_| missing.is_none()) else {
                let why = match missing {
                    Some(_) => "it is missing".to_owned(),
                    None => message.clone(),
                };
                faults.push(self.fault(missing.unwrap_or_default(), why));
                return None;
            };
            // Without a key that had a value of the wrong type, the rest would mean something else.
            is_whole &= message.starts_with("unknown field");
            let why = match elsewhere(&self.name, &key) {
                Some(why) if message.starts_with("unknown field") => why.to_owned(),
                _ => plain(&message),
            };
            faults.push(self.fault(&key, why));
            table.remove(key.as_str());
            taken.push(key);
        }
    }
}

/// Keys that people expect here but that are set elsewhere.
fn elsewhere(section: &str, key: &str) -> Option<&'static str> {
    match (section, key) {
        ("", "grace") => Some(
            "there is no such key; how long a closed item can come back is grace in config.toml (`tenure config`)",
        ),
        _ => None,
    }
}

/// The key at this position, or whose value is at this position.
fn key_at(table: &DeTable<'_>, place: usize) -> Option<String> {
    let mut entries = table.iter();
    let holds =
        |span: std::ops::Range<usize>| span.start <= place && place < span.end.max(span.start + 1);
    let found = entries.find(|(key, value)| holds(key.span()) || holds(value.span()));
    found.map(|(key, _)| key.get_ref().to_string())
}

fn line_of(text: &str, place: usize) -> usize {
    let before = text.as_bytes().iter().take(place);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// A file in its sections.
pub(super) struct Document<'t> {
    pub top: Section<'t>,
    pub forges: Vec<(String, Section<'t>)>,
    pub repos: Vec<(String, Section<'t>)>,
    pub rules: Vec<Section<'t>>,
}

impl<'t> Document<'t> {
    pub fn parse(text: &'t str, faults: &mut Vec<ConfigFault>) -> Option<Self> {
        let table = match DeTable::parse(text) {
            Ok(table) => table.into_inner(),
            Err(error) => {
                let place = error.span().map_or(0, |span| span.start);
                let why = error.message().lines().collect::<Vec<_>>().join(" ");
                faults.push(ConfigFault {
                    line: line_of(text, place),
                    key: String::new(),
                    why: format!("it is not valid TOML: {why}"),
                });
                return None;
            }
        };
        let section = |name: String, start: usize, table: DeTable<'t>| Section {
            name,
            text,
            start,
            table,
        };
        let mut whole = Self {
            top: section(String::new(), 0, DeTable::new()),
            forges: Vec::new(),
            repos: Vec::new(),
            rules: Vec::new(),
        };
        for (key, value) in table {
            let (start, name) = (value.span().start, key.get_ref().to_string());
            let mut wrong = |expected: &str| {
                faults.push(ConfigFault {
                    line: line_of(text, start),
                    key: name.clone(),
                    why: format!("expected sections such as {expected}"),
                });
            };
            match (name.as_str(), value.into_inner()) {
                (which @ ("forge" | "repo"), DeValue::Table(inner)) => {
                    for (key, value) in inner {
                        let (start, own) = (value.span().start, key.get_ref().to_string());
                        let DeValue::Table(table) = value.into_inner() else {
                            let example = if which == "forge" {
                                "[forge.home]"
                            } else {
                                "[repo.\"acme/web\"]"
                            };
                            wrong(example);
                            continue;
                        };
                        let found = section(format!("{which} {own}"), start, table);
                        let list = if which == "forge" {
                            &mut whole.forges
                        } else {
                            &mut whole.repos
                        };
                        list.push((own, found));
                    }
                }
                ("rule", DeValue::Array(list)) => {
                    for (place, value) in list.into_iter().enumerate() {
                        let start = value.span().start;
                        match value.into_inner() {
                            DeValue::Table(table) => {
                                let name = format!("rule {}", place + 1);
                                whole.rules.push(section(name, start, table));
                            }
                            _ => wrong("[[rule]]"),
                        }
                    }
                }
                ("rule", _) => wrong("[[rule]]"),
                ("forge", _) => wrong("[forge.home]"),
                ("repo", _) => wrong("[repo.\"acme/web\"]"),
                (_, other) => {
                    let place = key.span();
                    whole.top.table.insert(key, Spanned::new(place, other));
                }
            }
        }
        // Tables are sorted by name; people read them in file order.
        whole.forges.sort_by_key(|(_, section)| section.start);
        whole.repos.sort_by_key(|(_, section)| section.start);
        Some(whole)
    }
}

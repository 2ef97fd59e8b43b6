//! The content of an agent's event, parsed without trusting it.
//!
//! Only requested fields are kept; everything else is skipped, however large or deep it is. A payload that is
//! truncated, not JSON, or broken in the middle still gives what came before: the fields that name the session
//! come first in every agent's events. A field of the wrong type counts as absent and is listed in
//! [`Payload::problems`]. Nothing here can panic.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tenure_core::json_fault::fault_at;
use tenure_core::time::Timestamp;

/// How many characters of a text are kept for people.
const MAX_WORDS: usize = 200;
/// How many characters of a long text are kept to make a title.
const MAX_BEGINNING: usize = 1_000;
/// How many texts a list may have.
const MAX_TEXTS: usize = 1_000;
/// The kernel's limit for a path.
const MAX_PATH: usize = 4096;

/// The requested fields of one event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    fields: BTreeMap<String, PayloadField>,
    problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PayloadField {
    Text(String),
    Number(u64),
    Null,
    /// A list of texts.
    List(Vec<String>),
    /// Anything else, by its type name.
    Other(&'static str),
}

impl PayloadField {
    fn kind(&self) -> &'static str {
        match self {
            PayloadField::Text(_) => "a string",
            PayloadField::Number(_) => "a number",
            PayloadField::Null => "null",
            PayloadField::List(_) => "a list",
            PayloadField::Other(kind) => kind,
        }
    }
}

impl Payload {
    /// Parses the wanted fields of a JSON object. `a.b` is the field `b` of the object `a`, or of the first object in
    /// the list `a`.
    pub fn read(bytes: &[u8], wanted: &[&str]) -> Self {
        let mut payload = Self::default();
        if bytes.iter().all(u8::is_ascii_whitespace) {
            payload.problems.push("the event is empty".to_owned());
            return payload;
        }
        let mut text = serde_json::Deserializer::from_slice(bytes);
        let object = Object {
            prefix: "",
            wanted,
            fields: &mut payload.fields,
        };
        match object.deserialize(&mut text) {
            Ok(true) => {}
            Ok(false) => payload
                .problems
                .push("the event is not a JSON object".to_owned()),
            Err(error) => payload.problems.push(format!(
                "the event is not valid JSON ({})",
                fault_at(&error)
            )),
        }
        payload
    }

    /// A text, if the field is one and not empty.
    pub fn text(&mut self, name: &str) -> Option<String> {
        match self.fields.get(name)? {
            PayloadField::Text(text) if text.is_empty() => None,
            PayloadField::Text(text) => Some(text.clone()),
            PayloadField::Null => None,
            other => {
                let kind = other.kind();
                self.problem(format!("{name} is {kind}, not a string"));
                None
            }
        }
    }

    /// One text, or a list of them, without empty ones.
    pub fn texts(&mut self, name: &str) -> Vec<String> {
        let mut texts = match self.fields.get(name) {
            Some(PayloadField::List(texts)) => texts.clone(),
            Some(PayloadField::Text(text)) => vec![text.clone()],
            None | Some(PayloadField::Null) => Vec::new(),
            Some(other) => {
                let kind = other.kind();
                self.problem(format!(
                    "{name} is {kind}, not a string or a list of strings"
                ));
                Vec::new()
            }
        };
        texts.retain(|text| !text.is_empty());
        texts
    }

    /// Whether the field is an empty text.
    pub fn is_blank(&self, name: &str) -> bool {
        matches!(self.fields.get(name), Some(PayloadField::Text(text)) if text.trim().is_empty())
    }

    /// A process id, written as a number or as text.
    pub fn pid(&mut self, name: &str) -> Option<u32> {
        let pid = match self.fields.get(name)? {
            PayloadField::Null => return None,
            PayloadField::Text(text) if text.is_empty() => return None,
            PayloadField::Number(number) => u32::try_from(*number).ok(),
            PayloadField::Text(text) => text.parse().ok(),
            PayloadField::List(_) | PayloadField::Other(_) => None,
        };
        let pid = pid.filter(|pid| *pid > 0);
        if pid.is_none() {
            self.problem(format!("{name} is not a process id"));
        }
        pid
    }

    /// A time in milliseconds since 1970.
    pub fn millis(&mut self, name: &str) -> Option<Timestamp> {
        match self.fields.get(name)? {
            PayloadField::Number(number) => i64::try_from(*number).ok().map(Timestamp),
            _ => None,
        }
    }

    /// A text for people: without control characters, and shortened if it is too long.
    pub fn words(&mut self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        let plain = text.chars().filter(|c| !c.is_control());
        Some(plain.take(MAX_WORDS).collect()).filter(|words: &String| !words.is_empty())
    }

    /// The beginning of a text that may be long, as sent.
    pub fn beginning(&mut self, name: &str) -> Option<String> {
        let mut text = self.text(name)?;
        if let Some((end, _)) = text.char_indices().nth(MAX_BEGINNING) {
            text.truncate(end);
        }
        Some(text)
    }

    /// A path that the kernel would accept and a person can read.
    pub fn path(&mut self, name: &str) -> Option<String> {
        let path = self.text(name)?;
        if path.len() > MAX_PATH || path.contains(char::is_control) {
            self.problem(format!("{name} is not a path"));
            return None;
        }
        Some(path)
    }

    /// Adds a problem of the event.
    pub fn problem(&mut self, what: String) {
        if !self.problems.contains(&what) {
            self.problems.push(what);
        }
    }

    pub fn problems(self) -> Vec<String> {
        self.problems
    }
}

/// Parses an object into `fields`; returns whether it was one.
struct Object<'a> {
    prefix: &'a str,
    wanted: &'a [&'a str],
    fields: &'a mut BTreeMap<String, PayloadField>,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let name = if self.prefix.is_empty() {
                key
            } else {
                format!("{}.{key}", self.prefix)
            };
            let has_wanted_parts = self.wanted.iter().any(|wanted| {
                wanted
                    .strip_prefix(name.as_str())
                    .is_some_and(|rest| rest.starts_with('.'))
            });
            if has_wanted_parts {
                map.next_value_seed(Object {
                    prefix: &name,
                    wanted: self.wanted,
                    fields: &mut *self.fields,
                })?;
            } else if self.wanted.contains(&name.as_str()) {
                let field = map.next_value_seed(AnyField)?;
                self.fields.insert(name, field);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        if !self.prefix.is_empty() {
            seq.next_element_seed(self)?;
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }
}

/// Parses one value, keeping only what a field can be.
struct AnyField;

impl<'de> DeserializeSeed<'de> for AnyField {
    type Value = PayloadField;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<PayloadField, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyField {
    type Value = PayloadField;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<PayloadField, E> {
        Ok(PayloadField::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<PayloadField, E> {
        Ok(PayloadField::Text(text))
    }

    fn visit_bool<E>(self, _: bool) -> Result<PayloadField, E> {
        Ok(PayloadField::Other("true or false"))
    }

    fn visit_unit<E>(self) -> Result<PayloadField, E> {
        Ok(PayloadField::Null)
    }

    fn visit_i64<E>(self, _: i64) -> Result<PayloadField, E> {
        Ok(PayloadField::Other("a number"))
    }

    fn visit_u64<E>(self, number: u64) -> Result<PayloadField, E> {
        Ok(PayloadField::Number(number))
    }

    fn visit_f64<E>(self, _: f64) -> Result<PayloadField, E> {
        Ok(PayloadField::Other("a number"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<PayloadField, A::Error> {
        let mut texts = Some(Vec::new());
        while let Some(one) = seq.next_element_seed(AnyField)? {
            texts = match (texts, one) {
                (Some(mut texts), PayloadField::Text(text)) if texts.len() < MAX_TEXTS => {
                    texts.push(text);
                    Some(texts)
                }
                _ => None,
            };
        }
        Ok(texts.map_or(PayloadField::Other("a list"), PayloadField::List))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PayloadField, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(PayloadField::Other("an object"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: &[&str] = &["session_id", "cwd", "tool_input.file_path"];

    #[test]
    fn what_was_asked_for_is_kept_and_the_rest_skipped() {
        let text =
            br#"{"x":[1,{"y":2}],"session_id":"a","tool_input":{"file_path":"/f","old":"z"}}"#;
        let mut payload = Payload::read(text, WANTED);
        assert_eq!(payload.text("session_id").as_deref(), Some("a"));
        assert_eq!(payload.text("tool_input.file_path").as_deref(), Some("/f"));
        assert_eq!(payload.text("cwd"), None);
        assert_eq!(payload.problems(), Vec::<String>::new());
    }

    #[test]
    fn one_text_or_a_list_of_texts() {
        let texts = |json: &str| {
            let mut payload = Payload::read(json.as_bytes(), &["writes"]);
            (payload.texts("writes"), payload.problems().len())
        };
        let both = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(texts(r#"{"writes":["a","","b"]}"#), (both, 0));
        assert_eq!(texts(r#"{"writes":"a"}"#), (vec!["a".to_owned()], 0));
        for nothing in [
            "{}",
            r#"{"writes":null}"#,
            r#"{"writes":[]}"#,
            r#"{"writes":""}"#,
        ] {
            assert_eq!(texts(nothing), (Vec::new(), 0), "{nothing}");
        }
        for wrong in [
            r#"{"writes":1}"#,
            r#"{"writes":["a",1]}"#,
            r#"{"writes":[["a"]]}"#,
        ] {
            assert_eq!(texts(wrong), (Vec::new(), 1), "{wrong}");
        }
    }

    #[test]
    fn what_came_before_the_trouble_counts() {
        for tail in [
            "",
            "\"x\":",
            "\"x\":[[[[",
            "\"x\":\"\u{1}",
            "\"x\":1}trailing",
        ] {
            let text = format!("{{\"session_id\":\"a\",{tail}");
            let mut payload = Payload::read(text.as_bytes(), WANTED);
            assert_eq!(payload.text("session_id").as_deref(), Some("a"), "{tail}");
        }
        let mut deep = b"{\"session_id\":\"a\",\"x\":".to_vec();
        deep.extend(vec![b'['; 100_000]);
        let mut payload = Payload::read(&deep, WANTED);
        assert_eq!(payload.text("session_id").as_deref(), Some("a"));
        assert_eq!(payload.problems().len(), 1);
        let mut cut = b"{\"session_id\":\"a\",\"x\":\"".to_vec();
        cut.extend([0xff, 0xfe, b'"', b'}']);
        assert_eq!(
            Payload::read(&cut, WANTED).text("session_id").as_deref(),
            Some("a")
        );
    }

    #[test]
    fn what_people_are_shown_is_short_and_plain() {
        let long = "x".repeat(1_000_000);
        let text =
            serde_json::json!({"session_id": format!("a\u{1b}[2J\n{long}"), "cwd": "/a\u{0}b"});
        let mut payload = Payload::read(text.to_string().as_bytes(), WANTED);
        let words = payload.words("session_id").unwrap();
        assert!(
            words.starts_with("a[2Jxx") && words.len() == MAX_WORDS,
            "{words}"
        );
        assert_eq!(payload.path("cwd"), None);
        assert_eq!(payload.problems(), ["cwd is not a path"]);
        let text = serde_json::json!({"session_id": "\u{1b}", "cwd": format!("/{long}")});
        let mut payload = Payload::read(text.to_string().as_bytes(), WANTED);
        assert_eq!(payload.words("session_id"), None);
        assert_eq!(payload.path("cwd"), None);
    }

    #[test]
    fn wrong_types_are_absent_and_said() {
        let text = br#"{"session_id":7,"cwd":null,"tool_input":[]}"#;
        let mut payload = Payload::read(text, WANTED);
        assert_eq!(payload.text("session_id"), None);
        assert_eq!(payload.text("cwd"), None);
        assert_eq!(payload.problems(), ["session_id is a number, not a string"]);
        for odd in ["", "  \n", "7", "null", "[1]", "\"x\"", "nope"] {
            let problems = Payload::read(odd.as_bytes(), WANTED).problems();
            assert_eq!(problems.len(), 1, "{odd}: {problems:?}");
        }
    }
}

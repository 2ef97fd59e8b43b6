//! A JSON document whose texts are parts of the body that it was read from.
//!
//! A payload of a forge has hundreds of names and texts, of which an event needs forty. `serde_json::Value` copies each
//! and hashes the names, which is most of what reading a delivery costs. Of two fields with one name the last one counts,
//! as in `Value`; serde_json limits the depth for both.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

#[derive(Debug, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// `None` if it is negative or has a fraction.
    Number(Option<u64>),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl Json<'_> {
    /// The field of this name, if it is an object and has it.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else {
            return None;
        };
        let mut newest = fields.iter().rev();
        newest.find_map(|(field, value)| (field == name).then_some(value))
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => *number,
            _ => None,
        }
    }

    /// Its members; none if it is not a list.
    pub fn list(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            _ => &[],
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyJson)
    }
}

/// The name of a field.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = Json<'de>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Json::Number(Some(value)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Json::Number(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Json::Number(None))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    /// A text with escapes, which is not as such in the body.
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(member) = members.next_element()? {
            list.push(member);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut object = Vec::new();
        while let Some((Name(name), value)) = fields.next_entry()? {
            object.push((name, value));
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Json<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn it_reads_what_value_reads() {
        let text = r#"{"a": 1, "b": [true, null, -1, 1.5, "x\u0041", "y"], "a": {"c\n": "d"}, "n": 18446744073709551615}"#;
        let json = read(text);
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let named = json.get("a").and_then(|a| a.get("c\n"));
        assert_eq!(named.and_then(Json::text), value["a"]["c\n"].as_str());
        assert_eq!(json.get("n").and_then(Json::number), value["n"].as_u64());
        let list = json.get("b").map(Json::list).unwrap_or_default();
        let texts: Vec<_> = list.iter().map(Json::text).collect();
        let expected: Vec<_> = value["b"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_str())
            .collect();
        assert_eq!(texts, expected);
        let numbers: Vec<_> = list.iter().map(Json::number).collect();
        let expected: Vec<_> = value["b"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_u64())
            .collect();
        assert_eq!(numbers, expected);
        assert_eq!(
            (list[0] == Json::Bool(true), list[1] == Json::Null),
            (true, true)
        );
    }

    #[test]
    fn texts_without_escapes_are_not_copied() {
        let json = read(r#"{"name": "text", "na\u006de": "te\u0078t"}"#);
        let Json::Object(fields) = &json else {
            panic!("an object");
        };
        let is_borrowed = |text: &Cow<'_, str>| matches!(text, Cow::Borrowed(_));
        let of = |value: &Json<'_>| matches!(value, Json::Text(text) if is_borrowed(text));
        assert!(is_borrowed(&fields[0].0) && of(&fields[0].1));
        assert_eq!(
            (&fields[1].0, fields[1].1.text()),
            (&fields[0].0, Some("text"))
        );
    }

    #[test]
    fn what_value_refuses_is_refused() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in ["{", "{\"a\": 1} x", "{\"a\" 1}", "\"\\ud800\"", &deep] {
            assert!(
                serde_json::from_str::<serde_json::Value>(text).is_err(),
                "{text}"
            );
            assert!(serde_json::from_str::<Json<'_>>(text).is_err(), "{text}");
        }
    }
}

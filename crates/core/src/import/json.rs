//! JSON with the members of every object as they stand in the file, so that one that is there twice is seen.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::NotTaken;
use crate::json_fault::fault_at;

/// A value whose objects have their members in order, repeated ones included.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
    /// Anything else.
    Plain(Value),
}

/// A member of an object, unless its name is there twice.
pub type Member = (String, Result<Node, NotTaken>);

impl Node {
    /// The value, if no object in it has a name twice.
    pub fn value(self) -> Result<Value, NotTaken> {
        match self {
            Node::Plain(value) => Ok(value),
            Node::Array(nodes) => nodes.into_iter().map(Node::value).collect(),
            Node::Object(members) => Ok(Value::Object(fields(members)?)),
        }
    }
}

/// The members of an object. A name that is there twice is wrong both times: which one counts is unclear.
pub fn checked(members: Vec<(String, Node)>) -> Vec<Member> {
    let (mut names, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for (name, _) in &members {
        if !names.insert(name.as_str()) {
            twice.insert(name.clone());
        }
    }
    let checked = members.into_iter().map(|(name, node)| {
        let node = if twice.contains(&name) {
            NotTaken::refused("the file has this key more than once")
        } else {
            Ok(node)
        };
        (name, node)
    });
    checked.collect()
}

/// An object that is one entry, or part of one.
pub fn fields(members: Vec<(String, Node)>) -> Result<Map<String, Value>, NotTaken> {
    let mut fields = Map::new();
    for (name, node) in checked(members) {
        let Ok(node) = node else {
            return NotTaken::refused(format!("it has {name} more than once"));
        };
        fields.insert(name, node.value()?);
    }
    Ok(fields)
}

/// What a file or a cell has.
pub fn read(text: &str) -> Result<Node, String> {
    serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| format!("it is not JSON: {}", fault_at(&error)))
}

/// The members of a file's object.
pub fn members(text: &str) -> Result<Vec<Member>, String> {
    match read(text)? {
        Node::Object(members) => Ok(checked(members)),
        _ => Err("it is not a JSON object".to_owned()),
    }
}

/// One object that is one entry.
pub fn object(text: &str) -> Result<Map<String, Value>, NotTaken> {
    match read(text).map_err(NotTaken::Refused)? {
        Node::Object(members) => fields(members),
        _ => NotTaken::refused("it is not a JSON object"),
    }
}

/// A member that is text; null and an empty text are no value.
pub fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, NotTaken> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => NotTaken::refused(format!("its {name} is not a text")),
    }
}

/// The first of these members that is text.
pub fn first<'a>(
    object: &'a Map<String, Value>,
    names: &[&str],
) -> Result<Option<&'a str>, NotTaken> {
    for name in names {
        if let Some(found) = text(object, name)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// A member that must be there.
pub fn needed<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a str, NotTaken> {
    match text(object, name)? {
        Some(text) => Ok(text),
        None => NotTaken::refused(format!("it has no {name}")),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Node;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Node::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Node::Array(nodes))
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Plain(Value::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        let number = Number::from_f64(value);
        Ok(Node::Plain(number.map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }
}

//! JSON objects with their members as they stand in the file, so that one that is there twice is seen.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::NotTaken;
use crate::json_fault::fault_at;

/// The members of an object, in order, repeated ones included.
pub struct Members(pub Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
                text.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Object)
    }
}

/// A member of a file's object, unless its name is there twice.
pub type Member = (String, Result<Value, NotTaken>);

/// The members of a file's object. A name that is there twice is wrong both times: nobody can tell which one counts.
pub fn members(text: &str) -> Result<Vec<Member>, String> {
    let Members(members) = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| format!("it is not a JSON object: {}", fault_at(&error)))?;
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let twice: Vec<String> = names
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0].to_owned())
        .collect();
    let checked = members.into_iter().map(|(name, value)| {
        let value = if twice.contains(&name) {
            NotTaken::refused("the file has this key more than once")
        } else {
            Ok(value)
        };
        (name, value)
    });
    Ok(checked.collect())
}

/// One object that is one entry.
pub fn object(text: &str) -> Result<Map<String, Value>, NotTaken> {
    let members = members(text).map_err(NotTaken::Refused)?;
    members
        .into_iter()
        .map(|(name, value)| match value {
            Ok(value) => Ok((name, value)),
            Err(_) => NotTaken::refused(format!("it has {name} more than once")),
        })
        .collect()
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

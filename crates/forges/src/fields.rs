//! Fields of a payload, by JSON pointer. Any of them may be missing, null or of another type.

use serde_json::Value;
use tenure_core::forge::{Association, Person, Version};
use tenure_core::text;

use crate::unreadable::Unreadable;

/// The longest text stored with an event, in bytes. GitHub allows 65,536 characters.
pub(crate) const LONGEST_TEXT: usize = 128 * 1024;
/// In bytes.
const LONGEST_NAME: usize = 512;
/// The most labels or people that are read.
const MOST_NAMES: usize = 100;

pub(crate) struct Fields(Value);

impl Fields {
    pub fn parse(body: &[u8]) -> Result<Self, Unreadable> {
        let value: Value =
            serde_json::from_slice(body).map_err(|error| Unreadable::NotJson(error.to_string()))?;
        if value.is_object() {
            Ok(Self(value))
        } else {
            Err(Unreadable::NotAnObject)
        }
    }

    pub fn at(&self, path: &str) -> Option<&Value> {
        self.0.pointer(path).filter(|value| !value.is_null())
    }

    pub fn has(&self, path: &str) -> bool {
        self.at(path).is_some()
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// A short text, such as a name.
    pub fn name(&self, path: &str) -> Option<String> {
        let found = self.text(path).filter(|name| !name.is_empty())?;
        Some(text::clipped(found, LONGEST_NAME))
    }

    /// A text that a person wrote, and whether it was truncated.
    pub fn prose(&self, path: &str) -> (String, bool) {
        let whole = self.text(path).unwrap_or_default();
        if whole.len() <= LONGEST_TEXT {
            return (whole.to_owned(), false);
        }
        let mut end = LONGEST_TEXT;
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        (whole[..end].to_owned(), true)
    }

    pub fn number(&self, path: &str) -> Option<u64> {
        self.at(path)?.as_u64()
    }

    pub fn is(&self, path: &str) -> bool {
        self.at(path).and_then(Value::as_bool) == Some(true)
    }

    /// One field of each object in a list.
    pub fn names(&self, path: &str, key: &str) -> Vec<String> {
        let listed = self.at(path).and_then(Value::as_array);
        let listed = listed.map(Vec::as_slice).unwrap_or_default();
        let names = listed.iter().filter_map(|one| one.get(key)?.as_str());
        let clip = |name: &str| text::clipped(name, LONGEST_NAME);
        names.take(MOST_NAMES).map(clip).collect()
    }

    pub fn association(&self, path: &str) -> Option<Association> {
        let told = self.text(path)?.to_ascii_lowercase();
        Association::parse(&told).ok()
    }

    /// The account in an object with `login` or `username`, and `id`.
    pub fn person(&self, path: &str) -> Option<Person> {
        let field = |name: &str| self.name(&format!("{path}/{name}"));
        let login = field("login")
            .or_else(|| field("username"))
            .unwrap_or_default();
        let id = self.number(&format!("{path}/id"));
        let is_bot = self.text(&format!("{path}/type")) == Some("Bot");
        let known = id.is_some() || !login.is_empty();
        known.then_some(Person { login, id, is_bot })
    }

    /// An object's id and modification time, if it has both.
    pub fn version(&self, what: &str, path: &str, changed: &str) -> Option<Version> {
        let id = self.number(&format!("{path}/id"))?;
        let updated_at = self.name(&format!("{path}/{changed}"))?;
        Some(Version {
            id: format!("{what}-{id}"),
            updated_at,
        })
    }
}

/// A commit id; `None` for the all-zero id.
pub(crate) fn commit(fields: &Fields, path: &str) -> Option<String> {
    let name = fields.name(path)?;
    name.bytes().any(|byte| byte != b'0').then_some(name)
}

/// Whether a push deleted its branch.
pub(crate) fn is_deletion(fields: &Fields) -> bool {
    fields.is("/deleted") || (fields.has("/after") && commit(fields, "/after").is_none())
}

//! Fields of a payload, by path (`/issue/user`). Any of them may be missing, null or of another type.

use tenure_core::forge::{Association, Person, Version};
use tenure_core::json_fault::fault_at;
use tenure_core::text;

use crate::json::Json;
use crate::unreadable::Unreadable;

/// The longest text stored with an event, in bytes. GitHub allows 65,536 characters.
pub(crate) const MAX_TEXT: usize = 128 * 1024;
/// In bytes.
const MAX_NAME: usize = 512;
/// The most labels or people that are read.
const MAX_NAMES: usize = 100;

pub(crate) struct Fields<'a>(Json<'a>);

impl<'a> Fields<'a> {
    pub fn parse(body: &'a [u8]) -> Result<Self, Unreadable> {
        let not_json = |error: serde_json::Error| Unreadable::NotJson(fault_at(&error));
        match serde_json::from_slice(body).map_err(not_json)? {
            object @ Json::Object(_) => Ok(Self(object)),
            _ => Err(Unreadable::NotAnObject),
        }
    }

    fn at(&self, path: &str) -> Option<&Json<'a>> {
        let mut parts = path.split('/').skip(1);
        let found = parts.try_fold(&self.0, |value, part| value.get(part));
        found.filter(|value| **value != Json::Null)
    }

    pub fn has(&self, path: &str) -> bool {
        self.at(path).is_some()
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.at(path)?.text()
    }

    /// A short text, such as a name.
    pub fn name(&self, path: &str) -> Option<String> {
        named(self.at(path))
    }

    /// A text that a person wrote, and whether it was truncated.
    pub fn prose(&self, path: &str) -> (String, bool) {
        let whole = self.text(path).unwrap_or_default();
        if whole.len() <= MAX_TEXT {
            return (whole.to_owned(), false);
        }
        let mut end = MAX_TEXT;
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        (whole[..end].to_owned(), true)
    }

    pub fn number(&self, path: &str) -> Option<u64> {
        self.at(path)?.number()
    }

    pub fn is(&self, path: &str) -> bool {
        self.at(path) == Some(&Json::Bool(true))
    }

    /// One field of each object in a list.
    pub fn names(&self, path: &str, key: &str) -> Vec<String> {
        let listed = self.at(path).map(Json::list).unwrap_or_default();
        let names = listed.iter().filter_map(|one| one.get(key)?.text());
        let clip = |name: &str| text::clipped(name, MAX_NAME);
        names.take(MAX_NAMES).map(clip).collect()
    }

    pub fn association(&self, path: &str) -> Option<Association> {
        let told = self.text(path)?.to_ascii_lowercase();
        Association::parse(&told).ok()
    }

    /// The account in an object with `login` or `username`, and `id`.
    pub fn person(&self, path: &str) -> Option<Person> {
        let account = self.at(path)?;
        let login = named(account.get("login"))
            .or_else(|| named(account.get("username")))
            .unwrap_or_default();
        let id = account.get("id").and_then(Json::number);
        let is_bot = account.get("type").and_then(Json::text) == Some("Bot");
        let known = id.is_some() || !login.is_empty();
        known.then_some(Person { login, id, is_bot })
    }

    /// An object's id and modification time, if it has both.
    pub fn version(&self, what: &str, path: &str, changed: &str) -> Option<Version> {
        let object = self.at(path)?;
        let id = object.get("id")?.number()?;
        let updated_at = named(object.get(changed))?;
        Some(Version {
            id: format!("{what}-{id}"),
            updated_at,
        })
    }
}

/// A short text, such as a name, unless it is empty.
fn named(value: Option<&Json<'_>>) -> Option<String> {
    let found = value?.text().filter(|name| !name.is_empty())?;
    Some(text::clipped(found, MAX_NAME))
}

/// A commit id; `None` for the all-zero id.
pub(crate) fn commit(fields: &Fields<'_>, path: &str) -> Option<String> {
    let name = fields.name(path)?;
    name.bytes().any(|byte| byte != b'0').then_some(name)
}

/// Whether a push deleted its branch.
pub(crate) fn is_deletion(fields: &Fields<'_>) -> bool {
    fields.is("/deleted") || (fields.has("/after") && commit(fields, "/after").is_none())
}

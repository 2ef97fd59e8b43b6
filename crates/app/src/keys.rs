//! Keys as they are typed here, for a surface.

use tenure_core::key::{Key, TypedKey};
use tenure_service::answer::{Class, Hint, Problem};

use crate::location;
use crate::place::complete_keys;

/// How many keys one request may name.
pub const MAX_KEYS: usize = 10_000;

/// Parses several keys as typed here; fails if one is malformed.
pub fn keys_here(typed: &[String]) -> Result<Vec<TypedKey>, Problem> {
    let has_path = typed.iter().any(|text| text.starts_with("path:"));
    let host = if has_path {
        location::shared_host()?
    } else {
        None
    };
    complete_keys(typed, host.as_ref())
}

/// The same for one key.
pub fn key_here(typed: &str) -> Result<Key, Problem> {
    let mut read = keys_here(&[typed.to_owned()])?;
    Ok(read.remove(0).key)
}

/// The same for keys of one request, which may name each item only once, and not too many.
pub fn distinct_keys_here(typed: &[String]) -> Result<Vec<TypedKey>, Problem> {
    if typed.len() > MAX_KEYS {
        let count = typed.len();
        let message = format!("{count} items were given; at most {MAX_KEYS} are allowed");
        let hint = Hint::step("pass fewer items");
        return Err(Problem::new(Class::Usage, "usage", message, hint));
    }
    let read = keys_here(typed)?;
    check_distinct(&read)?;
    Ok(read)
}

/// Fails if a key was given twice.
fn check_distinct(read: &[TypedKey]) -> Result<(), Problem> {
    let mut sorted: Vec<&Key> = read.iter().map(|one| &one.key).collect();
    sorted.sort();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(twice) => {
            let message = format!("{} was given twice", twice[0]);
            let hint = Hint::step("pass each item once");
            Err(Problem::new(Class::Usage, "usage", message, hint))
        }
    }
}

//! Fields of a line.

use serde_json::Value;
use tenure_core::id::NativeId;
use tenure_core::run::line::RunLine;
use tenure_core::time::Timestamp;

pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

pub(crate) fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

/// A number that is 0 where it is missing.
pub(crate) fn count(value: &Value, pointer: &str) -> u64 {
    number(value, pointer).unwrap_or(0)
}

/// The sum of numbers, as much as fits.
pub(crate) fn sum(value: &Value, pointers: &[&str]) -> u64 {
    let numbers = pointers.iter().map(|pointer| count(value, pointer));
    numbers.fold(0, u64::saturating_add)
}

/// The conversation that a line names, if the id is one.
pub(crate) fn named(value: &Value, pointer: &str) -> Option<RunLine> {
    let id = NativeId::parse(text(value, pointer)?).ok()?;
    Some(RunLine::Named(id))
}

/// A time in seconds since 1970.
pub(crate) fn epoch(value: &Value, pointer: &str) -> Option<Timestamp> {
    let seconds = value.pointer(pointer)?.as_i64()?;
    Some(Timestamp(seconds.checked_mul(1000)?))
}

//! Parameters of statements.
//!
//! A parameter carries its type also when it is empty, because PostgreSQL is told the type of each one. All whole
//! numbers are 64 bits wide and all flags are 0 or 1, in both engines.

use std::borrow::Cow;

/// A value for a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Text(Option<Cow<'a, str>>),
    Number(Option<i64>),
    Real(Option<f64>),
    Bytes(Option<Cow<'a, [u8]>>),
    /// A list that the statement reads with `json_each`.
    Texts(Vec<String>),
    /// The same for numbers.
    Numbers(Vec<i64>),
    /// How many rows at most; none means all.
    Limit(Option<i64>),
}

impl Value<'_> {
    /// The same value without what it borrows.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Text(text) => Value::Text(text.map(|text| Cow::Owned(text.into_owned()))),
            Self::Number(number) => Value::Number(number),
            Self::Real(number) => Value::Real(number),
            Self::Bytes(bytes) => Value::Bytes(bytes.map(|bytes| Cow::Owned(bytes.into_owned()))),
            Self::Texts(texts) => Value::Texts(texts),
            Self::Numbers(numbers) => Value::Numbers(numbers),
            Self::Limit(limit) => Value::Limit(limit),
        }
    }
}

/// A limit, where zero means all.
pub fn limit_or_all(limit: usize) -> Value<'static> {
    Value::Limit(match limit {
        0 => None,
        limit => i64::try_from(limit).ok(),
    })
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(Cow::Borrowed(text)))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Some(Cow::Owned(text)))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text.map(Cow::Borrowed))
    }
}

impl From<Option<String>> for Value<'_> {
    fn from(text: Option<String>) -> Self {
        Self::Text(text.map(Cow::Owned))
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(text: &'a Option<String>) -> Self {
        Self::from(text.as_deref())
    }
}

impl<'a> From<Option<&'a String>> for Value<'a> {
    fn from(text: Option<&'a String>) -> Self {
        Self::from(text.map(String::as_str))
    }
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(
            impl From<$kind> for Value<'_> {
                fn from(number: $kind) -> Self {
                    Self::Number(Some(i64::from(number)))
                }
            }

            impl From<Option<$kind>> for Value<'_> {
                fn from(number: Option<$kind>) -> Self {
                    Self::Number(number.map(i64::from))
                }
            }
        )*
    };
}

numbers!(i64, i32, u32, bool);

impl From<Option<f64>> for Value<'_> {
    fn from(number: Option<f64>) -> Self {
        Self::Real(number)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Some(Cow::Borrowed(bytes)))
    }
}

impl From<Vec<String>> for Value<'_> {
    fn from(texts: Vec<String>) -> Self {
        Self::Texts(texts)
    }
}

impl From<Vec<i64>> for Value<'_> {
    fn from(numbers: Vec<i64>) -> Self {
        Self::Numbers(numbers)
    }
}

/// The parameters of a statement, in order.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        [$($crate::value::Value::from($value)),*]
    };
}

pub use params;

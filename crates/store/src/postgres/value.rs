//! Parameters of statements.
//!
//! Every parameter is sent with its type, so no statement has to be prepared first: a pooler gives
//! each transaction another connection, on which nothing is prepared. All whole numbers are
//! `bigint` and all texts `text`, in statements as in tables.

use tokio_postgres::types::{ToSql, Type};

/// A value for a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(Option<String>),
    Number(Option<i64>),
    Real(Option<f64>),
    Bytes(Vec<u8>),
    Texts(Vec<String>),
    Numbers(Vec<i64>),
}

impl Value {
    pub(super) fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Text(text) => (text, Type::TEXT),
            Self::Number(number) => (number, Type::INT8),
            Self::Real(number) => (number, Type::FLOAT8),
            Self::Bytes(bytes) => (bytes, Type::BYTEA),
            Self::Texts(texts) => (texts, Type::TEXT_ARRAY),
            Self::Numbers(numbers) => (numbers, Type::INT8_ARRAY),
        }
    }
}

/// PostgreSQL stores every character except NUL.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(storable(text)))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(storable))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::from(text.as_deref())
    }
}

impl From<&Option<String>> for Value {
    fn from(text: &Option<String>) -> Self {
        Self::from(text.as_deref())
    }
}

impl From<Option<&String>> for Value {
    fn from(text: Option<&String>) -> Self {
        Self::from(text.map(String::as_str))
    }
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(
            impl From<$kind> for Value {
                fn from(number: $kind) -> Self {
                    Self::Number(Some(i64::from(number)))
                }
            }

            impl From<Option<$kind>> for Value {
                fn from(number: Option<$kind>) -> Self {
                    Self::Number(number.map(i64::from))
                }
            }
        )*
    };
}

numbers!(i64, i32, u32, bool);

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        Self::Real(number)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<Vec<String>> for Value {
    fn from(texts: Vec<String>) -> Self {
        Self::Texts(texts)
    }
}

impl From<Vec<i64>> for Value {
    fn from(numbers: Vec<i64>) -> Self {
        Self::Numbers(numbers)
    }
}

/// Numbers the parameters of a statement that was assembled from parts: each `?` is the next one.
pub(super) fn numbered(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len() + 16);
    for (number, part) in sql.split('?').enumerate() {
        if number > 0 {
            text.push('$');
            text.push_str(&number.to_string());
        }
        text.push_str(part);
    }
    text
}

/// The parameters of a statement, in order.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::postgres::value::Value::from($value)),*]
    };
}

pub(super) use params;

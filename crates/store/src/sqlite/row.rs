//! Reading a row into values of core.
//!
//! Cells are read in the order of the statement's columns. A cell with an invalid value is damage, reported
//! with table, column and value: it is never skipped and never guessed.

use rusqlite::Row;
use rusqlite::types::ValueRef;
use tenure_core::id::Malformed;
use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;

use crate::misfit;

/// The cells of one row, read from left to right.
pub(super) struct Cells<'a> {
    row: &'a Row<'a>,
    store: &'a str,
    table: &'static str,
    next: usize,
}

impl<'a> Cells<'a> {
    pub(super) fn new(row: &'a Row<'a>, store: &'a str, table: &'static str) -> Self {
        Self {
            row,
            store,
            table,
            next: 0,
        }
    }

    /// The first cell, as the row's name for people.
    pub(super) fn name(&self) -> String {
        match self.row.get_ref(0) {
            Ok(ValueRef::Text(bytes)) => String::from_utf8_lossy(bytes).escape_debug().to_string(),
            Ok(ValueRef::Integer(number)) => number.to_string(),
            _ => "a row without a name".to_owned(),
        }
    }

    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        self.lent_text().map(str::to_owned)
    }

    pub(super) fn maybe_text(&mut self) -> Result<Option<String>, StoreError> {
        Ok(self.maybe_lent_text()?.map(str::to_owned))
    }

    /// A text that one of core's types parses.
    pub(super) fn parsed<T>(
        &mut self,
        parse: impl Fn(&str) -> Result<T, Malformed>,
    ) -> Result<T, StoreError> {
        let text = self.lent_text()?;
        parse(text).map_err(|error| self.bad(&misfit(&error)))
    }

    /// A text that one of core's types parses, or nothing.
    pub(super) fn maybe_parsed<T>(
        &mut self,
        parse: impl Fn(&str) -> Result<T, Malformed>,
    ) -> Result<Option<T>, StoreError> {
        let text = self.maybe_lent_text()?;
        text.map(|text| parse(text).map_err(|error| self.bad(&misfit(&error))))
            .transpose()
    }

    /// A number of a type that may be narrower than the column.
    pub(super) fn number<T: TryFrom<i64>>(&mut self) -> Result<T, StoreError> {
        match self.maybe_number()? {
            Some(number) => Ok(number),
            None => Err(self.bad("nothing instead of a number")),
        }
    }

    /// A number of a type that may be narrower than the column, or nothing.
    pub(super) fn maybe_number<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, StoreError> {
        match self.take()? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => match T::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.bad(&format!("{number}, which is out of range"))),
            },
            other => Err(self.bad(&format!("{} instead of a number", shown(other)))),
        }
    }

    /// A real number, or nothing.
    pub(super) fn maybe_real(&mut self) -> Result<Option<f64>, StoreError> {
        match self.take()? {
            ValueRef::Null => Ok(None),
            ValueRef::Real(number) => Ok(Some(number)),
            other => Err(self.bad(&format!("{} instead of a number", shown(other)))),
        }
    }

    /// Bytes.
    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        match self.take()? {
            ValueRef::Blob(bytes) => Ok(bytes.to_vec()),
            other => Err(self.bad(&format!("{} instead of bytes", shown(other)))),
        }
    }

    /// A flag, stored as 0 or 1.
    pub(super) fn flag(&mut self) -> Result<bool, StoreError> {
        match self.number::<i64>()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.bad(&format!("{other} instead of 0 or 1"))),
        }
    }

    /// The same, or nothing.
    pub(super) fn maybe_flag(&mut self) -> Result<Option<bool>, StoreError> {
        match self.maybe_number::<i64>()? {
            None => Ok(None),
            Some(0) => Ok(Some(false)),
            Some(1) => Ok(Some(true)),
            Some(other) => Err(self.bad(&format!("{other} instead of 0 or 1"))),
        }
    }

    /// A moment of the wall clock.
    pub(super) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.number().map(Timestamp)
    }

    /// A moment of the wall clock, or nothing.
    pub(super) fn maybe_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.maybe_number()?.map(Timestamp))
    }

    /// The row contradicts itself.
    pub(super) fn broken(&self, why: &str) -> StoreError {
        StoreError::Damaged {
            store: self.store.to_owned(),
            why: format!("a row of table {} is invalid ({why})", self.table),
        }
    }

    /// The cell that was read last has an invalid value.
    pub(super) fn bad(&self, holds: &str) -> StoreError {
        let column = self.next.checked_sub(1).and_then(|index| {
            let name = self.row.as_ref().column_name(index);
            name.ok().map(str::to_owned)
        });
        let column = column.unwrap_or_default();
        StoreError::Damaged {
            store: self.store.to_owned(),
            why: format!("table {}, column {column} holds {holds}", self.table),
        }
    }

    /// A text, borrowed from the row.
    fn lent_text(&mut self) -> Result<&'a str, StoreError> {
        match self.maybe_lent_text()? {
            Some(text) => Ok(text),
            None => Err(self.bad("nothing instead of text")),
        }
    }

    fn maybe_lent_text(&mut self) -> Result<Option<&'a str>, StoreError> {
        match self.take()? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(self.bad("text that is not UTF-8")),
            },
            other => Err(self.bad(&format!("{} instead of text", shown(other)))),
        }
    }

    fn take(&mut self) -> Result<ValueRef<'a>, StoreError> {
        let cell = self.row.get_ref(self.next);
        self.next += 1;
        cell.map_err(|error| self.bad(&error.to_string()))
    }
}

/// A value of the wrong type, for people.
fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "nothing".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

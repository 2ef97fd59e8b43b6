//! Reading a row into values of core.
//!
//! Cells are read in the order of the statement's columns. A cell with an invalid value is damage, reported with
//! table, column and value: it is never skipped and never guessed.

use tenure_core::id::{Epoch, Malformed};
use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use crate::misfit;

/// The cells of one row, read from left to right.
pub(super) struct Cells<'a> {
    row: &'a Row,
    store: &'a str,
    table: &'static str,
    /// What is added to every epoch.
    base: i64,
    next: usize,
}

impl<'a> Cells<'a> {
    pub(super) fn new(row: &'a Row, store: &'a str, table: &'static str, base: i64) -> Self {
        Self {
            row,
            store,
            table,
            base,
            next: 0,
        }
    }

    /// The first cell, as the row's name for people.
    pub(super) fn name(&self) -> String {
        let first = self.row.columns().first().map(|column| column.type_());
        match first {
            Some(&Type::TEXT) => match self.row.try_get::<_, Option<&str>>(0) {
                Ok(Some(text)) => text.escape_debug().to_string(),
                _ => "a row without a name".to_owned(),
            },
            Some(&Type::INT8) => match self.row.try_get::<_, Option<i64>>(0) {
                Ok(Some(number)) => number.to_string(),
                _ => "a row without a name".to_owned(),
            },
            _ => "a row without a name".to_owned(),
        }
    }

    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        self.lent_text().map(str::to_owned)
    }

    pub(super) fn maybe_text(&mut self) -> Result<Option<String>, StoreError> {
        Ok(self.take::<&str>()?.map(str::to_owned))
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
        let text = self.take::<&str>()?;
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
        let Some(number) = self.take::<i64>()? else {
            return Ok(None);
        };
        match T::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.bad(&format!("{number}, which is out of range"))),
        }
    }

    /// The epoch of a grant: what is stored, and the base.
    pub(super) fn epoch(&mut self) -> Result<Epoch, StoreError> {
        let stored: i64 = self.number()?;
        match u64::try_from(stored.saturating_add(self.base)) {
            Ok(epoch) => Ok(Epoch(epoch)),
            Err(_) => Err(self.bad(&format!("{stored}, which is out of range"))),
        }
    }

    /// A real number, or nothing.
    pub(super) fn maybe_real(&mut self) -> Result<Option<f64>, StoreError> {
        self.take::<f64>()
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        match self.take::<Vec<u8>>()? {
            Some(bytes) => Ok(bytes),
            None => Err(self.bad("nothing instead of bytes")),
        }
    }

    /// A flag, stored as 0 or 1.
    pub(super) fn flag(&mut self) -> Result<bool, StoreError> {
        match self.maybe_flag()? {
            Some(flag) => Ok(flag),
            None => Err(self.bad("nothing instead of 0 or 1")),
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
        let column = self.next.checked_sub(1);
        let column = column.and_then(|index| self.row.columns().get(index));
        let column = column.map(|column| column.name()).unwrap_or_default();
        StoreError::Damaged {
            store: self.store.to_owned(),
            why: format!("table {}, column {column} holds {holds}", self.table),
        }
    }

    /// A text, borrowed from the row.
    fn lent_text(&mut self) -> Result<&'a str, StoreError> {
        match self.take::<&str>()? {
            Some(text) => Ok(text),
            None => Err(self.bad("nothing instead of text")),
        }
    }

    fn take<T: FromSql<'a>>(&mut self) -> Result<Option<T>, StoreError> {
        let cell = self.row.try_get::<_, Option<T>>(self.next);
        self.next += 1;
        cell.map_err(|error| self.bad(&error.to_string()))
    }
}

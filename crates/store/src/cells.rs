//! Reading a row into values of core.
//!
//! A cell with an invalid value is damage, reported with table, column and value: it is never skipped and never
//! guessed. Rows of a table with a list of columns (`columns.rs`) are read by name, others from left to right.

use tenure_core::id::{Epoch, Malformed};
use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;

/// What a cell contains, as an engine hands it over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Content<'a> {
    Nothing,
    Number(i64),
    Real(f64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
}

/// A row of an engine's answer.
pub trait ColumnSource {
    /// What a column contains, or why it cannot be read.
    fn content(&self, index: usize) -> Result<Content<'_>, String>;

    /// The name of a column.
    fn column(&self, index: usize) -> String;
}

/// A row, and where it is from.
#[derive(Clone, Copy)]
pub struct RowOf<'a> {
    source: &'a dyn ColumnSource,
    store: &'a str,
    table: &'static str,
    /// What is added to every epoch.
    base: i64,
}

impl<'a> RowOf<'a> {
    pub fn new(
        source: &'a dyn ColumnSource,
        store: &'a str,
        table: &'static str,
        base: i64,
    ) -> Self {
        Self {
            source,
            store,
            table,
            base,
        }
    }

    /// The row contradicts itself.
    pub fn broken(&self, why: &str) -> StoreError {
        StoreError::Damaged {
            store: self.store.to_owned(),
            why: format!("a row of table {} is invalid ({why})", self.table),
        }
    }

    /// The first cell, as the row's name for people.
    pub fn name(&self) -> String {
        match self.source.content(0) {
            Ok(Content::Text(bytes)) => String::from_utf8_lossy(bytes).escape_debug().to_string(),
            Ok(Content::Number(number)) => number.to_string(),
            _ => "a row without a name".to_owned(),
        }
    }
}

/// The cells of one row, read from left to right.
pub struct Cells<'a> {
    row: RowOf<'a>,
    next: usize,
}

impl<'a> Cells<'a> {
    pub fn new(row: RowOf<'a>) -> Self {
        Self { row, next: 0 }
    }

    pub fn row(&self) -> RowOf<'a> {
        self.row
    }

    /// The next cell.
    pub fn cell(&mut self) -> RowCell<'a> {
        let index = self.next;
        self.next += 1;
        RowCell {
            row: self.row,
            index,
        }
    }
}

/// Reads the next cell with a method of [`RowCell`].
macro_rules! next_cell {
    ($($(#[$doc:meta])* $name:ident -> $answer:ty;)*) => {
        impl<'a> Cells<'a> {
            $(
                $(#[$doc])*
                pub fn $name(&mut self) -> Result<$answer, StoreError> {
                    self.cell().$name()
                }
            )*
        }
    };
}

next_cell! {
    text -> String;
    maybe_text -> Option<String>;
    bytes -> Vec<u8>;
    flag -> bool;
    time -> Timestamp;
    maybe_time -> Option<Timestamp>;
    maybe_real -> Option<f64>;
    epoch -> Epoch;
}

impl Cells<'_> {
    pub fn parsed<T>(
        &mut self,
        parse: impl Fn(&str) -> Result<T, Malformed>,
    ) -> Result<T, StoreError> {
        self.cell().parsed(parse)
    }

    pub fn number<T: TryFrom<i64>>(&mut self) -> Result<T, StoreError> {
        self.cell().number()
    }

    pub fn maybe_number<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, StoreError> {
        self.cell().maybe_number()
    }
}

/// One cell of a row.
#[derive(Clone, Copy)]
pub struct RowCell<'a> {
    row: RowOf<'a>,
    index: usize,
}

impl<'a> RowCell<'a> {
    pub fn text(self) -> Result<String, StoreError> {
        self.lent_text().map(str::to_owned)
    }

    pub fn maybe_text(self) -> Result<Option<String>, StoreError> {
        Ok(self.maybe_lent_text()?.map(str::to_owned))
    }

    /// A text that one of core's types parses.
    pub fn parsed<T>(self, parse: impl Fn(&str) -> Result<T, Malformed>) -> Result<T, StoreError> {
        let text = self.lent_text()?;
        parse(text).map_err(|error| self.bad(&misfit(&error)))
    }

    /// A text that one of core's types parses, or nothing.
    pub fn maybe_parsed<T>(
        self,
        parse: impl Fn(&str) -> Result<T, Malformed>,
    ) -> Result<Option<T>, StoreError> {
        let text = self.maybe_lent_text()?;
        text.map(|text| parse(text).map_err(|error| self.bad(&misfit(&error))))
            .transpose()
    }

    /// A number of a type that may be narrower than the column.
    pub fn number<T: TryFrom<i64>>(self) -> Result<T, StoreError> {
        match self.maybe_number()? {
            Some(number) => Ok(number),
            None => Err(self.bad("nothing instead of a number")),
        }
    }

    /// A number of a type that may be narrower than the column, or nothing.
    pub fn maybe_number<T: TryFrom<i64>>(self) -> Result<Option<T>, StoreError> {
        match self.content()? {
            Content::Nothing => Ok(None),
            Content::Number(number) => match T::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.bad(&format!("{number}, which is out of range"))),
            },
            other => Err(self.bad(&format!("{} instead of a number", shown(other)))),
        }
    }

    /// A kernel number, stored bit for bit as a signed one.
    pub fn kernel_number(self) -> Result<Option<u64>, StoreError> {
        Ok(self.maybe_number::<i64>()?.map(i64::cast_unsigned))
    }

    /// The epoch of a grant: what is stored, and the base.
    pub fn epoch(self) -> Result<Epoch, StoreError> {
        let stored: i64 = self.number()?;
        match u64::try_from(stored.saturating_add(self.row.base)) {
            Ok(epoch) => Ok(Epoch(epoch)),
            Err(_) => Err(self.bad(&format!("{stored}, which is out of range"))),
        }
    }

    /// A real number, or nothing.
    pub fn maybe_real(self) -> Result<Option<f64>, StoreError> {
        match self.content()? {
            Content::Nothing => Ok(None),
            Content::Real(number) => Ok(Some(number)),
            other => Err(self.bad(&format!("{} instead of a number", shown(other)))),
        }
    }

    pub fn bytes(self) -> Result<Vec<u8>, StoreError> {
        match self.content()? {
            Content::Bytes(bytes) => Ok(bytes.to_vec()),
            other => Err(self.bad(&format!("{} instead of bytes", shown(other)))),
        }
    }

    /// A flag, stored as 0 or 1.
    pub fn flag(self) -> Result<bool, StoreError> {
        match self.maybe_flag()? {
            Some(flag) => Ok(flag),
            None => Err(self.bad("nothing instead of a number")),
        }
    }

    /// The same, or nothing.
    pub fn maybe_flag(self) -> Result<Option<bool>, StoreError> {
        match self.maybe_number::<i64>()? {
            None => Ok(None),
            Some(0) => Ok(Some(false)),
            Some(1) => Ok(Some(true)),
            Some(other) => Err(self.bad(&format!("{other} instead of 0 or 1"))),
        }
    }

    /// A moment of the wall clock.
    pub fn time(self) -> Result<Timestamp, StoreError> {
        self.number().map(Timestamp)
    }

    /// A moment of the wall clock, or nothing.
    pub fn maybe_time(self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.maybe_number()?.map(Timestamp))
    }

    /// The row contradicts itself.
    pub fn broken(self, why: &str) -> StoreError {
        self.row.broken(why)
    }

    /// The cell has an invalid value.
    pub fn bad(self, holds: &str) -> StoreError {
        let column = self.row.source.column(self.index);
        StoreError::Damaged {
            store: self.row.store.to_owned(),
            why: format!("table {}, column {column} holds {holds}", self.row.table),
        }
    }

    /// A text, borrowed from the row.
    fn lent_text(self) -> Result<&'a str, StoreError> {
        match self.maybe_lent_text()? {
            Some(text) => Ok(text),
            None => Err(self.bad("nothing instead of text")),
        }
    }

    fn maybe_lent_text(self) -> Result<Option<&'a str>, StoreError> {
        match self.content()? {
            Content::Nothing => Ok(None),
            Content::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(self.bad("text that is not UTF-8")),
            },
            other => Err(self.bad(&format!("{} instead of text", shown(other)))),
        }
    }

    fn content(self) -> Result<Content<'a>, StoreError> {
        let content = self.row.source.content(self.index);
        content.map_err(|why| self.bad(&why))
    }
}

/// What a column holds that one of core's types does not parse.
fn misfit(error: &Malformed) -> String {
    let Malformed { what, value, why } = error;
    format!("{value:?}, which is not a valid {what} ({why})")
}

/// A value of the wrong type, for people.
fn shown(content: Content<'_>) -> String {
    match content {
        Content::Nothing => "nothing".to_owned(),
        Content::Number(number) => number.to_string(),
        Content::Real(number) => number.to_string(),
        Content::Text(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        Content::Bytes(bytes) => format!("{} bytes", bytes.len()),
    }
}

//! One list of columns per table: SELECT, INSERT, UPDATE and the reader are made from it.
//!
//! [`columns!`] makes a struct with one field per column. With [`Value`](crate::value::Value) in its fields it is what a
//! statement writes, with [`RowCell`](crate::cells::RowCell) what a statement read. A column that is missing in either place
//! does not compile, and no place knows a column by its position.
//!
//! `key` are columns that find the row, `set` those that change, `same` those that an update compares. A table with a
//! `key` also has a column `revision`, which an update compares and raises.

/// Makes the struct, its statements and the macro that selects from the table. The first token is a dollar sign, which
/// the inner macro needs.
macro_rules! columns {
    ($d:tt $(#[$doc:meta])* $row:ident of $table:literal by $select:ident {
        key { $($key:ident),+ $(,)? }
        set { $($set:ident),* $(,)? }
        same { $($same:ident),* $(,)? }
    }) => {
        columns! { @row $d $(#[$doc])* $row of $table by $select { $($key,)* $($set,)* $($same,)* revision } }
        columns! { @insert $row of $table { $($set,)* $($same,)* $($key,)* revision } }

        impl $row<()> {
            /// Replaces a row if its revision and the columns under `same` are as given, and raises the revision.
            pub(crate) const UPDATE: &'static str = concat!(
                "UPDATE ", $table, " SET ", $(stringify!($set), " = ?, ",)* "revision = revision + 1 WHERE ",
                $(stringify!($same), " IS ? AND ",)* $(stringify!($key), " = ? AND ",)* "revision = ?"
            );

            /// The same, and also sets the columns under `same`.
            #[allow(dead_code)]
            pub(crate) const REPLACE: &'static str = concat!(
                "UPDATE ", $table, " SET ", $(stringify!($set), " = ?, ",)* $(stringify!($same), " = ?, ",)*
                "revision = revision + 1 WHERE ", $(stringify!($key), " = ? AND ",)* "revision = ?"
            );
        }
    };
    ($d:tt $(#[$doc:meta])* $row:ident of $table:literal by $select:ident {
        $($column:ident),* $(,)?
    }) => {
        columns! { @row $d $(#[$doc])* $row of $table by $select { $($column),* } }
        columns! { @insert $row of $table { $($column),* } }
    };
    (@row $d:tt $(#[$doc:meta])* $row:ident of $table:literal by $select:ident { $first:ident $(, $rest:ident)* }) => {
        $(#[$doc])*
        pub(crate) struct $row<V> {
            pub(crate) $first: V,
            $(pub(crate) $rest: V,)*
        }

        impl<'a> $row<$crate::cells::RowCell<'a>> {
            /// The columns of a row, in the order in which they are selected.
            #[allow(dead_code)]
            pub(crate) fn read(cells: &mut $crate::cells::Cells<'a>) -> Self {
                Self {
                    $first: cells.cell(),
                    $($rest: cells.cell(),)*
                }
            }
        }

        #[allow(unused_macros)]
        macro_rules! $select {
            (columns $d prefix:literal) => {
                concat!($d prefix, stringify!($first), $(", ", $d prefix, stringify!($rest),)*)
            };
            ($d($d rest:expr),* $d(,)?) => {
                concat!("SELECT ", stringify!($first), $(", ", stringify!($rest),)* " FROM ", $table, " ", $d($d rest),*)
            };
        }
    };
    (@insert $row:ident of $table:literal { $first:ident $(, $rest:ident)* }) => {
        impl $row<()> {
            /// Adds a row; one that is in its way is a conflict.
            #[allow(dead_code)]
            pub(crate) const INSERT: &'static str = concat!(
                "INSERT INTO ", $table, " (", stringify!($first), $(", ", stringify!($rest),)* ") VALUES (?",
                $(columns!(@hole $rest),)* ") ON CONFLICT DO NOTHING"
            );
        }

        impl<'a> $row<$crate::value::Value<'a>> {
            /// The values in the order of the statements.
            #[allow(dead_code)]
            pub(crate) fn values(self) -> Vec<$crate::value::Value<'a>> {
                vec![self.$first, $(self.$rest,)*]
            }
        }
    };
    (@hole $column:ident) => { ", ?" };
}

pub(crate) use columns;

//! The kinds of an error type, which scripts match on, in one table.

/// Makes `kind`, and `KINDS` with all that it can answer, from a table. Below the semicolon are errors that have a kind of
/// their own.
#[macro_export]
macro_rules! kinds {
    ($($of:pat => $kind:literal,)* $(; $($inner:pat => $own:expr,)*)?) => {
        /// All kinds but those of the errors inside, in the order of the table.
        pub const KINDS: &'static [&'static str] = &[$($kind),*];

        /// The kind, for scripts.
        pub fn kind(&self) -> &'static str {
            match self {
                $($of => $kind,)*
                $($($inner => $own,)*)?
            }
        }
    };
}

//! Results that are ignored on purpose.
//!
//! This is the only way to ignore one, so a search for `.ignore(` finds all of them, each with its reason.

pub trait Ignore {
    /// Ignores a failure: `why` says what makes up for it, or why nothing can be done.
    fn ignore(self, why: &'static str);
}

impl<T, E> Ignore for Result<T, E> {
    fn ignore(self, _why: &'static str) {}
}

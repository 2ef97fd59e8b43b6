//! Refusals that end a job: its request is not permitted, now or later.

use tenure_core::key::Key;
use tenure_service::answer::{Class, Hint, Problem};

pub(super) const NOT_PERMITTED: &str = "not_permitted";

pub(super) fn refused(item: &Key, why: &dyn std::fmt::Display) -> Problem {
    let message = format!("{item} is not run: {why}");
    let hint = Hint::step("ask for it again to permit what is there now");
    Problem::new(Class::Refused, NOT_PERMITTED, message, hint)
}

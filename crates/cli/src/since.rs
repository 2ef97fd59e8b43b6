//! `--since` of the verbs that look back.

use tenure_core::time::{Span, Timestamp};
use tenure_service::answer::{Class, Hint};

use crate::output::CliError;

/// A span before now, or a moment.
pub fn since(text: &str, verb: &'static str) -> Result<Timestamp, CliError> {
    if let Ok(Span(span)) = text.parse::<Span>() {
        return Ok(tenure_host::clock::wall().minus(span));
    }
    text.parse::<Timestamp>().map_err(|_| {
        let message = format!("--since {text:?} is neither a duration nor a time");
        let why = "for the last two hours; a time looks like 2026-11-15T08:00:00Z";
        let hint = Hint::run(verb, ["--since", "2h"], why);
        CliError::new(Class::Usage, "usage", message, hint)
    })
}

//! Why someone did something: text that a reader of the log can see.
//!
//! Acting for another session, a takeover and an announced silence need a reason. A reason that is blank or has
//! only invisible characters is refused when it is parsed and cannot reach a use case. The text is stored as
//! given, except for white space at its ends.

use std::fmt;
use std::str::FromStr;

use crate::id::Malformed;
use crate::visible::has_visible;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason(String);

impl Reason {
    /// The longest reason, in characters.
    pub const MAX_LENGTH: usize = 1_000;

    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let bad = |why: String| Err(Malformed::new("reason", text, why));
        let stated = text.trim();
        if !has_visible(stated) {
            return bad("it has no visible characters".into());
        }
        let length = stated.chars().count();
        if length > Self::MAX_LENGTH {
            let most = Self::MAX_LENGTH;
            return bad(format!(
                "it has {length} characters; at most {most} are allowed"
            ));
        }
        Ok(Self(stated.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Reason {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::parse(text)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_shows_something() {
        for text in [
            "stuck",
            "x",
            "  stuck since yesterday\n",
            "夜間",
            "ü",
            "👍",
            "a\u{200B}",
        ] {
            assert!(Reason::parse(text).is_ok(), "{text:?}");
        }
        assert_eq!(Reason::parse(" so it is\n").unwrap().as_str(), "so it is");
    }

    #[test]
    fn what_shows_nothing_is_no_reason() {
        for text in [
            "",
            " ",
            "\t\n",
            "\u{A0}",
            "\u{200B}",
            "\u{FEFF}\u{2060}",
            "\u{202E}",
            "\u{AD}",
            "\u{3164}",
            "\u{2800} \u{115F}",
            "\u{FE0F}",
            "\u{301}",
            "\u{E0041}",
            "\u{7}\u{1B}",
            "\u{2028}",
        ] {
            let error = Reason::parse(text).unwrap_err();
            assert_eq!(error.what, "reason", "{text:?}");
        }
    }

    #[test]
    fn a_reason_has_at_most_a_thousand_characters() {
        assert!(Reason::parse(&"ü".repeat(1_000)).is_ok());
        let error = Reason::parse(&"ü".repeat(1_001)).unwrap_err();
        assert!(error.why.contains("1001 characters"), "{error}");
    }
}

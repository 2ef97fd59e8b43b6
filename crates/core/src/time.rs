//! Time as the store reports it.
//!
//! Two kinds of time never mix. A [`Timestamp`] is wall-clock time: it is shown to people and decides nothing.
//! A [`Deadline`] is on the store's own monotonic clock (CLOCK_MONOTONIC for SQLite, the server's clock for
//! PostgreSQL) and is the only time that may free or hold anything. Moving the wall clock therefore changes
//! what is shown, never who holds what.
//!
//! A monotonic clock restarts with its era (a boot). A deadline of an earlier era has passed, with one
//! exception: an era that is private to a container cannot be ordered against another, and a deadline that
//! cannot be compared is never taken as passed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The window of budgets and of what is capped by day.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

use serde::{Deserialize, Serialize};

use crate::id::Malformed;

/// Wall-clock time in milliseconds since 1970, for people only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The moment this much earlier.
    #[must_use]
    pub fn minus(self, span: Duration) -> Timestamp {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_sub(millis))
    }

    /// The moment this much later.
    #[must_use]
    pub fn plus(self, span: Duration) -> Timestamp {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_add(millis))
    }

    /// How long before `later` this was; zero if the wall clock moved back.
    pub fn age_at(self, later: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "@{}ms", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        text.parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_millisecond()))
            .map_err(|_| {
                Malformed::new(
                    "time",
                    text,
                    "expected RFC 3339 with a zone, such as 2026-11-15T08:00:00Z",
                )
            })
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

/// The span of one monotonic clock: a boot of a kernel, or a database server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Era {
    /// Its identity, such as the boot id.
    pub id: String,
    /// Whether the identity is a container's own, so that another era gives no order.
    pub private: bool,
}

/// The current time, as the store reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Now {
    /// Wall-clock time, for display.
    pub wall: Timestamp,
    /// The era of `steady`.
    pub era: Era,
    /// Milliseconds on the era's monotonic clock.
    pub steady: i64,
}

impl Now {
    /// The moment `span` from now.
    pub fn after(&self, span: Duration) -> Deadline {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Deadline {
            era: self.era.clone(),
            at: self.steady.saturating_add(millis),
        }
    }
}

/// A moment on the store's monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    /// The era whose clock `at` belongs to.
    pub era: Era,
    /// Milliseconds of that clock.
    pub at: i64,
}

/// A deadline relative to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remaining {
    /// It is this far away.
    Open(Duration),
    /// It passed this long ago (as far as the current era can tell).
    Over(Duration),
    /// The clocks can't be compared; nothing follows.
    CannotTell,
}

impl Deadline {
    /// Compares this deadline with now.
    pub fn remaining(&self, now: &Now) -> Remaining {
        if self.era != now.era {
            return if self.era.private || now.era.private {
                Remaining::CannotTell
            } else {
                Remaining::Over(Duration::MAX)
            };
        }
        let left = self.at.saturating_sub(now.steady);
        let span = Duration::from_millis(left.unsigned_abs());
        if left > 0 {
            Remaining::Open(span)
        } else {
            Remaining::Over(span)
        }
    }

    /// The later of two deadlines in one era; across eras, the other one.
    #[must_use]
    pub fn or_later(self, other: Deadline) -> Deadline {
        if self.era == other.era && self.at > other.at {
            self
        } else {
            other
        }
    }
}

/// A length of time as people type it: `500ms`, `90s`, `5m`, `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// The longest span that any setting accepts.
    pub const MAX: Duration = Duration::from_secs(366 * 24 * 3600);
}

impl FromStr for Span {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let bad = |why: &str| Malformed::new("duration", text, why);
        let days = text.strip_suffix('d').and_then(|d| d.parse::<u32>().ok());
        let length = match days {
            Some(days) => Duration::from_secs(u64::from(days) * 24 * 3600),
            None => {
                let parsed: jiff::SignedDuration = text.parse().map_err(|_| {
                    bad("expected a number with a unit, such as 500ms, 90s, 5m, 1h30m or 2d")
                })?;
                Duration::try_from(parsed).map_err(|_| bad("it is negative"))?
            }
        };
        if length > Self::MAX {
            return Err(bad("it is longer than 366 days"));
        }
        Ok(Self(length))
    }
}

impl fmt::Display for Span {
    /// The largest one or two units: `4h10m`, `3m`, `12s`, `250ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if seconds == 0 {
            return write!(f, "{}ms", self.0.subsec_millis());
        }
        let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
        let first = units
            .iter()
            .position(|(size, _)| seconds >= *size)
            .unwrap_or(3);
        let (size, unit) = units[first];
        write!(f, "{}{unit}", seconds / size)?;
        match units.get(first + 1) {
            Some((next, name)) if seconds % size >= *next && first < 2 => {
                write!(f, "{}{name}", seconds % size / next)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(era: &str, private: bool, steady: i64) -> Now {
        Now {
            wall: Timestamp(0),
            era: Era {
                id: era.into(),
                private,
            },
            steady,
        }
    }

    #[test]
    fn f_l11_the_wall_clock_decides_nothing() {
        let mut at = now("boot", false, 1_000);
        let deadline = at.after(Duration::from_millis(500));
        at.wall = Timestamp(i64::MAX / 2);
        assert_eq!(
            deadline.remaining(&at),
            Remaining::Open(Duration::from_millis(500))
        );
        at.steady = 1_600;
        at.wall = Timestamp(-5);
        assert_eq!(
            deadline.remaining(&at),
            Remaining::Over(Duration::from_millis(100))
        );
    }

    #[test]
    fn a_deadline_of_another_boot_is_over_unless_a_boot_id_is_private() {
        let deadline = now("one", false, 0).after(Duration::from_secs(60));
        assert!(matches!(
            deadline.remaining(&now("two", false, 0)),
            Remaining::Over(_)
        ));
        assert_eq!(
            deadline.remaining(&now("two", true, 0)),
            Remaining::CannotTell
        );
    }

    #[test]
    fn a_renewal_never_shortens() {
        let at = now("boot", false, 0);
        let long = at.after(Duration::from_secs(100));
        let short = at.after(Duration::from_secs(1));
        assert_eq!(long.clone().or_later(short), long);
    }

    #[test]
    fn spans_read_as_people_write_them() {
        for (text, millis) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(
                text.parse::<Span>().map(|s| s.0.as_millis()),
                Ok(millis),
                "{text}"
            );
        }
        for bad in ["", "5", "-5m", "100y", "9999999d", "abc", "5 m x", "∞"] {
            assert!(bad.parse::<Span>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn spans_are_shown_short() {
        for (secs, text) in [
            (0, "0ms"),
            (12, "12s"),
            (200, "3m"),
            (3_600, "1h"),
            (15_000, "4h10m"),
            (180_000, "2d2h"),
        ] {
            assert_eq!(Span(Duration::from_secs(secs)).to_string(), text);
        }
    }
}

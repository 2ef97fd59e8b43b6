//! Times for people: in their own time zone, and as short as possible.

use jiff::tz::TimeZone;

use crate::time::Timestamp;

/// A person's time zone.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Zone {
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// A zone from the file of a time zone database.
    pub fn of_file(bytes: &[u8]) -> Option<Self> {
        TimeZone::tzif("local", bytes).ok().map(Self)
    }

    /// A zone in POSIX notation, such as `CET-1CEST,M3.5.0,M10.5.0/3`.
    pub fn spelt_out(text: &str) -> Option<Self> {
        TimeZone::posix(text).ok().map(Self)
    }

    /// The date there, as `2026-11-19`; the first day of 1970 for a time that no calendar has.
    pub fn date(&self, at: Timestamp) -> String {
        let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
        at.to_zoned(self.0.clone()).date().to_string()
    }

    /// The time of day for today, with the date for this year, else only the date.
    pub fn short(&self, at: Timestamp, now: Timestamp) -> String {
        let local = |time: Timestamp| {
            let time = jiff::Timestamp::from_millisecond(time.0).ok()?;
            Some(time.to_zoned(self.0.clone()))
        };
        let (Some(at_here), Some(now)) = (local(at), local(now)) else {
            return at.to_string();
        };
        let form = if at_here.date() == now.date() {
            "%H:%M:%S"
        } else if at_here.year() == now.year() {
            "%b %d %H:%M"
        } else {
            "%Y-%m-%d"
        };
        at_here.strftime(form).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(zone: &str, at: &str, now: &str) -> String {
        let zone = Zone::spelt_out(zone).unwrap();
        zone.short(at.parse().unwrap(), now.parse().unwrap())
    }

    #[test]
    fn a_time_is_as_short_as_it_can_be_told() {
        let now = "2026-11-16T02:30:00Z";
        assert_eq!(short("UTC0", "2026-11-16T01:02:03.456Z", now), "01:02:03");
        assert_eq!(short("UTC0", "2026-11-15T23:02:03Z", now), "Nov 15 23:02");
        assert_eq!(short("UTC0", "2025-11-15T23:02:03Z", now), "2025-11-15");
        // Two hours further east it was today.
        assert_eq!(short("<+02>-2", "2026-11-15T23:02:03Z", now), "01:02:03");
    }

    #[test]
    fn a_date_is_that_of_the_zone() {
        let date = |zone: &str, at: &str| Zone::spelt_out(zone).unwrap().date(at.parse().unwrap());
        assert_eq!(date("UTC0", "2026-11-15T23:02:03Z"), "2026-11-15");
        assert_eq!(date("<+02>-2", "2026-11-15T23:02:03Z"), "2026-11-16");
        assert_eq!(Zone::utc().date(Timestamp(i64::MAX)), "1970-01-01");
    }

    #[test]
    fn a_time_that_no_calendar_has_is_shown_all_the_same() {
        let zone = Zone::utc();
        let far = Timestamp(i64::MAX);
        assert_eq!(zone.short(far, Timestamp(0)), far.to_string());
        assert!(Zone::of_file(b"nonsense").is_none());
        assert!(Zone::spelt_out("no zone at all").is_none());
    }
}

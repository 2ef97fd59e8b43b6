//! The time: wall-clock time to show, monotonic time to decide by.
//!
//! Monotonic time is CLOCK_MONOTONIC without any time namespace's offset, so that processes inside and outside
//! of one agree. It stops while the machine is suspended and restarts with each boot; the era identifies the
//! boot. Moving the wall clock changes only what is shown.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tenure_core::keeper::BootTime;
use tenure_core::local_time::Zone;
use tenure_core::process::BootId;
use tenure_core::time::{Era, Now, Timestamp};

use crate::{env, read, system};

/// The zone of the machine.
const LOCAL_ZONE: &str = "/etc/localtime";
/// Where zones are looked up by name.
const ZONES: &str = "/usr/share/zoneinfo";
/// Longer than any zone file.
const MAX_ZONE: u64 = 1 << 20;

/// The time in this boot.
pub fn now(boot: &BootId) -> Now {
    Now {
        wall: wall(),
        era: Era {
            id: boot.id.clone(),
            private: boot.private,
        },
        steady: system::steady_millis(),
    }
}

/// The wall-clock time, only to show.
pub fn wall() -> Timestamp {
    timestamp(SystemTime::now())
}

/// The time zone of the user; UTC if unknown.
pub fn zone() -> Zone {
    let named = env::var("TZ").and_then(|named| named.into_string().ok());
    let of_file = |path: &Path| Zone::of_file(&read::whole(path, MAX_ZONE).ok()?);
    let found = match named.as_deref().map(|named| named.trim_start_matches(':')) {
        None => of_file(Path::new(LOCAL_ZONE)),
        Some("") => None,
        // Joining an absolute path keeps it.
        Some(named) => of_file(&Path::new(ZONES).join(named)).or_else(|| Zone::spelt_out(named)),
    };
    found.unwrap_or_else(Zone::utc)
}

/// The time since this machine booted, sleep included.
pub fn since_boot() -> BootTime {
    let millis = system::boot_millis().max(0).unsigned_abs();
    BootTime(Duration::from_millis(millis))
}

/// The monotonic time, for deadlines and durations within this process.
pub fn instant() -> Instant {
    Instant::now()
}

/// This time as it is stored.
pub fn timestamp(time: SystemTime) -> Timestamp {
    let millis = |span: std::time::Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    Timestamp(match time.duration_since(UNIX_EPOCH) {
        Ok(since) => millis(since),
        Err(before) => -millis(before.duration()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_l11_a_wall_clock_before_1970_is_shown_not_fatal() {
        assert_eq!(
            timestamp(UNIX_EPOCH - Duration::from_millis(7)),
            Timestamp(-7)
        );
        assert_eq!(
            timestamp(UNIX_EPOCH + Duration::from_millis(7)),
            Timestamp(7)
        );
    }

    #[test]
    fn steady_time_never_goes_back() {
        let boot = BootId {
            id: "b".into(),
            private: true,
        };
        let first = now(&boot);
        let second = now(&boot);
        assert!(second.steady >= first.steady && first.steady > 0);
        assert_eq!(first.era, second.era);
        assert!(first.era.private);
    }
}

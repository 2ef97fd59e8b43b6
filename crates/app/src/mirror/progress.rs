//! How far the mirrors of this machine follow the log of a store, in one small file.
//!
//! *Crash, or a file that is lost*: every live session is checked, and what changed is written again.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tenure_core::id::Cursor;
use tenure_core::time::Timestamp;
use tenure_host::file;

/// How long files of other sessions go unchecked, in milliseconds.
const CHECKED_EVERY: i64 = 10_000;

#[derive(Debug, Default)]
pub struct Progress {
    /// The newest event whose changes were written.
    pub events: Option<Cursor>,
    /// When the files of all live sessions were last checked.
    pub checked: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
struct StoredProgress {
    store: String,
    events: u64,
    checked: i64,
}

impl Progress {
    /// What was kept for this store; nothing if the file is missing, torn or another store's.
    pub fn read(path: &Path, store: &str) -> Self {
        let text = file::read_plain(path).ok().flatten();
        let kept = text.and_then(|text| serde_json::from_str::<StoredProgress>(&text).ok());
        kept.filter(|kept| kept.store == store)
            .map(|kept| Self {
                events: Some(Cursor(kept.events)),
                checked: Some(Timestamp(kept.checked)),
            })
            .unwrap_or_default()
    }

    /// Whether all files have to be checked again. A clock that was set back counts as a reason.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let age = |checked: Timestamp| now.0.saturating_sub(checked.0);
        let fresh = |checked| (0..CHECKED_EVERY).contains(&age(checked));
        !self.checked.is_some_and(fresh)
    }

    pub fn write(&self, path: &Path, store: &str) -> io::Result<()> {
        let kept = StoredProgress {
            store: store.to_owned(),
            events: self.events.unwrap_or(Cursor(0)).0,
            checked: self.checked.unwrap_or(Timestamp(0)).0,
        };
        let text = serde_json::to_string(&kept).unwrap_or_default();
        file::write_private(path, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_checked_again_after_ten_seconds_and_after_a_clock_that_was_set_back() {
        let at = |checked: Option<i64>| Progress {
            events: None,
            checked: checked.map(Timestamp),
        };
        for (checked, now, is_due) in [
            (None, 5, true),
            (Some(100), 100, false),
            (Some(100), 10_099, false),
            (Some(100), 10_100, true),
            (Some(100), 99, true),
        ] {
            assert_eq!(
                at(checked).is_due(Timestamp(now)),
                is_due,
                "{checked:?} {now}"
            );
        }
    }
}

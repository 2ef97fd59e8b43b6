//! Since when the agent of a run waits for its provider, stored next to the log for all readers.
//!
//! The runner writes the file when the wait begins and when the reason changes, and removes it when
//! the wait is over. It counts only while the runner is alive, because a killed runner leaves it
//! behind.

use serde::{Deserialize, Serialize};
use tenure_core::ignore::Ignore;
use tenure_core::run::progress::WaitReport;
use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_service::view::{ProviderWait, RunView};

use super::files::RunFiles;

/// Longer than the file.
const MAX_LENGTH: u64 = 64 << 10;

#[derive(Serialize, Deserialize)]
struct StoredWait {
    since: i64,
    why: String,
}

/// The content of the file, as its runner last wrote it.
#[derive(Debug, Default)]
pub(super) struct ReportedWait(Option<WaitReport>);

impl ReportedWait {
    /// Writes the file if something changed.
    pub fn tell(&mut self, files: &RunFiles, waiting: Option<&WaitReport>) {
        if self.0.as_ref() == waiting {
            return;
        }
        self.0 = waiting.cloned();
        let file = files.waiting();
        let done = match waiting {
            Some(waiting) => {
                let kept = StoredWait {
                    since: waiting.since.0,
                    why: waiting.why.clone(),
                };
                let bytes = serde_json::to_vec(&kept).unwrap_or_default();
                tenure_host::file::write_private(&file, &bytes)
            }
            None => fs_err::remove_file(&file),
        };
        done.ignore("the file is only for people; on a full disk they see the run as working");
    }
}

/// Since when the agent of these files waits, and why.
pub(super) fn read(files: &RunFiles) -> Option<ProviderWait> {
    let kept = tenure_host::read::text(&files.waiting(), MAX_LENGTH).ok()?;
    let kept: StoredWait = serde_json::from_str(&kept).ok()?;
    Some(ProviderWait {
        since: Timestamp(kept.since),
        why: text::line(&kept.why).into_owned(),
    })
}

/// Adds to each run whether its agent waits.
pub fn look<'a>(runs: impl IntoIterator<Item = &'a mut RunView>) {
    for run in runs {
        let listens = run.state == "running" && run.runner.as_deref() == Some("live");
        if let (true, Some(log)) = (listens, &run.log) {
            run.waiting = read(&RunFiles::at(log));
        }
    }
}

//! The generation of what a keeper has recorded, in a file that hooks read before they ask it ([`tenure_core::settled`]).
//!
//! It is another with each life of a keeper, and with each event that said something new, before that event is answered.
//! What other commands and other machines store does not move it: the keeper itself answers plain events from memory for
//! a beat, and a note is good for no longer.
//!
//! *Crash*: a keeper that is killed between a commit and the new generation leaves notes that end with the beat; its
//! successor has a new generation. *Clock jump*: no clock is read. *Older version*: one without the file leaves no notes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::id::KeeperId;
use tenure_core::ignore::Ignore;
use tenure_core::settled::Generation;
use tenure_host::{file, random, read};

use super::files::KeeperFiles;

/// No generation is longer.
const MAX_LENGTH: u64 = 256;

/// The generations of one life, never one twice.
#[derive(Debug, Clone)]
pub struct Generations {
    path: PathBuf,
    life: String,
    last: Arc<AtomicU64>,
}

impl Generations {
    pub fn begin(files: &KeeperFiles, life: &KeeperId) -> io::Result<Self> {
        let this = Self {
            path: files.generation(),
            life: life.to_string(),
            last: Arc::default(),
        };
        this.write()?;
        Ok(this)
    }

    /// Something new was recorded.
    pub fn raise(&self) {
        self.write().ignore("notes end with the beat");
    }

    fn write(&self) -> io::Result<()> {
        // Two at once may arrive in another order. Neither was there before.
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let line = format!("{} {number:020}\n", self.life);
        file::write_private(&self.path, line.as_bytes())
    }
}

/// Begins a generation of no keeper, which ends all that is settled: an event that said something new was not answered, so
/// nobody knows here whether and when it is recorded.
pub fn begin_unknown(files: &KeeperFiles) {
    let name = random::secret();
    let written = name.and_then(|name| {
        let line = format!("{name}\n");
        file::write_private(&files.generation(), line.as_bytes())
    });
    written.ignore("notes end with the beat");
}

/// The generation of the keeper that runs, or ran last; none while it is written.
pub fn generation(files: &KeeperFiles) -> Option<Generation> {
    let text = read::text(&files.generation(), MAX_LENGTH).ok()?;
    text.ends_with('\n').then_some(Generation(text))
}

//! The order of a runner that takes a job: only the job's id.

use std::io;

use serde::{Deserialize, Serialize};
use tenure_core::id::{JobId, RunId};
use tenure_core::queue::choose::Limits;

use super::files::RunFiles;
use tenure_app::read_json::read_json;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOrder {
    pub run: String,
    pub job: String,
    pub concurrency: usize,
}

const MAX_LENGTH: u64 = 64 << 10;

impl JobOrder {
    pub fn new(run: &RunId, job: &JobId, limits: &Limits) -> Self {
        Self {
            run: run.to_string(),
            job: job.to_string(),
            concurrency: limits.concurrency,
        }
    }

    pub fn write(&self, files: &RunFiles) -> io::Result<()> {
        tenure_host::file::write_private(&files.job(), &serde_json::to_vec(self)?)
    }

    pub(super) fn read(files: &RunFiles) -> io::Result<Self> {
        let text = tenure_host::read::whole(&files.job(), MAX_LENGTH)?;
        read_json(&text)
    }
}

//! A job for the tests of this folder. Those of other crates have `tenure_testkit::conformance::sample`, which is made of
//! another build of this crate.

use super::code::JobCode;
use super::{Caps, Job, JobAsk, JobSpec, JobState, JobWorkdir, Trust};
use crate::id::{AgentName, JobId, WorkerRole};
use crate::key::Key;
use crate::time::Timestamp;

/// A dispatched job that waits.
pub(super) fn job(created_at: Timestamp) -> Job {
    let item = Key::stored("issue:acme/web#6").unwrap();
    Job {
        id: JobId::mint([0; 16]),
        agent: AgentName::known("claude"),
        role: WorkerRole::default(),
        root: item.clone(),
        item,
        rule: Some("fix".to_owned()),
        trust: Trust::Trusted,
        repo: None,
        spec: JobSpec {
            ask: JobAsk::Text("do it".to_owned()),
            workdir: JobWorkdir {
                dir: "/work".to_owned(),
                worktree: false,
            },
            args: Vec::new(),
            env: Vec::new(),
            wrap: Vec::new(),
            exclusive: false,
            fresh: false,
            shares_dir: false,
            timeout_ms: None,
            caps: Caps::default(),
            dispatched: true,
            trusted_repo: false,
            code: JobCode::default(),
        },
        state: JobState::Queued,
        attempt: 0,
        failures: 0,
        failure: None,
        taken: None,
        run: None,
        parked: None,
        not_before: None,
        by: None,
        created_at,
        end: None,
        unpublished: None,
        published: None,
        revision: 1,
    }
}

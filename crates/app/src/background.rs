//! Sessions that an agent's own service keeps running without a window.
//!
//! tenure never works against such a service. Its sessions are opened and ended only with the
//! agent's own commands, and never resumed in any other way, because the service starts them again.
//! Everything is read on demand; a missing or unknown file gives no answer.

use std::ffi::OsString;

use tenure_agents::{Adapter, Background, BackgroundJob};
use tenure_core::id::NativeId;
use tenure_core::process::Process;
use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_core::witness::Subject;
use tenure_service::view::SessionView;

use crate::witness::registry;

/// A session that such a service keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundSession {
    /// The service's name for people.
    pub service: &'static str,
    /// The agent's own command that opens it in a terminal.
    pub attach: Vec<OsString>,
    /// The agent's own command that ends it and keeps its conversation.
    pub stop: Vec<OsString>,
}

impl BackgroundSession {
    fn of(background: &Background, job: &str) -> Self {
        Self {
            service: background.service,
            attach: background.attach(job),
            stop: background.stop(job),
        }
    }
}

/// The job of a live process, if a service of its agent runs it.
pub fn job(adapter: &Adapter, process: &Process) -> Option<BackgroundJob> {
    let background = adapter.background.as_ref()?;
    background.job(&registry::text_of(adapter, process)?)
}

/// How to open and end a live process, if a service of its agent runs it.
pub fn running(agent: &str, process: &Process) -> Option<BackgroundSession> {
    let adapter = tenure_agents::adapter(agent)?;
    let job = job(adapter, process)?;
    Some(BackgroundSession::of(
        adapter.background.as_ref()?,
        &job.name,
    ))
}

/// How to open and end a conversation that a service of its agent keeps, whether or not it runs
/// now.
pub fn kept(agent: &str, conversation: &NativeId) -> Option<BackgroundSession> {
    let adapter = tenure_agents::adapter(agent)?;
    let background = adapter.background.as_ref()?;
    let roster = registry::own_file(adapter, background.roster)?;
    let job = background.kept(&roster, conversation)?;
    let state = registry::own_file(adapter, &background.job_file(&job));
    let is_over = state.is_some_and(|state| background.is_over(&state));
    (!is_over).then(|| BackgroundSession::of(background, &job))
}

/// The same for the view of a session.
pub fn kept_session(session: &SessionView) -> Option<BackgroundSession> {
    let conversation = NativeId::parse(session.native_id.as_deref()?).ok()?;
    kept(&session.agent, &conversation)
}

/// When a person ended the job of a session that is over, with the agent's own command.
pub(crate) fn stopped_at(subject: &Subject) -> Option<Timestamp> {
    let adapter = tenure_agents::adapter(subject.agent.as_str())?;
    let (background, conversation) = (adapter.background.as_ref()?, subject.native_id.as_ref()?);
    let file = background.job_file(&background.job_of(conversation)?);
    background.stopped_at(&registry::own_file(adapter, &file)?, conversation)
}

/// A command line as a person types it.
pub fn typed(line: &[OsString]) -> String {
    let words = line.iter().map(|word| text::shell(&word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}

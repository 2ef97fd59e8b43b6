//! The title of a session in its agent's own files.

use std::path::Path;

use tenure_agents::own_title;
use tenure_core::witness::Subject;
use tenure_host::read;

/// How many bytes at the end of a transcript are read: agents repeat titles there, and read no more
/// themselves.
const TAIL: u64 = 64 * 1024;

/// The title in the transcript.
pub(super) fn own_title(subject: &Subject) -> Option<String> {
    let agent = subject.agent.as_str();
    let (path, conversation) = (subject.transcript.as_ref()?, subject.native_id.as_ref()?);
    if own_title::is_in_transcripts(agent) {
        let tail = read::tail(Path::new(path), TAIL).ok()?;
        own_title::in_transcript(agent, conversation, &tail)
    } else {
        None
    }
}

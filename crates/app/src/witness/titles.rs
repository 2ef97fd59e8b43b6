//! The title of a session in its agent's own files.

use std::path::Path;

use tenure_agents::{Adapter, own_title};
use tenure_core::id::NativeId;
use tenure_core::process::Process;
use tenure_core::witness::Subject;
use tenure_host::read;

use super::registry;

/// How many bytes at the end of a transcript are read: agents repeat titles there, and read no more
/// themselves.
const TAIL: u64 = 64 * 1024;

/// The title in the transcript.
pub(super) fn own_title(subject: &Subject) -> Option<String> {
    let (path, conversation) = (subject.transcript.as_ref()?, subject.native_id.as_ref()?);
    in_transcript(subject.agent.as_str(), path, conversation)
}

/// What the agent above the caller calls a conversation now: the name that its user gave it, or its own.
pub fn current(
    adapter: &Adapter,
    process: &Process,
    conversation: &NativeId,
    transcript: Option<&str>,
) -> Option<String> {
    let entry = registry::entry_here(adapter, process);
    let entry = entry.filter(|entry| entry.native_id.as_ref() == Some(conversation));
    entry
        .and_then(|entry| entry.title)
        .or_else(|| in_transcript(adapter.name, transcript?, conversation))
}

fn in_transcript(agent: &str, path: &str, conversation: &NativeId) -> Option<String> {
    if own_title::is_in_transcripts(agent) {
        let tail = read::tail(Path::new(path), TAIL).ok()?;
        own_title::in_transcript(agent, conversation, &tail)
    } else {
        None
    }
}

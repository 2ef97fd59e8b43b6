//! What was said last in a session's conversation, read from its agent's own file while a person looks.

use std::path::Path;

use tenure_agents::last_words;
use tenure_host::read;
use tenure_service::Vouched;
use tenure_service::view::{LastWordsView, SessionView};

use crate::open::Context;

/// How many bytes at the end of the file are read: agents write long notes of their own between two answers.
const TAIL: u64 = 1 << 20;

/// Adds them to a session of this machine. A file that is absent or not understood adds nothing.
pub fn add(context: &mut Context, session: &mut SessionView) {
    let Some(agent) = tenure_agents::adapter(&session.agent) else {
        return;
    };
    if session.host.is_some() || session.native_id.is_none() {
        return;
    }
    let Ok(answer) = context.service().transcript(&session.id) else {
        return;
    };
    let Vouched::File(file) = answer.value else {
        return;
    };
    let Ok(tail) = read::tail(Path::new(&file.path), TAIL) else {
        return;
    };
    let last = last_words::in_transcript(agent, &tail);
    if last != last_words::LastWords::default() {
        session.last_words = Some(LastWordsView {
            prompt: last.prompt,
            words: last.words,
        });
    }
}

//! What an agent's transcript shows about a turn that no event reports.

use std::path::{Path, PathBuf};

use tenure_agents::turn_records;
use tenure_core::session::Doing;
use tenure_core::witness::{OwnReport, Subject};
use tenure_host::read;

/// What the transcript shows about a session, if it can show anything.
pub(super) fn own_word(subject: &Subject) -> Option<OwnReport> {
    let records = tenure_agents::adapter(subject.agent.as_str())?.turn_records?;
    let path = Path::new(subject.transcript.as_deref()?);
    let tail = read::tail(path, records.tail).ok()?;
    Some(turn_records::report(&records, &tail))
}

/// The agent's registry, with what only its transcript knows: that requests fail, and until when it is limited.
pub(super) fn completed(registry: OwnReport, subject: &Subject) -> OwnReport {
    let asks = matches!(registry.doing, Some(Doing::Busy | Doing::Idle));
    let Some(chat) = asks.then(|| own_word(subject)).flatten() else {
        return registry;
    };
    let knows_more = match chat.doing {
        Some(Doing::Retrying) => registry.doing == Some(Doing::Busy),
        Some(Doing::Failed | Doing::Limited) => registry.doing == Some(Doing::Idle),
        _ => false,
    };
    if !knows_more {
        return registry;
    }
    OwnReport {
        title: registry.title,
        tells: registry.tells,
        ..chat
    }
}

/// The folder whose files change when a session comes to rest without an event.
pub fn folder_of(agent: &str, transcript: Option<&str>) -> Option<PathBuf> {
    tenure_agents::adapter(agent)?.turn_records?;
    Path::new(transcript?).parent().map(Path::to_owned)
}

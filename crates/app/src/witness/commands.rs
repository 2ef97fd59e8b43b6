//! The commands of an agent that asked a person and does not tell when it is answered.

use tenure_core::agent;
use tenure_core::time::Timestamp;
use tenure_core::witness::Subject;
use tenure_host::{clock, commands};

/// When the newest command of this conversation that runs now began. Nothing is looked at for any other session.
pub(super) fn newest(subject: &Subject) -> Option<Timestamp> {
    if !subject.asks_silently {
        return None;
    }
    let variable = agent::spec_of(&subject.agent)?.id_variable?;
    let id = (variable, subject.native_id.as_ref()?.as_str());
    let processes = [Some(&subject.process), subject.daemon.as_ref()];
    let age = processes
        .into_iter()
        .flatten()
        .filter_map(|process| commands::newest(process, id))
        .min()?;
    let millis = i64::try_from(age.as_millis()).ok()?;
    Some(Timestamp(clock::wall().0.saturating_sub(millis)))
}

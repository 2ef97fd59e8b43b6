//! The commands of an agent that asked a person and does not report the answer.

use tenure_core::agent;
use tenure_core::time::Timestamp;
use tenure_core::witness::Subject;
use tenure_host::clock;
use tenure_host::commands::{self, Of};

/// When the newest running command of this conversation started. Other sessions are not checked.
pub(super) fn newest(subject: &Subject) -> Option<Timestamp> {
    if !subject.asks_silently {
        return None;
    }
    let variable = agent::spec_of(&subject.agent)?.id_variable?;
    let id = subject.native_id.as_ref()?.as_str();
    let of = |shared: bool| Of {
        variable,
        id,
        shared,
    };
    let own = commands::newest(&subject.process, of(false));
    let daemons = subject.daemon.as_ref();
    let daemons = daemons.and_then(|daemon| commands::newest(daemon, of(true)));
    let age = own.into_iter().chain(daemons).min()?;
    let millis = i64::try_from(age.as_millis()).ok()?;
    Some(Timestamp(clock::wall().0.saturating_sub(millis)))
}

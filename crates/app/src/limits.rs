//! Until when a session's provider accepts no requests: from the agent's own file, or else from what it reported.

use std::path::Path;

use tenure_agents::turn_records::{self, CONTINUES};
use tenure_core::session::Doing;
use tenure_core::time::Timestamp;
use tenure_host::read;
use tenure_service::Vouched;
use tenure_service::view::SessionView;

use crate::open::Context;

/// The usage limit of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimit {
    pub until: Timestamp,
    /// Whether its agent, while it lives, then continues by itself.
    pub continues: bool,
}

/// The usage limit of a session of this machine, over or not, if its last turn ended with one whose end was named.
pub fn of(context: &mut Context, session: &SessionView) -> Option<SessionLimit> {
    if session.host.is_some() {
        return None;
    }
    in_transcript(context, session).or_else(|| {
        let until = session.activity_until?;
        let is_limited = session.activity == Some(Doing::Limited.as_str());
        is_limited.then(|| SessionLimit {
            until,
            continues: says_so(session.activity_why.as_deref()),
        })
    })
}

fn in_transcript(context: &mut Context, session: &SessionView) -> Option<SessionLimit> {
    let records = tenure_agents::adapter(&session.agent)?.turn_records?;
    session.native_id.as_ref()?;
    let Vouched::File(file) = context.service().transcript(&session.id).ok()?.value else {
        return None;
    };
    let tail = read::tail(Path::new(&file.path), records.tail).ok()?;
    let report = turn_records::report(&records, &tail);
    let is_limited = report.doing == Some(Doing::Limited);
    Some(SessionLimit {
        until: report.until.filter(|_| is_limited)?,
        continues: says_so(report.why.as_deref()),
    })
}

fn says_so(why: Option<&str>) -> bool {
    why.is_some_and(|why| why.ends_with(CONTINUES))
}

//! Waiting in the foreground until a usage limit ends.

use std::time::Duration;

use tenure_app::limits::{self, SessionLimit};
use tenure_app::open::Context;
use tenure_core::time::Timestamp;
use tenure_host::{clock, pause};
use tenure_service::ListRequest;
use tenure_service::answer::{Class, Hint};
use tenure_service::view::SessionView;

use crate::output::CliError;
use crate::sink;

/// The clock may be set, and the machine may sleep.
const LOOKS_EVERY: Duration = Duration::from_secs(10);

/// A session whose provider accepts no requests.
pub(super) struct Limited {
    pub session: SessionView,
    limit: SessionLimit,
}

impl Limited {
    /// That nobody needs to resume it, if its agent lives and then continues by itself.
    pub fn continues(&self) -> Option<String> {
        let lives = matches!(self.session.state, "live" | "stalled");
        (lives && self.limit.continues).then(|| {
            let (handle, at) = (&self.session.handle, shown(self.limit.until));
            format!("{handle} is limited until {at} and then continues by itself")
        })
    }

    /// Waits until its limit ends.
    pub fn wait(&self) {
        let until = self.limit.until;
        let left = || clock::wall().age_at(until);
        if left().is_zero() {
            return;
        }
        let handle = &self.session.handle;
        sink::mention(&format!(
            "waiting until {} for the usage limit of {handle} to end",
            shown(until)
        ));
        while !left().is_zero() {
            pause::sleep(left().min(LOOKS_EVERY));
        }
    }

    /// Looks again after a wait: whether its limit was extended. One that now continues by itself is not waited for.
    pub fn is_still_limited(&mut self, context: &mut Context) -> bool {
        let listed = context.service().list(&ListRequest::default()).ok();
        let mut sessions = listed.into_iter().flat_map(|listed| listed.value.items);
        if let Some(session) = sessions.find(|session| session.id == self.session.id) {
            self.session = session;
        }
        let Some(limit) = limits::of(context, &self.session) else {
            return false;
        };
        self.limit = limit;
        limit.until > clock::wall() && self.continues().is_none()
    }
}

fn shown(at: Timestamp) -> String {
    clock::zone().short(at, clock::wall())
}

/// A session by its name, with its limit.
pub(super) fn named(context: &mut Context, name: &str) -> Result<Limited, CliError> {
    let session = context.service().show(name)?.value.session;
    let Some(limit) = limits::of(context, &session) else {
        let message = format!(
            "{} did not end its last turn with a usage limit whose end is known",
            session.handle
        );
        let hint = Hint::run("resume", [&session.handle], "to resume it now");
        return Err(CliError::new(Class::Refused, "not_limited", message, hint));
    };
    Ok(Limited { session, limit })
}

/// The sessions that live, or were cut off within a day, and are limited now; those whose limit ends first come first.
pub(super) fn all(context: &mut Context) -> Result<Vec<Limited>, CliError> {
    let sessions = context.service().list(&ListRequest::default())?.value.items;
    let now = clock::wall();
    let mut limited: Vec<Limited> = sessions
        .into_iter()
        .filter_map(|session| {
            let limit = limits::of(context, &session)?;
            (limit.until > now).then_some(Limited { session, limit })
        })
        .collect();
    limited.sort_by_key(|one| one.limit.until);
    Ok(limited)
}

/// Takes the one whose limit ends first.
pub(super) fn take_first(waiting: &mut Vec<Limited>) -> Option<Limited> {
    let first = (0..waiting.len()).min_by_key(|place| waiting[*place].limit.until)?;
    Some(waiting.remove(first))
}

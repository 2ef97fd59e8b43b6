//! What is different about each forge: its row.

use tenure_core::forge::{EventKind, ForgeEvent};
use tenure_core::time::Timestamp;

use crate::headers::Headers;
use crate::proof::{Secret, is_signed};
use crate::unreadable::Unreadable;

/// A delivery as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    pub headers: &'a Headers,
    pub body: &'a [u8],
    pub now: Timestamp,
}

#[derive(Debug)]
pub struct Forge {
    /// Its name in the settings.
    pub kind: &'static str,
    /// Whether its events tell what somebody is to the repository.
    pub tells_associations: bool,
    /// Events that rules know and this forge does not send.
    pub never_sends: &'static [EventKind],
    /// Forges whose event header may come in its place.
    pub(crate) also: &'static [&'static str],
    pub(crate) is_genuine: fn(&Received<'_>, &[Secret]) -> bool,
    /// Headers with an id that is the same when one event is delivered again, if the forge has that.
    pub(crate) delivery: &'static [&'static str],
    /// Headers with the name of the event.
    pub event_headers: &'static [&'static str],
    pub(crate) read: fn(&Headers, &[u8]) -> Result<Option<ForgeEvent>, Unreadable>,
    /// Where a person enters the webhook, what to choose there, and which events.
    pub setup: &'static [&'static str],
}

/// The event headers, in the order in which they tell forges apart.
const MARKS: [(&str, &str); 4] = [
    ("x-forgejo-event", "forgejo"),
    ("x-gitea-event", "gitea"),
    ("x-gitlab-event", "gitlab"),
    ("x-github-event", "github"),
];

/// No id of a delivery is longer.
const LONGEST_ID: usize = 128;

impl Forge {
    /// Whether one of the secrets proves that the forge sent this. The body must be said to be JSON, because
    /// Forgejo signs something other than the body of a form.
    pub fn verify(&self, received: &Received<'_>, secrets: &[Secret]) -> bool {
        let genuine = (self.is_genuine)(received, secrets);
        genuine & received.headers.says_json()
    }

    /// Whether the headers name this forge and no other.
    pub fn agrees(&self, headers: &Headers) -> bool {
        let named = MARKS.iter().find(|(header, _)| headers.has(header));
        named.is_some_and(|(_, kind)| *kind == self.kind || self.also.contains(kind))
    }

    /// The id of the delivery, unique for an endpoint.
    pub fn delivery_id(&self, headers: &Headers) -> Option<String> {
        let id = headers.first(self.delivery)?;
        let plain = |byte: u8| byte.is_ascii_graphic();
        let fits = !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(plain);
        fits.then(|| id.to_owned())
    }

    /// What a genuine delivery means; none where nothing can come of it.
    pub fn read(&self, headers: &Headers, body: &[u8]) -> Result<Option<ForgeEvent>, Unreadable> {
        (self.read)(headers, body)
    }
}

/// The work of a refusal, for an endpoint without a forge: its answer must not come sooner than others.
pub fn refuse(received: &Received<'_>) -> bool {
    is_signed(&[], &[received.body], None)
}

//! How each forge differs: its row.

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

pub type SentHeaders = Vec<(&'static str, String)>;

#[derive(Debug)]
pub struct Forge {
    /// Its name in the settings.
    pub kind: &'static str,
    /// Whether its events include a person's association with the repository.
    pub tells_associations: bool,
    /// Events that rules can name and this forge never sends.
    pub never_sends: &'static [EventKind],
    /// The user name that git sends with a token that belongs to no person, if the forge defines one.
    pub token_user: Option<&'static str>,
    /// Where the head of pull request N is: `refs/THIS/N/head`.
    pub pull_refs: &'static str,
    /// Other forges whose event header is accepted in place of its own.
    pub(crate) also: &'static [&'static str],
    pub(crate) is_genuine: fn(&Received<'_>, &[Secret]) -> bool,
    /// Headers with an id that stays the same when an event is delivered again, if the forge has
    /// one.
    pub(crate) delivery: &'static [&'static str],
    /// Headers with the name of the event.
    pub event_headers: &'static [&'static str],
    /// All headers that [`Forge::read`] looks at.
    pub(crate) read_headers: &'static [&'static str],
    pub(crate) read: fn(&Headers, &[u8]) -> Result<Option<ForgeEvent>, Unreadable>,
    /// The names of events that [`Forge::read`] can use.
    pub(crate) events: &'static [&'static str],
    /// The headers that prove that a body is genuine.
    pub(crate) sign: fn(&Secret, &[u8], Timestamp) -> SentHeaders,
    /// Where a person sets up the webhook, what to choose there, and which events.
    pub setup: &'static [&'static str],
}

/// The event headers, in the order in which they identify a forge.
const MARKS: [(&str, &str); 4] = [
    ("x-forgejo-event", "forgejo"),
    ("x-gitea-event", "gitea"),
    ("x-gitlab-event", "gitlab"),
    ("x-github-event", "github"),
];

/// The longest id of a delivery.
const MAX_ID: usize = 128;

impl Forge {
    /// Whether one of the secrets proves that the forge sent this. The content type must be JSON,
    /// because for a form Forgejo signs something other than the body.
    pub fn verify(&self, received: &Received<'_>, secrets: &[Secret]) -> bool {
        let genuine = (self.is_genuine)(received, secrets);
        genuine & received.headers.says_json()
    }

    /// Whether the headers name this forge and no other.
    pub fn agrees(&self, headers: &Headers) -> bool {
        let named = MARKS.iter().find(|(header, _)| headers.has(header));
        named.is_some_and(|(_, kind)| *kind == self.kind || self.also.contains(kind))
    }

    /// The id of the delivery, unique per endpoint.
    pub fn delivery_id(&self, headers: &Headers) -> Option<String> {
        let id = headers.first(self.delivery)?;
        let plain = |byte: u8| byte.is_ascii_graphic();
        let fits = !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(plain);
        fits.then(|| id.to_owned())
    }

    /// The meaning of a genuine delivery; `None` if it can have no effect.
    pub fn read(&self, headers: &Headers, body: &[u8]) -> Result<Option<ForgeEvent>, Unreadable> {
        (self.read)(headers, body)
    }

    /// The headers that the meaning of a body depends on: with these alone it is read as the same.
    pub fn naming(&self, headers: &Headers) -> Headers {
        headers.only(self.read_headers)
    }

    /// The same for a body that was stored without its headers: the event of this kind that it can
    /// be.
    pub fn read_again(&self, kind: &str, body: &[u8]) -> Option<ForgeEvent> {
        let header = self.event_headers.first()?;
        self.events.iter().find_map(|name| {
            let headers = Headers::from_iter([(header, name)]);
            let event = self.read(&headers, body).ok().flatten()?;
            (event.kind.as_str() == kind).then_some(event)
        })
    }

    /// A genuine delivery that has no effect.
    pub fn test_delivery(&self, secret: &Secret, now: Timestamp) -> TestDelivery {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        let event = self.event_headers.first();
        headers.extend(event.map(|header| (*header, TEST_EVENT.to_owned())));
        headers.extend((self.sign)(secret, TEST_BODY.as_bytes(), now));
        TestDelivery {
            headers,
            body: TEST_BODY,
        }
    }
}

/// No forge has an event with this name that [`Forge::read`] accepts without a repository.
const TEST_EVENT: &str = "ping";
const TEST_BODY: &str = r#"{"object_kind":"ping","from":"tenure dispatch ping"}"#;

/// A delivery as the forge would send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestDelivery {
    pub headers: SentHeaders,
    pub body: &'static str,
}

/// Does the work of a refusal, for an endpoint that does not exist: its answer must not come sooner
/// than others.
pub fn refuse(received: &Received<'_>) -> bool {
    is_signed(&[], &[received.body], None)
}

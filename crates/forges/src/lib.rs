//! The forges: whether a webhook of each is genuine, how it is told from another, and what it means.
//!
//! Pure but for [`api`], which asks a forge over HTTPS: headers and bytes come in, a
//! [`tenure_core::forge::ForgeEvent`] goes out. A new forge needs a file with its row, a line in [`FORGES`], and a
//! file in `api`.
//!
//! *Order*: [`Forge::verify`] looks at the raw bytes and comes before anything parses them. A delivery that is not
//! genuine is answered the same and costs the same whatever is wrong with it ([`refuse`] for an endpoint that does
//! not exist). *Header agreement*: Forgejo and Gitea send the headers of GitHub as well, so the endpoint says which
//! forge is meant and the header only must not name another ([`Forge::agrees`]).

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod api;
mod fields;
mod forge;
mod forgejo;
mod github;
mod gitlab;
mod headers;
mod hub;
mod proof;
mod unreadable;

pub use forge::{Forge, Received, TestDelivery, refuse};
pub use headers::Headers;
pub use proof::Secret;
pub use unreadable::Unreadable;

/// Every forge that tenure understands.
pub static FORGES: &[Forge] = &[forgejo::FORGEJO, forgejo::GITEA, github::ROW, gitlab::ROW];

/// The forge of this kind.
pub fn forge(kind: &str) -> Option<&'static Forge> {
    FORGES.iter().find(|forge| forge.kind == kind)
}

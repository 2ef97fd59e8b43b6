//! The forges: whether a webhook is genuine, which forge sent it, and what it means.
//!
//! Everything is pure: headers and bytes come in, a [`tenure_core::forge::ForgeEvent`] goes out. [`api`] is the interface of
//! a forge that is asked; the crate `tenure-dispatch` has what asks over HTTPS. A new forge needs a file with its row, a
//! line in [`FORGES`], and a file in that crate's `api`.
//!
//! *Order*: [`Forge::verify`] checks the raw bytes before anything parses them. A delivery that is
//! not genuine gets the same answer at the same cost, whatever is wrong with it ([`refuse`] for an
//! endpoint that does not exist). *Header agreement*: Forgejo and Gitea also send GitHub's headers,
//! so the endpoint decides which forge is meant, and the headers only must not name another one
//! ([`Forge::agrees`]).

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod api;
mod fields;
mod forge;
mod forgejo;
mod github;
mod gitlab;
mod headers;
mod hub;
mod json;
mod proof;
mod unreadable;

pub use forge::{Forge, Received, TestDelivery, refuse};
pub use headers::Headers;
pub use proof::Secret;
pub use unreadable::Unreadable;

/// Every forge that tenure understands.
pub static FORGES: &[Forge] = &[forgejo::FORGEJO, forgejo::GITEA, github::ROW, gitlab::ROW];

pub fn forge(kind: &str) -> Option<&'static Forge> {
    FORGES.iter().find(|forge| forge.kind == kind)
}

/// Fetches from the refs in which a forge keeps the head of a pull request, for callers that do not know which forge a
/// remote is: tries the name that most have, then the others. If none works, the first error counts.
pub fn fetch_pull<T, E>(fetch: impl Fn(&str) -> Result<T, E>) -> Result<T, E> {
    let mut names = pull_refs();
    let usual = names.next().unwrap_or_default();
    fetch(usual).or_else(|first| names.find_map(|name| fetch(name).ok()).ok_or(first))
}

/// The names of the refs in which forges keep the heads of pull requests, the most common first.
pub fn pull_refs() -> impl Iterator<Item = &'static str> {
    let usual = FORGES[0].pull_refs;
    let others = FORGES.iter().map(|forge| forge.pull_refs);
    std::iter::once(usual).chain(others.filter(move |name| *name != usual))
}

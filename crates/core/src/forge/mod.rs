//! What a forge reports, in one form for all of them.
//!
//! A webhook of Forgejo, Gitea, GitHub or GitLab becomes a [`ForgeEvent`] (crate `tenure-forges` reads them). It
//! names its item by a claim key in canonical form, so that an event, a claim and a conversation of one issue
//! have one name. Texts are kept as people wrote them; [`text`] finds mentions, commands and references in them.
//!
//! *Older version*: a job keeps its events. A field that an older version did not write gets its default.

mod event;
mod item;
mod kind;
pub mod text;
mod thread;

pub use event::{CodePlace, ForgeEvent, Person, Pull, Version};
pub use item::{branch_item, issue_item, pull_item, worktree_issue};
pub use kind::{Association, EventKind, Permission, ReviewState};
pub use thread::{Thread, ThreadComment};

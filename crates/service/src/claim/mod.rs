//! The acts on claims. Each one checks, decides and writes in one transaction.
//!
//! [`tenure_core::claim::decide`] is the rule for granting. This module gathers its inputs in order (the asker,
//! the key's newest hold, whether its holder is alive) and then makes one grant or one refusal.

mod acquire;
mod acts;
mod child;
mod choice;
mod grant;
mod guard;
mod items;
mod list;
mod regrant;
mod request;
mod rivals;
mod timeline;
pub mod view;
mod waiter;
mod why;

pub(crate) use child::{ClaimOutcome, GrantableKeys, ask, grant, pass_over};
pub(crate) use guard::covering_hold;
pub(crate) use list::claims;

pub use grant::end_by_lease;
pub use regrant::regrant;
pub use request::{
    CheckOutcome, ChildRequest, ChildTurn, ClaimRequest, Grant, GuardRequest, HandoffRequest, Pick,
    ReleaseRequest, TakeoverRequest, Wait, WaitingCaller,
};
pub use timeline::TimelineRequest;
pub use why::Why;

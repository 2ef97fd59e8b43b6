//! Missions: joining, leaving, pointing, changing, looking and checking.
//!
//! [`tenure_core::mission`] holds the rules. Before a participant acts its own row is checked: one that breaks a
//! rule changes nothing. Others' rows are shown with what is wrong with them. Leaving always works.

mod act;
mod check;
mod context;
mod pick;
mod request;
mod roster;
pub mod view;

pub use context::{Bearings, Membership, Verified};
pub use request::{
    ChangeRequest, Changed, Here, JoinRequest, Joined, Left, PointRequest, Pointed, Whose,
};
pub use roster::Roster;

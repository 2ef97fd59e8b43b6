//! Missions: joining, leaving, pointing, changing, viewing and checking.
//!
//! [`tenure_core::mission`] has the rules. A participant's own row is checked before it acts; an invalid row
//! changes nothing. Rows of others are shown with their faults. Leaving always works.

mod act;
mod check;
mod context;
mod pick;
mod request;
mod roster;
pub mod view;

pub use context::{Membership, MissionContext, Verified};
pub use request::{
    ChangeRequest, JoinRequest, JoinResult, LeaveResult, MissionChangeResult, MissionPlace,
    PointRequest, PointResult, PointerOwner,
};
pub use roster::Roster;

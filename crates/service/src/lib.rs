//! The use cases, each in one transaction.
//!
//! A surface builds a request, calls one method of [`Service`], and renders what comes back. The service
//! alone begins and commits transactions. A use case is a closure over a context that may be run several
//! times: it runs first as cheaply as it can, and stops when it needs more than it has.
//!
//! - It needs to know whether a process lives: the transaction is dropped, the process is looked at,
//!   and the use case runs again with what was seen. No process is looked at while a lock is held. What was
//!   seen is kept for the whole process record (pid and start), so that a sighting of one process is
//!   never used for another, and a session that changed in between is looked at anew.
//! - It needs to write and was reading: it runs again as a writer.
//! - Somebody else was faster: it runs again.
//!
//! A refusal commits: what was learnt on the way (a death) stays. A failure does not.
//! *Crash*: before the commit nothing happened, after it everything did.

pub mod answer;
mod beat;
mod behalf;
pub mod error;
pub mod mirror;
pub mod view;

mod birth;
mod burial;
mod caller;
mod claims;
mod context;
mod evidence;
mod hear;
mod items;
mod look;
mod meanwhile;
mod missions;
mod named;
mod present;
mod register;
mod resume;
mod sessions;
mod status;
mod strangers;
mod tools;
mod transact;
mod transcripts;

pub use caller::{Caller, Naming, ResolvedBy};
pub use claims::{
    ChildRequest, ChildTurn, ClaimRequest, Grant, GuardRequest, HandoffRequest, Pick,
    ReleaseRequest, TakeoverRequest, Turn, Wait, Waiting, Why,
};
pub use hear::{AgentEvent, Brief, Heard};
pub use look::{Awaited, ListRequest, Listed, Until, Whoami};
pub use missions::{
    Bearings, ChangeRequest, Changed, Here, JoinRequest, Joined, Left, Membership, PointRequest,
    Pointed, Roster, Verified, Whose,
};
pub use register::{RegisterRequest, Registered, Subject};
pub use resume::Resumable;
pub use sessions::{MetaChange, RenewRequest};
pub use status::{Glance, Glancer, Status, WARNED_FOR};
pub use tools::{Advice, GuardPolicy, ToolUse};
pub use transact::{Answer, Failure, Reply, Service};
pub use transcripts::{Derivation, Vouched, VouchedFile};

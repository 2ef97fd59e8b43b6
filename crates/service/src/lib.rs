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
pub mod error;
pub mod mirror;
pub mod view;

mod caller;
mod claim;
mod context;
mod evidence;
mod hook;
mod list;
mod log;
mod mission;
mod names;
mod session;
mod showing;
mod transact;
mod transcript;

pub use caller::{ActFor, Caller, ResolvedBy};
pub use claim::{
    ChildRequest, ChildTurn, ClaimRequest, Grant, GuardRequest, HandoffRequest, Pick,
    ReleaseRequest, TakeoverRequest, Turn, Wait, Waiting, Why,
};
pub use hook::{Advice, AgentEvent, Brief, GuardPolicy, Heard, ToolUse};
pub use list::Listed;
pub use mission::{
    Bearings, ChangeRequest, Changed, Here, JoinRequest, Joined, Left, Membership, PointRequest,
    Pointed, Roster, Verified, Whose,
};
pub use names::{Name, Nameable};
pub use session::{
    Awaited, Glance, Glancer, Killable, ListRequest, MetaChange, RegisterRequest, Registered,
    RenewRequest, Resumable, Status, Subject, Until, WARNED_FOR, Whoami, Window,
};
pub use transact::{Answer, Failure, Reply, Service};
pub use transcript::{Derivation, Vouched, VouchedFile};

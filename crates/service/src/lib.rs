//! The use cases, each in one transaction.
//!
//! A surface builds a request, calls one method of [`Service`], and renders the answer. Only the service begins
//! and commits transactions. A use case is a closure over a context and may run several times: it first runs as
//! cheaply as it can, and stops when it needs more than it has.
//!
//! - It needs to know whether a process is alive: the transaction is dropped, the process is observed, and the
//!   use case runs again with the observation. No process is observed while a lock is held. An observation is
//!   kept under the whole process record (pid and start), so it is never used for another process, and a
//!   session that changed in between is observed again.
//! - It needs to write but was reading: it runs again as a writer.
//! - Another writer was faster: it runs again.
//!
//! A refusal commits, so facts found on the way (a death) are kept. A failure does not. *Crash*: before the
//! commit nothing happened, after it everything did.

pub mod answer;
pub mod error;
pub mod mirror;
pub mod view;

mod batch;
mod caller;
mod claim;
mod context;
mod conversation;
mod evidence;
mod hook;
mod import;
mod keeper;
mod kinds;
mod list;
mod live_run;
mod log;
mod looked;
mod mission;
mod names;
mod queue;
mod read_ahead;
mod retention;
mod run;
mod session;
mod showing;
mod starting;
mod surroundings;
mod token;
mod transact;
mod transcript;
mod unseen;
mod usage;
mod watched;

pub use caller::{ActFor, Caller, ResolvedBy};
pub use claim::{
    CheckOutcome, ChildRequest, ChildTurn, ClaimRequest, Grant, GuardRequest, HandoffRequest, Pick,
    ReleaseRequest, TakeoverRequest, TimelineRequest, Wait, WaitingCaller, Why,
};
pub use conversation::{
    Address, Closing, DropRequest, Dropped, History, LinkRequest, Linked, ListConversations,
    Reopened, Reset, SetRequest,
};
pub use hook::{Advice, AgentEvent, Brief, GuardPolicy, HandledEvent, Repeat, ToolUse};
pub use import::{ImportRequest, Imported};
pub use keeper::{Brought, FreeLines, GivenUp, KeeperView, RenewKeeper, Renewed, Watched};
pub use list::{Listed, PAGE, Page};
pub use log::LogStart;
pub use mission::{
    ChangeRequest, JoinRequest, JoinResult, LeaveResult, Membership, MissionChangeResult,
    MissionContext, MissionPlace, PointRequest, PointResult, PointerOwner, Roster, Verified,
};
pub use names::{Name, Nameable};
pub use queue::{
    Accept, Accepted, Arrival, Decided, DueReply, Explained, GiveBack, JobAhead, JobRef, ListJobs,
    LookForJobs, NewJob, Oldest, Person, QueueError, Queued, ReplyAttempt, StoredDelivery, Swept,
    TakeJob, TakenJob, Undecided, WaitingJobs, WhichJobs,
};
pub use retention::Forgotten;
pub use run::{
    Begin, EndRun, LeftRun, ListRuns, NextProcess, PlanRequest, Planned, RunError, RunPlace,
    RunProcesses, StartRun, StartTurn, Started, Stoppable,
};
pub use session::death::DeadSession;
pub use session::{
    Awaited, Delivery, Glance, Glancer, Killable, LeftBehind, ListRequest, MetaChange, Receipt,
    RegisterRequest, Registered, RenewRequest, Resumable, SentMessage, Sleeper, Status, Subject,
    WARNED_FOR, WaitGoal, WakeRequest, Whoami, Window, Woke,
};
pub use token::NewToken;
pub use transact::{Answer, Failure, Reply, Service};
pub use transcript::{Derivation, Vouched, VouchedFile};
pub use usage::{UsageRequest, UsageSource};

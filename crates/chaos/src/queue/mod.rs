//! The queue: a sequential model of the contract, and its two drivers.
//!
//! [`model`] defines which change of a job is allowed in which state. `tests/queue_model` drives it
//! next to the service in process and compares every job after every step. In a run, [`worker`]s
//! race for jobs while a nemesis kills and stops them, and [`check`] replays their log with the
//! model.
//!
//! *Covered by a run*: what was acknowledged is in one job and stays there; of a conversation one job at a time is taken,
//! the oldest first, of all no more than `concurrency`, and none that waits for a usage limit before that is over; what
//! an old attempt reports changes nothing; an agent that was let go is never let go again for the same attempt, and no two work on one
//! conversation at the same instant; a job whose runner died has a recorded state after one sweep. *Not covered*: caps,
//! budgets and the breaker, links between items, and the dispatcher's own process, which the end-to-end tests kill.

pub mod check;
pub mod model;
pub mod worker;

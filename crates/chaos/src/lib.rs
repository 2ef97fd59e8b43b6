//! Chaos: workers race for a few keys of one store while a nemesis kills, stops and continues them,
//! and a checker looks for an answer that should not have been given.
//!
//! [`nemesis`] starts [`worker`]s, which are separate processes and call the product in process,
//! each as a session. Everything is recorded ([`record`]), which makes a [`history`]. The history
//! is then judged three times, independently: by plain rules over the answers ([`rule`]), by the
//! rows and events in the store when it is opened again ([`audit`]), and by a search for an order
//! of all calls that explains every answer ([`order`]) under a sequential [`model`] of the
//! contract, which `tests/claims_model.rs` also drives against the service in process. A
//! contradiction is reported with as few calls as possible ([`shrink`]).
//!
//! *Covered*: a key has one holder at a time. Epochs grow by one and belong to one grant. A live
//! holder loses its key only to a takeover, even if it is stopped for longer than lease and lock
//! delay. A dead holder blocks no one, at once. A session that lost a key is told so, and its guard
//! refuses. Retries, reopened items, all or none, the first free key and overlapping paths. A
//! session that requires quiet gets nothing while a dead holder's processes run. A free key reaches
//! a waiter, whatever those before it in line also wait for. A first opener that is stopped while
//! it creates or recovers the store. Claims that are granted again to a session that comes back.
//! Two live processes are never one session. Every acknowledged change is in the rows and in the
//! log. No call fails for any other reason. The wall clock jumps by days, and the store's write
//! lock is held for a while.
//!
//! The queue has its own model and workers: [`queue`].
//!
//! On PostgreSQL there are two hosts, each with its own state directory, link, keeper and pid namespace ([`hosts`],
//! [`world`]). Both have a repository without a remote at the same path, and claim what is theirs in it ([`places`]). Keepers are killed,
//! stopped, and continued in the moment in which others may take what their host held. A worker of one host knows the
//! processes of the other only by their keeper and their leases. So a live holder may lose a key to the other host, but
//! never before its lease and the lock delay are over since its last answered call; a permission from memory is good for
//! the lock delay; nothing is permitted that was given up; and a dead holder blocks the other host no longer than until
//! its keeper can say so, or its lease is over.
//!
//! The server and the way to it are harmed too ([`weather`]). Then a call may also be answered that the
//! store cannot be used, and must have changed nothing; or that its outcome is unknown, which is no answer, and it may take
//! effect a few seconds after its process is gone. How long somebody waits for a free key is not judged there.
//!
//! A disk may fail, and the power may be cut ([`faults`]): claims alone, on SQLite. Each cut is judged as a run that ended then.
//!
//! *Not covered*: the order in which waiters are served; a number that is a thread's after its process
//! died; notices and messages; what a call to several spaces of keys does at one instant (each space is judged
//! by itself, but half a grant would be a hole in the epochs of one of them); conversations that move
//! to another session; what is spooled while the store is away; several hosts and one queue; the command line, whose races are tested end to end.

pub mod audit;
pub mod check;
pub mod dice;
pub mod faults;
pub mod history;
pub mod hosts;
mod keepers;
pub mod keys;
mod line;
mod memory;
pub mod model;
pub mod nemesis;
pub mod order;
pub mod places;
pub mod pulse;
pub mod queue;
pub mod record;
pub mod rule;
pub mod run;
pub mod say;
pub mod served;
pub mod shrink;
mod silent;
mod squat;
#[cfg(test)]
mod story;
pub mod tally;
pub mod verb;
pub mod weather;
mod witness;
pub mod worker;
mod workspace;
pub mod world;

//! Chaos: workers race for a few keys of one store while a nemesis kills, stops and continues them, and
//! a checker looks for one answer that should not have been given.
//!
//! [`nemesis`] starts [`worker`]s, which are processes of their own and use the product in process, each
//! as a session. Everybody writes down what it does ([`record`]), which makes a [`history`]. That is then
//! judged three times, independently: by plain rules over the answers ([`rule`]), by the rows and events
//! that the store has when it is opened again ([`audit`]), and by a search for an order of all calls that
//! explains every answer ([`order`]) under a sequential [`model`] of the contract, which `tests/claims_model.rs`
//! drives against the service in process too. What cannot be explained is told with as few calls as were found
//! to show it ([`shrink`]).
//!
//! *Covered*: one holder at a time; epochs that grow by one and belong to one grant; a living holder, be
//! it stopped for longer than lease and lock-delay, is never robbed but by a takeover; a dead one blocks
//! nobody, at once; whoever lost a key is told so and its guard says no; retries, reopened items, all or
//! none, the first free, overlapping paths; who insists on quiet gets nothing while a dead holder's processes
//! run; a free key reaches somebody who waits for it, whatever those before it wait for besides; a first
//! opener that is stopped while it makes or recovers the store; what is granted again to a session that comes back; two
//! living processes are never one session; every acknowledged change is in the rows and in the log; no
//! call fails for any other reason. The wall clock jumps by days, and the store's write lock is kept.
//!
//! The queue has a model and workers of its own: [`queue`].
//!
//! On PostgreSQL the server and the way to it are harmed too ([`weather`]). Then a call may also be answered that the
//! store cannot be used, and must have changed nothing; or that its outcome is unknown, which is no answer, and it may take
//! effect a few seconds after its process is gone. How long somebody waits for a free key is not judged there.
//!
//! *Not covered*: the order in which waiters are served; a number that is a thread's after its process
//! died; notices and messages; what a call to several spaces of keys does at one instant (each space is judged
//! by itself, but half a grant would be a hole in the epochs of one of them); conversations that move
//! to another session; processes in other pid namespaces and therefore leases; a power cut; several machines; the command line, whose races are tested end to end.

pub mod audit;
pub mod check;
pub mod dice;
pub mod history;
pub mod keys;
mod line;
pub mod model;
pub mod nemesis;
pub mod order;
pub mod queue;
pub mod record;
pub mod rule;
pub mod run;
pub mod say;
pub mod served;
pub mod shrink;
mod squat;
#[cfg(test)]
mod story;
pub mod verb;
pub mod weather;
mod witness;
pub mod worker;

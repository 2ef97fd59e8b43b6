//! Answers from elsewhere: what an agent asks a person, offered to that person's other windows.
//!
//! A hook of the agent that asks writes the question to a file ([`files`]) and waits ([`hook`]); the agent shows its own
//! dialog meanwhile. A person at a terminal, or a token at the server of this machine ([`answerer`]), answers by a second file
//! ([`reply`]). Everything is local to one user of one machine: nothing is read from a store, so nobody who shares one can
//! ask or answer here. A question is closed once, by a file that only one process can create: the first answer, the
//! session that goes on, or the end of the wait. Nothing is sent that the log does not have.
//!
//! *Crash*: a hook that is killed leaves a question that nobody is offered, and the agent's own dialog decides. One that is
//! killed after an answer was recorded leaves an event without effect; who answered is told that nothing was sent. *Clock
//! jump*: only the monotonic clock ends a wait. *Older version*: what cannot be read is not offered.

pub mod answerer;
pub mod files;
pub mod hook;
pub mod reply;

pub use answerer::Answerer;
pub use reply::{AnswerRequest, QuestionView, SentAnswer};
pub use tenure_agents::{AskedKind, PersonsAnswer};

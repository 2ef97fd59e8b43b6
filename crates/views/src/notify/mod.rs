//! Notifications: what changed for a session, as an event that a person or a program gets once.
//!
//! [`edges`] finds the changes between two looks and in the log; [`watch`] looks again whenever the store changes;
//! [`handler`] hands the events to a command, one at a time. Or a process of its own ([`sender`]) sends them on the user's
//! channels: [`rule`] says which, [`ledger`] keeps what was sent, [`channel`] sends one. [`notifier`] starts it for what a
//! process that stays sees: `tenure watch --notify`, `tenure top`, and one beside a keeper.

pub mod channel;
pub mod edges;
pub mod event;
pub mod handler;
pub mod ledger;
pub mod notifier;
pub mod rule;
pub mod sender;
pub mod terminal;
pub mod watch;

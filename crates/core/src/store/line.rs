//! Waiters in line for a key.

use super::StoreError;
use crate::id::{SessionId, SessionToken, Ticket};
use crate::key::Key;
use crate::line::{NotedTurn, Waiter};
use crate::process::Process;
use crate::time::Timestamp;

/// A waiter before it has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewWaiter<'a> {
    /// The session that it waits for; none where the session begins with the grant.
    pub session: Option<SessionToken>,
    /// The waiting process.
    pub process: &'a Process,
    pub since: Timestamp,
}

/// Rows of a transaction.
pub trait LineRows {
    /// Puts a waiter at the end of the lines of these keys, under one new ticket.
    fn join_line(&mut self, keys: &[Key], waiter: &NewWaiter<'_>) -> Result<Ticket, StoreError>;

    /// The line for a key, in order of arrival.
    fn line(&mut self, key: &Key) -> Result<Vec<Waiter>, StoreError>;

    /// The lines that a session's waiters stand in.
    fn waits_of(&mut self, session: SessionId) -> Result<Vec<Waiter>, StoreError>;

    /// The lines that one waiter stands in, in order of their keys.
    fn waits_at(&mut self, ticket: Ticket) -> Result<Vec<Waiter>, StoreError>;

    /// Notes a waiter's turn in the place of `before`; another one there, or no waiter, is a conflict.
    fn set_turn(
        &mut self,
        ticket: Ticket,
        key: &Key,
        before: Option<&NotedTurn>,
        turn: &NotedTurn,
    ) -> Result<(), StoreError>;

    /// Takes a waiter out of all its lines; one that is in none changes nothing.
    fn leave_line(&mut self, ticket: Ticket) -> Result<(), StoreError>;
}

//! Waiters in line for a key.

use super::StoreError;
use crate::id::{SessionId, SessionToken, Ticket};
use crate::keeper::KeeperPlace;
use crate::key::Key;
use crate::line::{NotedTurn, Waiter};
use crate::process::Process;
use crate::time::Timestamp;

/// A waiter before it has a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewWaiter<'a> {
    /// The session that it waits for; none if the session begins with the grant.
    pub session: Option<SessionToken>,
    /// The waiting process.
    pub process: &'a Process,
    pub since: Timestamp,
}

pub trait LineRows {
    /// Adds a waiter to the end of the lines of these keys, under one new ticket.
    fn join_line(&mut self, keys: &[Key], waiter: &NewWaiter<'_>) -> Result<Ticket, StoreError>;

    /// The line for a key, in order of arrival.
    fn line(&mut self, key: &Key) -> Result<Vec<Waiter>, StoreError>;

    /// The lines of those keys without a holder that somebody at a place waits for, ordered by key and arrival.
    fn free_lines(&mut self, place: &KeeperPlace) -> Result<Vec<Waiter>, StoreError>;

    /// The lines of all waiters of these sessions.
    fn waits_of(&mut self, sessions: &[SessionId]) -> Result<Vec<Waiter>, StoreError>;

    /// The lines of one waiter, ordered by key.
    fn waits_at(&mut self, ticket: Ticket) -> Result<Vec<Waiter>, StoreError>;

    /// Records a waiter's turn if the recorded one is still `before`; another one, or no waiter, is a conflict.
    fn set_turn(
        &mut self,
        ticket: Ticket,
        key: &Key,
        before: Option<&NotedTurn>,
        turn: &NotedTurn,
    ) -> Result<(), StoreError>;

    /// Removes a waiter from all its lines; changes nothing if it is in none.
    fn leave_line(&mut self, ticket: Ticket) -> Result<(), StoreError>;
}

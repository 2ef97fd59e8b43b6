//! The log.

use super::StoreError;
use crate::event::{Event, EventFilter, NewEvent};
use crate::id::Cursor;
use crate::time::Timestamp;

pub trait EventRows {
    /// Appends to the log. An event gets its cursor by its commit at the latest, and cursors are in commit order: a
    /// reader that has read up to one never misses an event that was appended earlier and committed later.
    fn append_event(&mut self, event: &NewEvent, at: Timestamp) -> Result<(), StoreError>;

    /// How many log entries match a filter, whatever its limit.
    fn count_events(&mut self, filter: &EventFilter) -> Result<usize, StoreError>;

    /// Reads the log, oldest first.
    fn events(&mut self, filter: &EventFilter) -> Result<Vec<Event>, StoreError>;

    /// The position of the first event that [`Self::events`] would list.
    fn first_event(&mut self, filter: &EventFilter) -> Result<Option<Cursor>, StoreError>;

    /// The position of the oldest event that is still stored.
    fn oldest_event(&mut self) -> Result<Option<Cursor>, StoreError>;

    /// Removes up to `limit` events from the start of the log, as long as they were recorded before `before`, and
    /// returns how many. The newest event always stays, so that a position can be recognised later.
    fn forget_events(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

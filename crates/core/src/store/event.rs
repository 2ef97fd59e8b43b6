//! The log.

use super::StoreError;
use crate::event::{Event, EventFilter, NewEvent};
use crate::time::Timestamp;

pub trait EventRows {
    /// Appends to the log. An event gets its cursor by its commit at the latest, and cursors are in commit order: a
    /// reader that has read up to one never misses an event that was appended earlier and committed later.
    fn append_event(&mut self, event: &NewEvent, at: Timestamp) -> Result<(), StoreError>;

    /// How many log entries match a filter, whatever its limit.
    fn count_events(&mut self, filter: &EventFilter) -> Result<usize, StoreError>;

    /// Reads the log, oldest first.
    fn events(&mut self, filter: &EventFilter) -> Result<Vec<Event>, StoreError>;
}

//! What sessions used, by day.

use super::StoreError;
use crate::id::SessionId;
use crate::spend::{DailySpend, Day};

pub trait SpendRows {
    /// What these sessions used, on all days.
    fn spend_of(&mut self, sessions: &[SessionId]) -> Result<Vec<DailySpend>, StoreError>;

    /// What all sessions used from a day on. Unreadable rows are skipped; [`super::Tx::take_damage`] reports them.
    fn spend_since(&mut self, day: &Day) -> Result<Vec<DailySpend>, StoreError>;

    /// Stores what a session used on a day for an item, in place of what was stored before.
    fn set_spend(&mut self, spend: &DailySpend) -> Result<(), StoreError>;
}

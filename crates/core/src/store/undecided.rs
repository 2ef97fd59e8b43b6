//! Deliveries that are stored and not decided yet.

use super::StoreError;
use crate::queue::delivery::UndecidedDelivery;

/// Rows of a transaction.
pub trait UndecidedRows {
    fn insert_undecided(&mut self, undecided: &UndecidedDelivery) -> Result<(), StoreError>;

    /// Their ids at an endpoint, with their numbers.
    fn undecided_ids(&mut self, endpoint: &str) -> Result<Vec<(String, i64)>, StoreError>;

    /// Those of an endpoint in the order of their arrival: those whose forge has answered, or the others.
    fn undecided_of(
        &mut self,
        endpoint: &str,
        is_answered: bool,
        limit: usize,
    ) -> Result<Vec<UndecidedDelivery>, StoreError>;

    /// Those of all endpoints whose forge has not answered, in the order of their arrival.
    fn undecided_unanswered(&mut self) -> Result<Vec<UndecidedDelivery>, StoreError>;

    fn undecided(&mut self, delivery: i64) -> Result<Option<UndecidedDelivery>, StoreError>;

    /// Replaces what its forge answered, and what was done. One that is decided by now stays so.
    fn update_undecided(&mut self, undecided: &UndecidedDelivery) -> Result<(), StoreError>;

    /// Removes one that is decided; returns whether it was still there.
    fn remove_undecided(&mut self, delivery: i64) -> Result<bool, StoreError>;
}

//! Deliveries that were stored before they were decided.

use super::StoreError;
use crate::queue::delivery::UndecidedDelivery;

/// Rows of a transaction.
pub trait UndecidedRows {
    fn insert_undecided(&mut self, undecided: &UndecidedDelivery) -> Result<(), StoreError>;

    /// Their ids at an endpoint, with their numbers.
    fn undecided_ids(&mut self, endpoint: &str) -> Result<Vec<(String, i64)>, StoreError>;

    /// Those of an endpoint in the order of their arrival.
    fn undecided_of(
        &mut self,
        endpoint: &str,
        limit: usize,
    ) -> Result<Vec<UndecidedDelivery>, StoreError>;

    fn has_undecided(&mut self, endpoint: &str) -> Result<bool, StoreError>;

    /// Removes one that is decided; returns whether it was still there.
    fn remove_undecided(&mut self, delivery: i64) -> Result<bool, StoreError>;
}

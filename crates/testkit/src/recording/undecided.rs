use tenure_core::queue::delivery::UndecidedDelivery;
use tenure_core::store::{StoreError, UndecidedRows};

use super::RecordingTx;

impl UndecidedRows for RecordingTx<'_> {
    fn insert_undecided(&mut self, undecided: &UndecidedDelivery) -> Result<(), StoreError> {
        self.writes("insert_undecided");
        self.tx.insert_undecided(undecided)
    }

    fn undecided_ids(&mut self, endpoint: &str) -> Result<Vec<(String, i64)>, StoreError> {
        self.tx.undecided_ids(endpoint)
    }

    fn undecided_of(
        &mut self,
        endpoint: &str,
        limit: usize,
    ) -> Result<Vec<UndecidedDelivery>, StoreError> {
        self.tx.undecided_of(endpoint, limit)
    }

    fn has_undecided(&mut self, endpoint: &str) -> Result<bool, StoreError> {
        self.tx.has_undecided(endpoint)
    }

    fn remove_undecided(&mut self, delivery: i64) -> Result<bool, StoreError> {
        self.writes("remove_undecided");
        self.tx.remove_undecided(delivery)
    }
}

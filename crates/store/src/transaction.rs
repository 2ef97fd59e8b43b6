//! A transaction as use cases see it.

use tenure_core::store::{Lock, Prefetch, StoreError, Tx};
use tenure_core::time::{Now, Timestamp};

use crate::engine::{Engine, Rows};
use crate::rows::{claim, doubt, keeper, notice, session};
use crate::value::params;

impl<E: Engine> Tx for Rows<E> {
    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.engine.commit()
    }

    fn lock(&mut self, lock: &Lock) -> Result<(), StoreError> {
        self.engine.lock(lock)
    }

    fn now(&mut self) -> Result<Now, StoreError> {
        self.engine.now()
    }

    fn prefetch(&mut self, what: Prefetch<'_>) -> Result<(), StoreError> {
        match what {
            Prefetch::SessionsAt(places) => session::prefetch_at(self, places),
            Prefetch::News(session) => {
                let session = params![session.to_string()];
                self.engine.prefetch(notice::ANY, &session);
                self.engine.prefetch(doubt::ANY, &session);
            }
            Prefetch::Claims(keys) => {
                claim::prefetch_claims(self, keys);
                keeper::prefetch_untold(self, keys);
            }
            Prefetch::NewestHolds(session, keys) => claim::prefetch_newest(self, session, keys),
        }
        Ok(())
    }

    fn take_damage(&mut self) -> Vec<String> {
        std::mem::take(&mut self.damage)
    }

    fn store_news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError> {
        self.engine.news()
    }
}

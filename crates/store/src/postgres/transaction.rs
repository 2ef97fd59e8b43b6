//! A transaction as use cases see it.

use tenure_core::store::{Lock, Soon, StoreError, Tx};
use tenure_core::time::{Now, Timestamp};

use super::handle::PostgresTx;
use super::value::params;
use super::{claim, doubt, keeper, notice, session};

impl Tx for PostgresTx<'_> {
    fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        self.commit_all()
    }

    fn lock(&mut self, lock: &Lock) -> Result<(), StoreError> {
        self.lock_soon(lock);
        Ok(())
    }

    fn now(&mut self) -> Result<Now, StoreError> {
        self.read_clock()
    }

    fn read_soon(&mut self, soon: Soon<'_>) -> Result<(), StoreError> {
        match soon {
            Soon::SessionsAt(places) => session::soon_at(self, places),
            Soon::News(session) => {
                self.soon(notice::ANY, params![session.to_string()]);
                self.soon(doubt::ANY, params![session.to_string()]);
            }
            Soon::Claims(keys) => {
                claim::soon_claims(self, keys);
                keeper::soon_untold(self, keys);
            }
            Soon::NewestHolds(session, keys) => claim::soon_newest(self, session, keys),
        }
        Ok(())
    }

    fn take_damage(&mut self) -> Vec<String> {
        self.damaged()
    }

    fn store_news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError> {
        let sql = "SELECT news_at, news FROM store WHERE news IS NOT NULL";
        self.first("store", sql, Vec::new(), |cells| {
            Ok((cells.time()?, cells.text()?))
        })
    }
}

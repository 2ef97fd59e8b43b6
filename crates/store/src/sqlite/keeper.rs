//! One machine uses a store in a file, so there are no keepers: processes are asked directly.

use tenure_core::id::{KeeperId, SessionId, SessionToken};
use tenure_core::keeper::{Keeper, KeeperPlace};
use tenure_core::key::Key;
use tenure_core::session::Session;
use tenure_core::store::{KeeperRows, StoreError, Untold, WatchedHold};
use tenure_core::time::{Deadline, Timestamp};

use super::handle::SqliteTx;

impl KeeperRows for SqliteTx<'_> {
    fn renew_keeper(&mut self, _: &Keeper) -> Result<(), StoreError> {
        Ok(())
    }

    fn remove_keeper(&mut self, _: &KeeperId) -> Result<(), StoreError> {
        Ok(())
    }

    fn keepers(&mut self) -> Result<Vec<Keeper>, StoreError> {
        Ok(Vec::new())
    }

    fn watch_sessions(&mut self, _: &KeeperId, _: &[SessionToken]) -> Result<(), StoreError> {
        Ok(())
    }

    fn watchers_of(&mut self, _: &[SessionId]) -> Result<Vec<(SessionToken, Keeper)>, StoreError> {
        Ok(Vec::new())
    }

    fn add_untold(&mut self, _: &Untold) -> Result<(), StoreError> {
        Ok(())
    }

    fn untold(&mut self, _: &[Key]) -> Result<Vec<(Untold, Keeper)>, StoreError> {
        Ok(Vec::new())
    }

    fn forget_untold(&mut self, _: &KeeperId, _: &Deadline) -> Result<(), StoreError> {
        Ok(())
    }

    fn open_sessions_at(&mut self, _: &KeeperPlace) -> Result<Vec<Session>, StoreError> {
        Ok(Vec::new())
    }

    fn watched_holds(&mut self, _: &KeeperId) -> Result<Vec<WatchedHold>, StoreError> {
        Ok(Vec::new())
    }

    fn forget_keepers(&mut self, _: Timestamp, _: usize) -> Result<usize, StoreError> {
        Ok(0)
    }
}

//! The view of a keeper.

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::keeper::Keeper;
use tenure_core::time::{Now, Remaining, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeeperView {
    /// Identifies one life of it.
    pub id: String,
    /// The name of its machine.
    pub host: String,
    pub host_id: String,
    pub pid_ns: u64,
    pub uid: u32,
    pub pid: u32,
    pub version: String,
    pub started_at: Timestamp,
    /// When it last renewed its row.
    pub last_seen_at: Timestamp,
    /// Whether its sessions count as alive by that.
    pub fresh: bool,
}

impl KeeperView {
    pub(super) fn of(keeper: &Keeper, now: &Now) -> Self {
        Self {
            id: keeper.id.to_string(),
            host: keeper.host_name.clone(),
            host_id: keeper.place.host.to_string(),
            pid_ns: keeper.place.pid_ns,
            uid: keeper.uid,
            pid: keeper.pid,
            version: keeper.version.clone(),
            started_at: keeper.started_at,
            last_seen_at: keeper.seen_at,
            fresh: matches!(keeper.lease().remaining(now), Remaining::Open(_)),
        }
    }
}

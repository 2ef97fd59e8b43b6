//! Conversations in rows: one owner each, and visitors.
//!
//! A visitor that becomes the owner no longer visits: its visit stays stored and is not shown. *Crash*: an
//! owner changes completely or not at all. *Clock jump*: times order a lineage for people only.

use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::store::{LineageEntry, NativeRows, StoreError};
use tenure_core::time::Timestamp;

use super::handle::PostgresTx;
use super::value::params;

const OWNER: &str = "SELECT owner FROM natives WHERE agent = $1 AND native_id = $2";

const TAKE: &str = "UPDATE natives SET owner = $3, at = $4 \
     WHERE agent = $1 AND native_id = $2 AND owner = $5";

const VISITORS: &str = "SELECT visitor FROM visits \
     WHERE agent = $1 AND native_id = $2 AND NOT EXISTS (SELECT 1 FROM natives \
     WHERE natives.agent = $1 AND natives.native_id = $2 AND natives.owner = visits.visitor) \
     ORDER BY at, visitor";

const LINEAGE: &str = "SELECT native_id, 1::bigint AS owned, at FROM natives WHERE owner = $1 \
     UNION ALL \
     SELECT native_id, 0::bigint AS owned, at FROM visits WHERE visitor = $1 \
     AND NOT EXISTS (SELECT 1 FROM natives WHERE natives.agent = visits.agent \
     AND natives.native_id = visits.native_id AND natives.owner = $1) \
     ORDER BY 3, 1";

impl NativeRows for PostgresTx<'_> {
    fn native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<SessionId>, StoreError> {
        self.first(
            "natives",
            OWNER,
            params![agent.as_str(), native_id.as_str()],
            |cells| cells.parsed(SessionId::parse),
        )
    }

    fn set_native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        before: Option<SessionId>,
        owner: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let first = "INSERT INTO natives (agent, native_id, owner, at) VALUES ($1, $2, $3, $4)";
        let (agent, native_id, owner) = (agent.as_str(), native_id.as_str(), owner.to_string());
        match before {
            None => self.insert(first, params![agent, native_id, owner, at.0]),
            Some(before) => self.compare_and_set(
                TAKE,
                params![agent, native_id, owner, at.0, before.to_string()],
            ),
        }
    }

    fn native_visitors(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Vec<SessionId>, StoreError> {
        self.all(
            "visits",
            VISITORS,
            params![agent.as_str(), native_id.as_str()],
            |cells| cells.parsed(SessionId::parse),
        )
    }

    fn add_visit(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        visitor: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO visits (agent, native_id, visitor, at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (agent, native_id, visitor) DO NOTHING";
        let row = params![
            agent.as_str(),
            native_id.as_str(),
            visitor.to_string(),
            at.0
        ];
        self.run(sql, row).map(|_| ())
    }

    fn lineage(&mut self, session: SessionId) -> Result<Vec<LineageEntry>, StoreError> {
        self.all("natives", LINEAGE, params![session.to_string()], |cells| {
            Ok(LineageEntry {
                native_id: cells.parsed(NativeId::parse)?,
                owned: cells.flag()?,
                at: cells.time()?,
            })
        })
    }
}

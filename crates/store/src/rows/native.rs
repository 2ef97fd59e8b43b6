//! Conversations in rows: one owner each, and visitors.
//!
//! A visitor that becomes the owner no longer visits: its visit stays stored and is not shown. *Crash*: an owner changes
//! completely or not at all. *Clock jump*: times order a lineage for people only. *Older version*: see the schema.

use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::store::{LineageEntry, NativeRows, StoreError};
use tenure_core::time::Timestamp;

use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::params;

columns! { $
    NativeRow of "natives" by select_natives { agent, native_id, owner, at }
}

columns! { $
    VisitRow of "visits" by select_visits { agent, native_id, visitor, at }
}

const OWNER: &str = "SELECT owner FROM natives WHERE agent = ?1 AND native_id = ?2";
const TAKE: &str = "UPDATE natives SET owner = ?3, at = ?4 \
     WHERE agent = ?1 AND native_id = ?2 AND owner = ?5";
const VISITORS: &str = "SELECT visitor FROM visits \
     WHERE agent = ?1 AND native_id = ?2 AND NOT EXISTS (SELECT 1 FROM natives \
     WHERE natives.agent = ?1 AND natives.native_id = ?2 AND natives.owner = visits.visitor) \
     ORDER BY at, visitor";
const LINEAGE: &str = "SELECT native_id, CAST(1 AS bigint) AS owned, at FROM natives WHERE owner = ?1 \
     UNION ALL \
     SELECT native_id, CAST(0 AS bigint) AS owned, at FROM visits \
     /* may scan: visits are rare */ WHERE visitor = ?1 \
     AND NOT EXISTS (SELECT 1 FROM natives WHERE natives.agent = visits.agent \
     AND natives.native_id = visits.native_id AND natives.owner = ?1) \
     ORDER BY 3, 1";

const LINEAGES: &str = "SELECT owner AS session, native_id, CAST(1 AS bigint) AS owned, at FROM json_each(?1) \
     CROSS JOIN natives INDEXED BY natives_owner ON natives.owner = json_each.value \
     UNION ALL \
     SELECT visitor AS session, native_id, CAST(0 AS bigint) AS owned, at FROM visits \
     /* may scan: visits are rare */ WHERE visitor IN (SELECT value FROM json_each(?1)) \
     AND NOT EXISTS (SELECT 1 FROM natives WHERE natives.agent = visits.agent \
     AND natives.native_id = visits.native_id AND natives.owner = visits.visitor) \
     ORDER BY 1, 4, 2";
/// How many conversations one statement takes.
const MANY: usize = 1000;
const VISITORS_OF: &str = "SELECT v.native_id, v.visitor FROM json_each(?2) \
     CROSS JOIN visits v ON v.native_id = json_each.value \
     WHERE v.agent = ?1 AND NOT EXISTS (SELECT 1 FROM natives WHERE natives.agent = v.agent \
     AND natives.native_id = v.native_id AND natives.owner = v.visitor) ORDER BY v.at, v.visitor";
const OWNERS_OF: &str = "SELECT n.native_id, n.owner FROM json_each(?2) \
     CROSS JOIN natives n ON n.native_id = json_each.value WHERE n.agent = ?1";

impl<E: Engine> NativeRows for Rows<E> {
    fn in_conversations(
        &mut self,
        agent: &AgentName,
        natives: &[NativeId],
    ) -> Result<Vec<(NativeId, SessionId)>, StoreError> {
        let mut found = Vec::new();
        for sql in [VISITORS_OF, OWNERS_OF] {
            for some in natives.chunks(MANY) {
                let some: Vec<String> = some.iter().map(ToString::to_string).collect();
                let of = params![agent.as_str(), some];
                found.extend(self.all("natives", sql, &of, |cells| {
                    Ok((
                        cells.parsed(NativeId::parse)?,
                        cells.parsed(SessionId::parse)?,
                    ))
                })?);
            }
        }
        Ok(found)
    }

    fn lineages(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<(SessionId, LineageEntry)>, StoreError> {
        self.for_each_of("natives", LINEAGES, sessions, |cells| {
            let session = cells.parsed(SessionId::parse)?;
            let entry = LineageEntry {
                native_id: cells.parsed(NativeId::parse)?,
                owned: cells.flag()?,
                at: cells.time()?,
            };
            Ok((session, entry))
        })
    }

    fn native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<SessionId>, StoreError> {
        let key = &params![agent.as_str(), native_id.as_str()];
        self.first("natives", OWNER, key, |cells| {
            cells.parsed(SessionId::parse)
        })
    }

    fn set_native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        before: Option<SessionId>,
        owner: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        match before {
            None => {
                let row = NativeRow {
                    agent: agent.as_str().into(),
                    native_id: native_id.as_str().into(),
                    owner: owner.to_string().into(),
                    at: at.0.into(),
                };
                self.compare_and_set(NativeRow::INSERT, &row.values())
            }
            Some(before) => self.compare_and_set(
                TAKE,
                &params![
                    agent.as_str(),
                    native_id.as_str(),
                    owner.to_string(),
                    at.0,
                    before.to_string(),
                ],
            ),
        }
    }

    fn native_visitors(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Vec<SessionId>, StoreError> {
        let key = &params![agent.as_str(), native_id.as_str()];
        self.all("visits", VISITORS, key, |cells| {
            cells.parsed(SessionId::parse)
        })
    }

    fn add_visit(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        visitor: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let row = VisitRow {
            agent: agent.as_str().into(),
            native_id: native_id.as_str().into(),
            visitor: visitor.to_string().into(),
            at: at.0.into(),
        };
        self.run(VisitRow::INSERT, &row.values())?;
        Ok(())
    }

    fn lineage(&mut self, session: SessionId) -> Result<Vec<LineageEntry>, StoreError> {
        self.all("natives", LINEAGE, &params![session.to_string()], |cells| {
            Ok(LineageEntry {
                native_id: cells.parsed(NativeId::parse)?,
                owned: cells.flag()?,
                at: cells.time()?,
            })
        })
    }
}

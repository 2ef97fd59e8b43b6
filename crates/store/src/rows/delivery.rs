//! Deliveries in rows. A body is the last column of its row, and lists do not read it.
//!
//! *Crash*: a delivery is there with its body, or not at all. A unique index guarantees that only one delivery of the
//! same led to something.

use tenure_core::id::JobId;
use tenure_core::key::Key;
use tenure_core::queue::delivery::{Delivery, SAME_BODY_FOR, Verdict};
use tenure_core::store::{DeliveryFilter, DeliveryRows, StoreError};
use tenure_core::time::Timestamp;

use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{limit_or_all, params};

columns! { $
    /// Without its number, which the store gives, and without its body.
    DeliveryRow of "deliveries" by select_deliveries {
        endpoint, delivery_id, content_key, body_hash, received_at, event, repo, item, author, verdict, rule, why, job,
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, ",
            select_deliveries!(columns ""),
            " FROM deliveries ",
            $rest
        )
    };
}

/// Its parameters are the columns in their order, then the size and the body.
const ADD: &str = concat!(
    "INSERT INTO deliveries (",
    select_deliveries!(columns ""),
    ", size, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id"
);
const DECIDE: &str =
    "UPDATE deliveries SET verdict = ?2, rule = ?3, why = ?4, job = ?5, item = ?6 WHERE id = ?1";
const BY_ID: &str = select!("WHERE id = ?1");
const BODY: &str = "SELECT body FROM deliveries WHERE id = ?1 AND body IS NOT NULL";
const BY_DELIVERY: &str = select!(
    "INDEXED BY deliveries_delivery WHERE endpoint = ?1 AND delivery_id = ?2 \
     AND verdict IN ('queued', 'joined', 'acted')"
);
const BY_CONTENT: &str = select!(
    "INDEXED BY deliveries_content WHERE endpoint = ?1 AND content_key = ?2 \
     AND verdict IN ('queued', 'joined', 'acted')"
);
const BY_BODY: &str = select!(
    "INDEXED BY deliveries_body WHERE body_hash = ?2 AND endpoint = ?1 AND received_at > ?3 \
     AND verdict IN ('queued', 'joined', 'acted') ORDER BY id DESC LIMIT 1"
);
const NEWEST: &str = select!(
    "/* may scan: in the order of the list, up to its limit */ WHERE id < ?2 ORDER BY id DESC LIMIT ?1"
);
const OF_ITEM: &str =
    select!("INDEXED BY deliveries_item WHERE item = ?1 AND id < ?3 ORDER BY id DESC LIMIT ?2");
/// Bodies to delete, oldest first: those that exceed the limit when sizes are added up from the newest. One that is
/// needed for a decision stays.
const OVER: &str = "SELECT id FROM (\
       SELECT id, CAST(sum(size) OVER (ORDER BY id DESC) AS bigint) AS kept \
       FROM deliveries /* may scan: all sizes are added up, and deliveries are forgotten */ WHERE size IS NOT NULL\
     ) bodies WHERE kept > ?1 \
     AND NOT EXISTS (SELECT 1 FROM undecided_deliveries u WHERE u.delivery = bodies.id) ORDER BY id LIMIT ?2";
const OLDEST: &str = "SELECT id, received_at FROM deliveries /* may scan: in order, up to a limit */ \
     WHERE NOT EXISTS (SELECT 1 FROM undecided_deliveries u WHERE u.delivery = deliveries.id) ORDER BY id LIMIT ?1";
const FORGET_BODIES: &str = "UPDATE deliveries SET size = NULL, body = NULL \
     WHERE id IN (SELECT value FROM json_each(?1))";
const FORGET: &str = "DELETE FROM deliveries WHERE id IN (SELECT value FROM json_each(?1))";

fn read(cells: &mut Cells<'_>) -> Result<Delivery, StoreError> {
    let id = cells.number()?;
    let row = DeliveryRow::read(cells);
    Ok(Delivery {
        id,
        endpoint: row.endpoint.text()?,
        delivery_id: row.delivery_id.maybe_text()?,
        content_key: row.content_key.maybe_text()?,
        body_hash: row.body_hash.maybe_text()?,
        received_at: row.received_at.time()?,
        event: row.event.text()?,
        repo: row.repo.maybe_text()?,
        item: row.item.maybe_parsed(Key::stored)?,
        author: row.author.maybe_text()?,
        verdict: row.verdict.parsed(Verdict::parse)?,
        rule: row.rule.maybe_text()?,
        why: row.why.text()?,
        job: row.job.maybe_parsed(JobId::parse)?,
    })
}

impl<E: Engine> DeliveryRows for Rows<E> {
    fn insert_delivery(&mut self, delivery: &Delivery, body: &[u8]) -> Result<i64, StoreError> {
        let row = DeliveryRow {
            endpoint: delivery.endpoint.as_str().into(),
            delivery_id: delivery.delivery_id.as_deref().into(),
            content_key: delivery.content_key.as_deref().into(),
            body_hash: delivery.body_hash.as_deref().into(),
            received_at: delivery.received_at.0.into(),
            event: delivery.event.as_str().into(),
            repo: delivery.repo.as_deref().into(),
            item: delivery.item.as_ref().map(Key::as_str).into(),
            author: delivery.author.as_deref().into(),
            verdict: delivery.verdict.as_str().into(),
            rule: delivery.rule.as_deref().into(),
            why: delivery.why.as_str().into(),
            job: delivery.job.as_ref().map(JobId::as_str).into(),
        };
        let mut values = row.values();
        let size = i64::try_from(body.len()).unwrap_or(i64::MAX);
        values.extend(params![size, body]);
        let added = self.changed("deliveries", ADD, &values, |cells| cells.number::<i64>())?;
        added.first().copied().ok_or(StoreError::Conflict)
    }

    fn update_delivery(&mut self, delivery: &Delivery) -> Result<(), StoreError> {
        self.compare_and_set(
            DECIDE,
            &params![
                delivery.id,
                delivery.verdict.as_str(),
                &delivery.rule,
                &delivery.why,
                delivery.job.as_ref().map(JobId::as_str),
                delivery.item.as_ref().map(Key::as_str),
            ],
        )
    }

    fn delivery(&mut self, id: i64) -> Result<Option<Delivery>, StoreError> {
        self.first("deliveries", BY_ID, &params![id], read)
    }

    fn delivery_like(&mut self, delivery: &Delivery) -> Result<Option<Delivery>, StoreError> {
        if let Some(id) = &delivery.delivery_id {
            let key = params![&delivery.endpoint, id];
            let same = self.first("deliveries", BY_DELIVERY, &key, read)?;
            if same.is_some() {
                return Ok(same);
            }
        }
        if let Some(content) = &delivery.content_key {
            let key = params![&delivery.endpoint, content];
            let same = self.first("deliveries", BY_CONTENT, &key, read)?;
            if same.is_some() {
                return Ok(same);
            }
        }
        match &delivery.body_hash {
            Some(hash) => {
                let since = delivery.received_at.minus(SAME_BODY_FOR);
                let key = params![&delivery.endpoint, hash, since.0];
                self.first("deliveries", BY_BODY, &key, read)
            }
            None => Ok(None),
        }
    }

    fn delivery_body(&mut self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.first("deliveries", BODY, &params![id], |cells| cells.bytes())
    }

    fn list_deliveries(&mut self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError> {
        let (limit, before) = (filter.limit, filter.before.unwrap_or(i64::MAX));
        match &filter.item {
            Some(item) => {
                let of_item = |most| params![item.as_str(), most, before];
                self.first_readable("deliveries", OF_ITEM, limit, of_item, read)
            }
            None => {
                let newest = |most| params![most, before];
                self.first_readable("deliveries", NEWEST, limit, newest, read)
            }
        }
    }

    fn forget_deliveries(
        &mut self,
        before: Timestamp,
        most_bytes: u64,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let bytes = i64::try_from(most_bytes).unwrap_or(i64::MAX);
        let values = params![bytes, limit_or_all(limit)];
        let over = self.all("deliveries", OVER, &values, |cells| cells.number::<i64>())?;
        let forgotten = over.len();
        self.run(FORGET_BODIES, &params![over])?;
        let most = params![limit_or_all(limit)];
        let oldest = self.all("deliveries", OLDEST, &most, |cells| {
            Ok((cells.number::<i64>()?, cells.time()?))
        })?;
        let old: Vec<i64> = oldest
            .into_iter()
            .filter_map(|(id, at)| (at < before).then_some(id))
            .collect();
        let forgotten = forgotten + old.len();
        let old = params![old];
        self.run(FORGET, &old)?;
        Ok(forgotten)
    }
}

//! Deliveries in rows. Their bodies are in a separate table, so that lists do not read them.

use tenure_core::id::JobId;
use tenure_core::key::Key;
use tenure_core::queue::delivery::{Delivery, Verdict};
use tenure_core::store::{DeliveryFilter, DeliveryRows, StoreError};
use tenure_core::time::Timestamp;

use super::handle::{PostgresTx, limit_or_all};
use super::row::Cells;
use super::value::params;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, endpoint, delivery_id, content_key, received_at, event, repo, item, author, verdict, rule, \
             why, job FROM deliveries ",
            $rest
        )
    };
}

const BY_ID: &str = select!("WHERE id = $1");
const BY_DELIVERY: &str = select!(
    "WHERE endpoint = $1 AND delivery_id = $2 \
     AND verdict IN ('queued', 'joined', 'acted')"
);
const BY_CONTENT: &str = select!(
    "WHERE endpoint = $1 AND content_key = $2 \
     AND verdict IN ('queued', 'joined', 'acted')"
);
const NEWEST: &str = select!("ORDER BY id DESC LIMIT $1");
const OF_ITEM: &str = select!("WHERE item = $1 ORDER BY id DESC LIMIT $2");
/// Bodies to delete, oldest first: those that exceed the limit when sizes are added up from the
/// newest. One that is needed for a decision stays.
const OVER: &str = "SELECT delivery FROM (SELECT delivery, (sum(size) OVER (ORDER BY delivery DESC))::bigint AS kept \
     FROM delivery_bodies) bodies WHERE kept > $1 \
     AND NOT EXISTS (SELECT FROM undecided_deliveries u WHERE u.delivery = bodies.delivery) \
     ORDER BY delivery LIMIT $2";

fn read(cells: &mut Cells<'_>) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        id: cells.number()?,
        endpoint: cells.text()?,
        delivery_id: cells.maybe_text()?,
        content_key: cells.maybe_text()?,
        received_at: cells.time()?,
        event: cells.text()?,
        repo: cells.maybe_text()?,
        item: cells.maybe_parsed(Key::stored)?,
        author: cells.maybe_text()?,
        verdict: cells.parsed(Verdict::parse)?,
        rule: cells.maybe_text()?,
        why: cells.text()?,
        job: cells.maybe_parsed(JobId::parse)?,
    })
}

impl DeliveryRows for PostgresTx<'_> {
    fn insert_delivery(&mut self, delivery: &Delivery, body: &[u8]) -> Result<i64, StoreError> {
        let sql = "INSERT INTO deliveries (endpoint, delivery_id, content_key, received_at, event, repo, item, author, \
             verdict, rule, why, job) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
             ON CONFLICT DO NOTHING RETURNING id";
        let added = self.change_all(
            "deliveries",
            sql,
            params![
                &delivery.endpoint,
                &delivery.delivery_id,
                &delivery.content_key,
                delivery.received_at.0,
                &delivery.event,
                &delivery.repo,
                delivery.item.as_ref().map(Key::as_str),
                &delivery.author,
                delivery.verdict.as_str(),
                &delivery.rule,
                &delivery.why,
                delivery.job.as_ref().map(JobId::as_str),
            ],
            |cells| cells.number::<i64>(),
        )?;
        let id = *added.first().ok_or(StoreError::Conflict)?;
        let size = i64::try_from(body.len()).unwrap_or(i64::MAX);
        let sql = "INSERT INTO delivery_bodies (delivery, size, body) VALUES ($1, $2, $3)";
        self.run(sql, params![id, size, body])?;
        Ok(id)
    }

    fn delivery(&mut self, id: i64) -> Result<Option<Delivery>, StoreError> {
        self.first("deliveries", BY_ID, params![id], read)
    }

    fn update_delivery(&mut self, delivery: &Delivery) -> Result<(), StoreError> {
        let sql = "UPDATE deliveries SET verdict = $2, rule = $3, why = $4, job = $5, item = $6 WHERE id = $1";
        self.compare_and_set(
            sql,
            params![
                delivery.id,
                delivery.verdict.as_str(),
                &delivery.rule,
                &delivery.why,
                delivery.job.as_ref().map(JobId::as_str),
                delivery.item.as_ref().map(Key::as_str),
            ],
        )
    }

    fn delivery_like(&mut self, delivery: &Delivery) -> Result<Option<Delivery>, StoreError> {
        if let Some(id) = &delivery.delivery_id {
            let key = params![&delivery.endpoint, id];
            let same = self.first("deliveries", BY_DELIVERY, key, read)?;
            if same.is_some() {
                return Ok(same);
            }
        }
        match &delivery.content_key {
            Some(content) => {
                let key = params![&delivery.endpoint, content];
                self.first("deliveries", BY_CONTENT, key, read)
            }
            None => Ok(None),
        }
    }

    fn delivery_body(&mut self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT body FROM delivery_bodies WHERE delivery = $1";
        self.first("delivery_bodies", sql, params![id], |cells| cells.bytes())
    }

    fn list_deliveries(&mut self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError> {
        let most = limit_or_all(filter.limit);
        match &filter.item {
            Some(item) => {
                self.all_readable("deliveries", OF_ITEM, params![item.as_str(), most], read)
            }
            None => self.all_readable("deliveries", NEWEST, params![most], read),
        }
    }

    fn forget_deliveries(
        &mut self,
        before: Timestamp,
        most_bytes: u64,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let most = limit_or_all(limit);
        let bytes = i64::try_from(most_bytes).unwrap_or(i64::MAX);
        let over = self.all("delivery_bodies", OVER, params![bytes, most], |cells| {
            cells.number::<i64>()
        })?;
        let forget_bodies = "DELETE FROM delivery_bodies WHERE delivery = ANY($1)";
        self.run(forget_bodies, params![over.clone()])?;
        let oldest = "SELECT id, received_at FROM deliveries d \
             WHERE NOT EXISTS (SELECT FROM undecided_deliveries u WHERE u.delivery = d.id) ORDER BY id LIMIT $1";
        let oldest = self.all("deliveries", oldest, params![most], |cells| {
            Ok((cells.number::<i64>()?, cells.time()?))
        })?;
        let old: Vec<i64> = oldest
            .into_iter()
            .filter_map(|(id, at)| (at < before).then_some(id))
            .collect();
        self.run(forget_bodies, params![old.clone()])?;
        for forget in [
            "DELETE FROM waiting_deliveries WHERE delivery = ANY($1)",
            "DELETE FROM deliveries WHERE id = ANY($1)",
        ] {
            self.run(forget, params![old.clone()])?;
        }
        Ok(over.len() + old.len())
    }
}

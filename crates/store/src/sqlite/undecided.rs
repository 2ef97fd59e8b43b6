//! Deliveries that were stored before they were decided, in rows.
//!
//! *Crash*: a row is there together with its delivery, and goes together with the decision about it.

use rusqlite::params;
use tenure_core::queue::delivery::UndecidedDelivery;
use tenure_core::store::{StoreError, UndecidedRows};

use super::handle::{SqliteTx, limit_or_all};
use super::row::Cells;

const IDS: &str = "SELECT delivery_id, delivery FROM undecided_deliveries \
     WHERE endpoint = ?1 AND delivery_id IS NOT NULL ORDER BY delivery";
const OLDEST: &str = "SELECT delivery, endpoint, delivery_id, headers, asked FROM undecided_deliveries \
     WHERE endpoint = ?1 ORDER BY delivery LIMIT ?2";
const ANY: &str = "SELECT delivery FROM undecided_deliveries WHERE endpoint = ?1 LIMIT 1";

fn read(cells: &mut Cells<'_>) -> Result<UndecidedDelivery, StoreError> {
    Ok(UndecidedDelivery {
        delivery: cells.number()?,
        endpoint: cells.text()?,
        delivery_id: cells.maybe_text()?,
        headers: cells.text()?,
        asked: cells.text()?,
    })
}

impl UndecidedRows for SqliteTx<'_> {
    fn insert_undecided(&mut self, undecided: &UndecidedDelivery) -> Result<(), StoreError> {
        let sql = "INSERT INTO undecided_deliveries (delivery, endpoint, delivery_id, headers, asked) \
             VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run(
            sql,
            params![
                undecided.delivery,
                &undecided.endpoint,
                &undecided.delivery_id,
                &undecided.headers,
                &undecided.asked,
            ],
        )
        .map(|_| ())
    }

    fn undecided_ids(&mut self, endpoint: &str) -> Result<Vec<(String, i64)>, StoreError> {
        self.all("undecided_deliveries", IDS, params![endpoint], |cells| {
            Ok((cells.text()?, cells.number()?))
        })
    }

    fn undecided_of(
        &mut self,
        endpoint: &str,
        limit: usize,
    ) -> Result<Vec<UndecidedDelivery>, StoreError> {
        let values = params![endpoint, limit_or_all(limit)];
        self.all("undecided_deliveries", OLDEST, values, read)
    }

    fn has_undecided(&mut self, endpoint: &str) -> Result<bool, StoreError> {
        let found = self.first("undecided_deliveries", ANY, params![endpoint], |cells| {
            cells.number::<i64>()
        })?;
        Ok(found.is_some())
    }

    fn remove_undecided(&mut self, delivery: i64) -> Result<bool, StoreError> {
        let sql = "DELETE FROM undecided_deliveries WHERE delivery = ?1";
        Ok(self.run(sql, params![delivery])? > 0)
    }
}

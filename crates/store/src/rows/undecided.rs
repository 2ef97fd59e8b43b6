//! Deliveries that were stored before they were decided, in rows.
//!
//! *Crash*: a row is there together with its delivery, and goes together with the decision about it.

use tenure_core::queue::delivery::UndecidedDelivery;
use tenure_core::store::{StoreError, UndecidedRows};

use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{limit_or_all, params};

columns! { $
    UndecidedRow of "undecided_deliveries" by select_undecided {
        delivery, endpoint, delivery_id, headers, asked,
    }
}

const IDS: &str = "SELECT delivery_id, delivery FROM undecided_deliveries /* may scan: few are undecided */ \
     WHERE endpoint = ?1 AND delivery_id IS NOT NULL ORDER BY delivery";
const OLDEST: &str = select_undecided!(
    "/* may scan: few are undecided */ WHERE endpoint = ?1 ORDER BY delivery LIMIT ?2"
);
const ANY: &str = "SELECT delivery FROM undecided_deliveries /* may scan: few are undecided */ \
     WHERE endpoint = ?1 LIMIT 1";
const REMOVE: &str = "DELETE FROM undecided_deliveries WHERE delivery = ?1";

fn read(cells: &mut Cells<'_>) -> Result<UndecidedDelivery, StoreError> {
    let row = UndecidedRow::read(cells);
    Ok(UndecidedDelivery {
        delivery: row.delivery.number()?,
        endpoint: row.endpoint.text()?,
        delivery_id: row.delivery_id.maybe_text()?,
        headers: row.headers.text()?,
        asked: row.asked.text()?,
    })
}

impl<E: Engine> UndecidedRows for Rows<E> {
    fn insert_undecided(&mut self, undecided: &UndecidedDelivery) -> Result<(), StoreError> {
        let row = UndecidedRow {
            delivery: undecided.delivery.into(),
            endpoint: undecided.endpoint.as_str().into(),
            delivery_id: undecided.delivery_id.as_deref().into(),
            headers: undecided.headers.as_str().into(),
            asked: undecided.asked.as_str().into(),
        };
        self.compare_and_set(UndecidedRow::INSERT, &row.values())
    }

    fn undecided_ids(&mut self, endpoint: &str) -> Result<Vec<(String, i64)>, StoreError> {
        self.all("undecided_deliveries", IDS, &params![endpoint], |cells| {
            Ok((cells.text()?, cells.number()?))
        })
    }

    fn undecided_of(
        &mut self,
        endpoint: &str,
        limit: usize,
    ) -> Result<Vec<UndecidedDelivery>, StoreError> {
        let values = params![endpoint, limit_or_all(limit)];
        self.all("undecided_deliveries", OLDEST, &values, read)
    }

    fn has_undecided(&mut self, endpoint: &str) -> Result<bool, StoreError> {
        let found = self.first("undecided_deliveries", ANY, &params![endpoint], |cells| {
            cells.number::<i64>()
        })?;
        Ok(found.is_some())
    }

    fn remove_undecided(&mut self, delivery: i64) -> Result<bool, StoreError> {
        Ok(self.run(REMOVE, &params![delivery])? > 0)
    }
}

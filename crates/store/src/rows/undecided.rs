//! Deliveries that are stored and not decided yet, in rows.
//!
//! *Crash*: a row is there together with its delivery, and goes together with the decision about it.

use tenure_core::queue::delivery::UndecidedDelivery;
use tenure_core::store::{StoreError, UndecidedRows};

use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::params;

columns! { $
    UndecidedRow of "undecided_deliveries" by select_undecided {
        delivery, endpoint, delivery_id, headers, answers, acted, replayed,
    }
}

const IDS: &str = "SELECT delivery_id, delivery FROM undecided_deliveries /* may scan: few are undecided */ \
     WHERE endpoint = ?1 AND delivery_id IS NOT NULL ORDER BY delivery";
const ANSWERED: &str = select_undecided!(
    "/* may scan: few are undecided */ WHERE endpoint = ?1 AND answers IS NOT NULL ORDER BY delivery LIMIT ?2"
);
const UNANSWERED: &str = select_undecided!(
    "/* may scan: few are undecided */ WHERE endpoint = ?1 AND answers IS NULL ORDER BY delivery LIMIT ?2"
);
const ALL_UNANSWERED: &str =
    select_undecided!("/* may scan: few are undecided */ WHERE answers IS NULL ORDER BY delivery");
const BY_DELIVERY: &str = select_undecided!("WHERE delivery = ?1");
const UPDATE: &str = "UPDATE undecided_deliveries SET answers = ?2, acted = ?3 WHERE delivery = ?1";
const REMOVE: &str = "DELETE FROM undecided_deliveries WHERE delivery = ?1";

fn read(cells: &mut Cells<'_>) -> Result<UndecidedDelivery, StoreError> {
    let row = UndecidedRow::read(cells);
    Ok(UndecidedDelivery {
        delivery: row.delivery.number()?,
        endpoint: row.endpoint.text()?,
        delivery_id: row.delivery_id.maybe_text()?,
        headers: row.headers.text()?,
        answers: row.answers.maybe_text()?,
        acted: row.acted.flag()?,
        replayed: row.replayed.flag()?,
    })
}

impl<E: Engine> UndecidedRows for Rows<E> {
    fn insert_undecided(&mut self, undecided: &UndecidedDelivery) -> Result<(), StoreError> {
        let row = UndecidedRow {
            delivery: undecided.delivery.into(),
            endpoint: undecided.endpoint.as_str().into(),
            delivery_id: undecided.delivery_id.as_deref().into(),
            headers: undecided.headers.as_str().into(),
            answers: undecided.answers.as_deref().into(),
            acted: undecided.acted.into(),
            replayed: undecided.replayed.into(),
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
        is_answered: bool,
        limit: usize,
    ) -> Result<Vec<UndecidedDelivery>, StoreError> {
        let sql = if is_answered { ANSWERED } else { UNANSWERED };
        let of = |most| params![endpoint, most];
        self.first_readable("undecided_deliveries", sql, limit, of, read)
    }

    fn undecided_unanswered(&mut self) -> Result<Vec<UndecidedDelivery>, StoreError> {
        self.all_readable("undecided_deliveries", ALL_UNANSWERED, &params![], read)
    }

    fn undecided(&mut self, delivery: i64) -> Result<Option<UndecidedDelivery>, StoreError> {
        self.first(
            "undecided_deliveries",
            BY_DELIVERY,
            &params![delivery],
            read,
        )
    }

    fn update_undecided(&mut self, undecided: &UndecidedDelivery) -> Result<(), StoreError> {
        let values = params![
            undecided.delivery,
            undecided.answers.as_deref(),
            undecided.acted
        ];
        self.run(UPDATE, &values)?;
        Ok(())
    }

    fn remove_undecided(&mut self, delivery: i64) -> Result<bool, StoreError> {
        Ok(self.run(REMOVE, &params![delivery])? > 0)
    }
}

//! What is left of the budgets.

use std::time::Duration;

use tenure_core::key::Key;
use tenure_core::run::Run;
use tenure_core::run::budget::{Budgets, ItemCost};
use tenure_core::store::{RunFilter, TxMode};
use tenure_core::time::{DAY, Timestamp};

use super::error::RunError;
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

impl Service<'_> {
    /// How much money a run of an item may cost because of what others cost; none if there is no limit. Refused if a
    /// budget is used up.
    pub fn run_budget(&mut self, item: &Key, budgets: &Budgets) -> Reply<Option<f64>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            if !budgets.looks_back() {
                return Ok(None);
            }
            let runs = if budgets.counts_all() {
                runs_of_day(ctx, false)?
            } else {
                Vec::new()
            };
            let (cost, since) = cost_of_day(ctx, item)?;
            let (own, now) = (ItemCost { item, cost, since }, ctx.now.wall);
            match budgets.used_up(Some(&own), &runs, now) {
                None => Ok(budgets.left(&own, &runs, now)),
                Some(used) => {
                    let (why, until) = (used.why, used.until);
                    Err(Error::from(RunError::OverBudget { why, until }).into())
                }
            }
        })
    }
}

/// What the runs of an item that began within a day cost, and when the first of them began.
pub(crate) fn cost_of_day(ctx: &mut Ctx<'_>, item: &Key) -> Result<(f64, Option<Timestamp>), Stop> {
    // What began exactly a day ago no longer counts.
    let since = ctx.now.wall.minus(DAY).plus(Duration::from_millis(1));
    Ok(ctx.tx.cost_since(item, since)?)
}

/// The runs that began within a day, or those of them that can be read.
pub(crate) fn runs_of_day(ctx: &mut Ctx<'_>, readable_only: bool) -> Result<Vec<Run>, Stop> {
    let filter = RunFilter {
        since: Some(ctx.now.wall.minus(DAY)),
        readable_only,
        ..RunFilter::default()
    };
    let now = ctx.now.wall;
    let mut runs = ctx.tx.list_runs(&filter)?;
    runs.retain(|run| run.created_at.age_at(now) < DAY);
    Ok(runs)
}

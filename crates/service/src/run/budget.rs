//! What is left of the budgets.

use tenure_core::key::Key;
use tenure_core::run::Run;
use tenure_core::run::budget::{Budgets, DAY};
use tenure_core::store::{RunFilter, TxMode};

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
            let (runs, now) = (runs_of_day(ctx, false)?, ctx.now.wall);
            match budgets.used_up(Some(item), &runs, now) {
                None => Ok(budgets.left(item, &runs, now)),
                Some(used) => {
                    let (why, until) = (used.why, used.until);
                    Err(Error::from(RunError::OverBudget { why, until }).into())
                }
            }
        })
    }
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

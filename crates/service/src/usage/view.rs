//! What was used, as programs read it.

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::spend::{Day, UsageSum};

/// What was used from a day on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SpendView {
    /// `session`, `item`, `day` or `agent`.
    pub by: &'static str,
    /// The first day, as `2026-11-19`.
    pub since: String,
    pub rows: Vec<SpendRowView>,
    pub total: SpendSumView,
    /// The budgets that are used up, in words.
    pub past_budgets: Vec<String>,
}

/// What one session, item, day or agent used.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SpendRowView {
    /// The session's handle, the item, the day or the agent. None for what belongs to no item, or to no session.
    pub name: Option<String>,
    /// The session's id, if that is what `name` names.
    pub session: Option<String>,
    pub used: SpendSumView,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SpendSumView {
    /// What models read, from a cache too.
    pub tokens_in: u64,
    /// What models wrote.
    pub tokens_out: u64,
    /// In US dollars, of the agents that report money; none if none of them did.
    pub cost: Option<f64>,
}

impl From<UsageSum> for SpendSumView {
    fn from(sum: UsageSum) -> Self {
        Self {
            tokens_in: sum.tokens.input,
            tokens_out: sum.tokens.output,
            cost: sum.cost,
        }
    }
}

impl SpendView {
    pub(super) fn empty(by: &'static str, since: &Day) -> Self {
        Self {
            by,
            since: since.to_string(),
            rows: Vec::new(),
            total: UsageSum::default().into(),
            past_budgets: Vec::new(),
        }
    }
}

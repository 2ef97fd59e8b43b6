//! What runs may use: a budget that is used up keeps the next run from beginning, and limits the one that is at work.
//!
//! Only what ended runs reported counts, within the last 24 hours. A run that reports no money counts with its tokens
//! instead. Two runs that begin at once may both use what is left.
//!
//! *Clock jump*: a run may count too long or too short; a budget frees no claim and ends no session.

use crate::key::Key;
use crate::run::Run;
use crate::time::{DAY, Timestamp};

/// What the user allows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budgets {
    /// What one run may cost, in US dollars.
    pub run: Option<f64>,
    /// What the runs of one item may cost within a day.
    pub item_day: Option<f64>,
    /// What all runs may cost within a day.
    pub day: Option<f64>,
    /// How many tokens the runs that report no money may use within a day; zero means any number.
    pub day_tokens: usize,
}

/// A budget that is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedUp {
    /// The setting.
    pub budget: &'static str,
    pub why: String,
    /// When the oldest of these runs is a day old.
    pub until: Timestamp,
}

/// What the runs of one item cost within the last day, and when the oldest of them began.
#[derive(Debug, Clone, Copy)]
pub struct ItemCost<'a> {
    pub item: &'a Key,
    pub cost: f64,
    pub since: Option<Timestamp>,
}

/// Runs of the last day.
struct Recent<'a> {
    runs: Vec<&'a Run>,
    now: Timestamp,
}

impl Recent<'_> {
    fn cost(&self) -> f64 {
        let costs = self.runs.iter().filter_map(|run| run.usage.cost);
        costs.fold(0.0, |all, one| all + one)
    }

    /// Of the runs that report no money.
    fn tokens(&self) -> u64 {
        let silent = self.runs.iter().filter(|run| run.usage.cost.is_none());
        let tokens = silent.map(|run| {
            let usage = &run.usage;
            let input = usage.tokens_in.unwrap_or(0);
            input.saturating_add(usage.tokens_out.unwrap_or(0))
        });
        tokens.fold(0, u64::saturating_add)
    }

    /// When the oldest run that this is true of is a day old.
    fn until(&self, counts: impl Fn(&Run) -> bool) -> Timestamp {
        let counted = self.runs.iter().filter(|run| counts(run));
        let oldest = counted.map(|run| run.created_at).min();
        oldest.unwrap_or(self.now).plus(DAY)
    }

    fn money(&self, budget: &'static str, most: Option<f64>) -> Option<UsedUp> {
        let until = || self.until(|run| run.usage.cost.is_some());
        past(budget, "all runs", most?, self.cost(), until)
    }
}

fn past(
    budget: &'static str,
    who: &str,
    most: f64,
    cost: f64,
    until: impl FnOnce() -> Timestamp,
) -> Option<UsedUp> {
    (cost >= most).then(|| UsedUp {
        budget,
        why: format!("{who} cost ${cost:.2} within a day; {budget} is ${most:.2}"),
        until: until(),
    })
}

impl Budgets {
    /// Whether any is set, so that the runs of the last day matter.
    pub fn looks_back(&self) -> bool {
        self.item_day.is_some() || self.day.is_some() || self.day_tokens > 0
    }

    /// Whether the runs of all items count.
    pub fn counts_all(&self) -> bool {
        self.day.is_some() || self.day_tokens > 0
    }

    /// The budget that keeps a run from beginning, of an item or of any. `runs` are those of the last day; where
    /// [`Self::counts_all`] says no, none matter.
    pub fn used_up(
        &self,
        item: Option<&ItemCost<'_>>,
        runs: &[Run],
        now: Timestamp,
    ) -> Option<UsedUp> {
        let all = Recent {
            runs: runs.iter().collect(),
            now,
        };
        let of_item = item.and_then(|own| {
            let until = || own.since.unwrap_or(now).plus(DAY);
            let who = format!("runs of {}", own.item);
            past("budget.item_day", &who, self.item_day?, own.cost, until)
        });
        of_item
            .or_else(|| all.money("budget.day", self.day))
            .or_else(|| {
                let (most, tokens) = (u64::try_from(self.day_tokens).unwrap_or(u64::MAX), all.tokens());
                (most > 0 && tokens >= most).then(|| UsedUp {
                    budget: "budget.day_tokens",
                    why: format!(
                        "runs that report no money used {tokens} tokens within a day; budget.day_tokens is {most}"
                    ),
                    until: all.until(|run| run.usage.cost.is_none() && run.usage.tokens_in.is_some()),
                })
            })
    }

    /// How much money is left for one run of an item; none if there is no limit.
    pub fn left(&self, item: &ItemCost<'_>, runs: &[Run], now: Timestamp) -> Option<f64> {
        let all = Recent {
            runs: runs.iter().collect(),
            now,
        };
        let of_item = self.item_day.map(|most| most - item.cost);
        let of_day = self.day.map(|most| most - all.cost());
        let left = [of_item, of_day].into_iter().flatten();
        left.reduce(f64::min)
    }
}

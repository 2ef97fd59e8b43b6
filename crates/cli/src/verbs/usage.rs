use tenure_app::usage;
use tenure_core::spend::UsageBy;
use tenure_host::clock;
use tenure_service::UsageRequest;
use tenure_service::view::{SpendSumView, SpendView};

use crate::app::App;
use crate::lines::Lines;
use crate::output::{Cell, Outcome, Output, table};
use crate::since::since;

/// Show the tokens and the money that sessions and runs used
///
/// Sessions of this machine are counted in their agents' transcripts, from where they were read last: those of Claude
/// Code, Codex, Gemini CLI and Qwen Code. Runs count with what their agent reported at their end. Money is shown only where an
/// agent reports it. A day is one of this machine's time zone; a run counts on the day on which it was started.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure usage
  tenure usage --by item --since 30d
  tenure usage --by day --json | jq '.usage.rows[].used.tokens_out'")]
pub struct Args {
    /// What to add up
    #[arg(long, value_name = "WHAT", value_enum, default_value = "session")]
    by: By,

    /// Count from the day of this time on: a duration (7d) or a time (2026-11-15T08:00:00Z)
    #[arg(long, value_name = "WHEN", default_value = "7d")]
    since: String,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum By {
    Session,
    Item,
    Day,
    Agent,
}

impl From<By> for UsageBy {
    fn from(by: By) -> Self {
        match by {
            By::Session => Self::Session,
            By::Item => Self::Item,
            By::Day => Self::Day,
            By::Agent => Self::Agent,
        }
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let since = since(&args.since, "usage")?;
    let mut context = app.open()?;
    let request = UsageRequest {
        by: args.by.into(),
        since,
        zone: clock::zone(),
        budgets: context.settings.budgets,
    };
    let answer = usage::look(&mut context, &request)?;
    let mut text = shown(&answer.value, request.by);
    for past in &answer.value.past_budgets {
        text.line(format!("used up: {past}"));
    }
    Ok(Output::new("usage", &answer.value, text).told(&answer))
}

fn shown(usage: &SpendView, by: UsageBy) -> Lines {
    if usage.rows.is_empty() {
        return format!("no usage counted since {}", usage.since).into();
    }
    let (head, none) = match by {
        UsageBy::Session => ("SESSION", "runs without a session"),
        UsageBy::Item => ("ITEM", "no item"),
        UsageBy::Day => ("DAY", ""),
        UsageBy::Agent => ("AGENT", ""),
    };
    let line = |name: &str, used: &SpendSumView| {
        let cost = used.cost.map(|cost| format!("${cost:.2}"));
        let cells = [
            name.to_owned(),
            count(used.tokens_in),
            count(used.tokens_out),
            cost.unwrap_or_else(|| "-".to_owned()),
        ];
        cells.map(Cell::plain).to_vec()
    };
    let mut rows: Vec<Vec<Cell>> = usage
        .rows
        .iter()
        .map(|row| line(row.name.as_deref().unwrap_or(none), &row.used))
        .collect();
    let total = format!("all since {}", usage.since);
    rows.push(line(&total, &usage.total));
    table(&[head, "TOKENS IN", "TOKENS OUT", "COST"], &rows)
}

/// A number of tokens in few characters.
fn count(tokens: u64) -> String {
    match tokens {
        0..10_000 => tokens.to_string(),
        10_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_counts_are_short() {
        let shown = [0, 9_999, 10_000, 999_999, 1_000_000, 12_345_678].map(count);
        assert_eq!(shown, ["0", "9999", "10k", "999k", "1.0M", "12.3M"]);
    }
}

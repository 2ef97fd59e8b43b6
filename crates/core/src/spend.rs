//! What sessions use: tokens, and money where an agent reports it, as sums of days.
//!
//! Pure. A transcript has records that count tokens. Each is counted once, on the day of its own time, for the item that
//! the session held then. A run reports itself what it used, so records of that time are left out, and those of a run
//! that has not ended wait for its end. What a conversation brought along when it was forked is its origin's.
//!
//! *Crash*: the sums and how far the file was read are stored together, so a record is counted or read again, never
//! both. *Clock jump*: a record is counted on the day that it names. *Older version*: it does not
//! know the table.

use std::collections::{BTreeMap, HashMap};

use crate::claim::Hold;
use crate::id::{AgentName, Malformed, SessionId, stored_enum, text_id};
use crate::key::Key;
use crate::local_time::Zone;
use crate::run::Run;
use crate::run::line::Tokens;
use crate::time::Timestamp;

text_id! {
    /// A day of the calendar, as `2026-11-19`. Days are ordered like their texts.
    Day
}

impl Day {
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let date: Option<jiff::civil::Date> = text.parse().ok();
        match date.filter(|date| date.to_string() == text) {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(Malformed::new("day", text, "expected YYYY-MM-DD")),
        }
    }

    /// The day of a time in a zone.
    pub fn of(at: Timestamp, zone: &Zone) -> Self {
        Self(zone.date(at))
    }
}

/// A record of a transcript that counts tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedRecord {
    pub at: Timestamp,
    /// What its numbers are the total of, such as one answer. A later record of the same counts what it adds.
    pub total_of: String,
    pub tokens: Tokens,
    /// Where its line begins in the file.
    pub begin: u64,
}

/// How far a transcript was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadMark {
    /// Everything before this is counted.
    pub end: u64,
    /// Where the last record before it begins: reading goes on there, because the next one may add to it.
    pub last: u64,
}

/// The records of a transcript from a mark on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTranscript {
    /// Which of the session's transcripts: the conversation's id, or the name of a subagent's file.
    pub source: String,
    pub from: ReadMark,
    pub records: Vec<CountedRecord>,
    /// Where the last complete line ends.
    pub end: u64,
}

/// What one session used on one day for one item, as far as it is in one of its transcripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailySpend {
    pub session: SessionId,
    pub source: String,
    pub day: Day,
    pub item: Option<Key>,
    pub agent: AgentName,
    pub tokens: Tokens,
    /// How far the transcript was read when this was written; the highest of a transcript counts.
    pub mark: ReadMark,
}

/// When a run was at work in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTime {
    pub item: Key,
    pub begun_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Whether it reported what it used.
    pub reports: bool,
}

impl RunTime {
    /// None for a run whose agent was not started.
    pub fn of(run: &Run) -> Option<Self> {
        Some(Self {
            item: run.item.clone(),
            begun_at: run.begun_at?,
            ended_at: run.end.as_ref().map(|end| end.at),
            reports: run.usage.tokens_in.is_some(),
        })
    }

    fn contains(&self, at: Timestamp) -> bool {
        self.begun_at <= at && self.ended_at.is_none_or(|ended| at <= ended)
    }
}

/// What decides for what a record counts.
#[derive(Debug, Clone, Copy)]
pub struct Attribution<'a> {
    /// What the session held, and holds.
    pub holds: &'a [Hold],
    /// The runs in the session.
    pub runs: &'a [RunTime],
    /// For a fork: when it began. What is older is its origin's.
    pub forked_at: Option<Timestamp>,
    pub zone: &'a Zone,
}

/// What the new records of a transcript add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSpend {
    pub sums: BTreeMap<(Day, Option<Key>), Tokens>,
    pub mark: ReadMark,
}

/// Adds up the new records of a transcript.
pub fn add_up(read: &ReadTranscript, by: &Attribution<'_>) -> NewSpend {
    let mut added = NewSpend {
        sums: BTreeMap::new(),
        mark: ReadMark {
            end: read.end,
            last: read.from.last,
        },
    };
    let mut totals: HashMap<&str, Tokens> = HashMap::new();
    for record in &read.records {
        let known = totals.insert(&record.total_of, record.tokens);
        let run = by.runs.iter().find(|run| run.contains(record.at));
        if record.begin >= read.from.end && run.is_some_and(|run| run.ended_at.is_none()) {
            added.mark.end = record.begin;
            break;
        }
        added.mark.last = record.begin;
        let is_origins = by.forked_at.is_some_and(|at| record.at < at);
        if record.begin < read.from.end || is_origins || run.is_some_and(|run| run.reports) {
            continue;
        }
        let item = match run {
            Some(run) => Some(&run.item),
            None => held_at(by.holds, record.at),
        };
        let key = (Day::of(record.at, by.zone), item.cloned());
        let sum = added.sums.entry(key).or_default();
        let new = record.tokens.since(known.unwrap_or_default());
        *sum = sum.plus(new);
    }
    if read.records.is_empty() && read.from.last == 0 {
        // There is nothing to go on from.
        added.mark.last = added.mark.end;
    }
    added
}

/// The item that a session was at: of those that it held, the one that it got last. Paths are no items.
fn held_at(holds: &[Hold], at: Timestamp) -> Option<&Key> {
    let held = holds.iter().filter(|hold| {
        let ended = hold.ended.map(|end| end.at);
        hold.granted_at <= at
            && ended.is_none_or(|ended| at < ended)
            && hold.key.path_parts().is_none()
    });
    let newest = held.max_by_key(|hold| (hold.granted_at, &hold.key));
    newest.map(|hold| &hold.key)
}

/// One part of what was used.
#[derive(Debug, Clone, PartialEq)]
pub struct Used {
    /// None for a run whose agent never became a session.
    pub session: Option<SessionId>,
    pub agent: AgentName,
    pub day: Day,
    pub item: Option<Key>,
    pub sum: UsageSum,
}

/// What was used in all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UsageSum {
    pub tokens: Tokens,
    /// In US dollars, of what reports money.
    pub cost: Option<f64>,
}

impl UsageSum {
    fn add(&mut self, other: Self) {
        self.tokens = self.tokens.plus(other.tokens);
        self.cost = match (self.cost, other.cost) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
}

/// What a run reports that it used; none if it reports nothing. It counts on the day on which it was started.
pub fn of_run(run: &Run, zone: &Zone) -> Option<Used> {
    let usage = &run.usage;
    let tokens = Tokens {
        input: usage.tokens_in.unwrap_or(0),
        output: usage.tokens_out.unwrap_or(0),
    };
    let reports = usage.tokens_in.is_some() || usage.cost.is_some();
    reports.then(|| Used {
        session: run.session.map(|token| token.id),
        agent: run.agent.clone(),
        day: Day::of(run.created_at, zone),
        item: Some(run.item.clone()),
        sum: UsageSum {
            tokens,
            cost: usage.cost,
        },
    })
}

impl From<DailySpend> for Used {
    fn from(spend: DailySpend) -> Self {
        Self {
            session: Some(spend.session),
            agent: spend.agent,
            day: spend.day,
            item: spend.item,
            sum: UsageSum {
                tokens: spend.tokens,
                cost: None,
            },
        }
    }
}

stored_enum! {
    /// What usage is added up by.
    UsageBy, "way to add up" {
        Session = "session",
        Item = "item",
        Day = "day",
        Agent = "agent",
    }
}

/// What usage belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageOf {
    Session(Option<SessionId>),
    Item(Option<Key>),
    Day(Day),
    Agent(String),
}

/// The sums: days with the latest first, everything else with the most tokens first.
pub fn sums(by: UsageBy, all: &[Used]) -> Vec<(UsageOf, UsageSum)> {
    let mut found: BTreeMap<UsageOf, UsageSum> = BTreeMap::new();
    for used in all {
        let of = match by {
            UsageBy::Session => UsageOf::Session(used.session),
            UsageBy::Item => UsageOf::Item(used.item.clone()),
            UsageBy::Day => UsageOf::Day(used.day.clone()),
            UsageBy::Agent => UsageOf::Agent(used.agent.to_string()),
        };
        found.entry(of).or_default().add(used.sum);
    }
    found.retain(|_, sum| *sum != UsageSum::default());
    let mut listed: Vec<_> = found.into_iter().collect();
    match by {
        UsageBy::Day => listed.reverse(),
        _ => listed.sort_by_key(|(_, sum)| {
            let tokens = sum.tokens;
            std::cmp::Reverse(tokens.input.saturating_add(tokens.output))
        }),
    }
    listed
}

/// Everything in one sum.
pub fn total(all: &[Used]) -> UsageSum {
    let mut sum = UsageSum::default();
    all.iter().for_each(|used| sum.add(used.sum));
    sum
}

#[cfg(test)]
mod tests;

//! What is written in a forge about a job: which comment, with which text, and what was written of it.
//!
//! A reply is a request that is stored with its job. What it should say now follows from the job each time it is looked
//! at ([`Notice::of`]), so nothing is lost when a change goes by unseen. A comment is written once and then edited.
//!
//! *Crash*: before a comment is created, the reply is stored as `unsure`. If the answer of the forge is then never
//! recorded, the comment is looked for by its [`mark`] before another is created. *Text from an agent* stands in a
//! block whose fence it cannot close, without hidden characters and mentions, and is cut. *Older version*: one that
//! does not know replies writes none.

mod told;

use std::time::Duration;

use super::step::MAX_FAILURES;
use super::{Job, JobState, Parked, ParkedFor};
use crate::forge::text::MARKER;
use crate::id::{JobId, stored_enum};
use crate::key::Key;
use crate::run::{Outcome, prompt};
use crate::text;
use crate::time::Timestamp;

stored_enum! {
    ReplyKind, "kind of a reply" {
        /// Eyes on what asked for the job.
        Eyes = "eyes",
        /// One comment that is kept up to date.
        Status = "status",
        /// One comment if the job is parked so that somebody should know.
        Parked = "parked",
        /// One comment when the conversation of the job was reset.
        Reset = "reset",
        /// A pull request for what was pushed.
        Pull = "pull",
        /// The merge of a pull request.
        Merge = "merge",
    }
}

/// Something to write in a forge, and what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeReply {
    /// Its number in the store; zero before it is stored.
    pub id: i64,
    pub kind: ReplyKind,
    /// The forge, by its name in the settings.
    pub forge: String,
    pub item: Key,
    pub job: JobId,
    /// What the eyes are for: `comment-7`, `review-comment-7`; none for the item itself.
    pub target: Option<String>,
    /// The forge's id of our comment.
    pub comment: Option<u64>,
    /// Whether a comment may be there whose id is not known.
    pub unsure: bool,
    /// What the forge has, by the label of its notice.
    pub said: Option<String>,
    /// How often in a row the forge did not take it.
    pub tries: u32,
    /// Not tried again before.
    pub next_at: Option<Timestamp>,
    /// Why it did not, the last time.
    pub failure: Option<String>,
    pub created_at: Timestamp,
    /// When nothing was left to write.
    pub done_at: Option<Timestamp>,
}

impl ForgeReply {
    /// One that was not written yet.
    pub fn new(kind: ReplyKind, forge: &str, item: &Key, job: &JobId, now: Timestamp) -> Self {
        Self {
            id: 0,
            kind,
            forge: forge.to_owned(),
            item: item.clone(),
            job: job.clone(),
            target: None,
            comment: None,
            unsure: false,
            said: None,
            tries: 0,
            next_at: None,
            failure: None,
            created_at: now,
            done_at: None,
        }
    }
}

/// What a job asks to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReply {
    pub forge: String,
    /// Whether what asked for the job gets eyes.
    pub eyes: bool,
    /// Whether a comment follows the job.
    pub comment: bool,
    /// What the eyes are for.
    pub target: Option<String>,
    /// Whether a pull request is opened for what is pushed.
    pub pull: bool,
    /// Whether the item is merged.
    pub merge: bool,
}

impl NewReply {
    /// The replies of one event of an item; `is_new` where it did not join a job. Eyes are for the event, which may be of
    /// another item of the job's conversation.
    pub fn replies(&self, job: &Job, item: &Key, is_new: bool, now: Timestamp) -> Vec<ForgeReply> {
        let reply = |kind, target| ForgeReply {
            target,
            ..ForgeReply::new(kind, &self.forge, item, &job.id, now)
        };
        let mut all = Vec::new();
        if self.eyes {
            all.push(reply(ReplyKind::Eyes, self.target.clone()));
        }
        if is_new && self.pull {
            all.push(reply(ReplyKind::Pull, None));
        }
        if is_new && self.merge {
            all.push(reply(ReplyKind::Merge, None));
        }
        if is_new {
            let kind = if self.comment {
                ReplyKind::Status
            } else {
                ReplyKind::Parked
            };
            all.push(reply(kind, None));
        }
        all
    }
}

/// The line that a comment about a job is found by.
pub fn mark(kind: ReplyKind, job: &JobId) -> String {
    format!("<!-- tenure {} {job} -->", kind.as_str())
}

/// How long a forge that did not take a reply is left alone: 2 s, doubling to 5 min, without an end.
pub fn back_off(tries: u32) -> Duration {
    let seconds = 2_u64 << tries.saturating_sub(1).min(9);
    Duration::from_secs(seconds.min(300))
}

/// What is known of a job's run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunNow {
    /// Why the agent waits for its provider, while it does.
    pub waiting: Option<String>,
    /// When its agent was started, and how many minutes ago.
    pub since: Option<(Timestamp, u64)>,
    /// The tool that it used last, by its name.
    pub step: Option<String>,
    /// The last text of the agent.
    pub answer: Option<String>,
    /// What it committed, if that was not published.
    pub patch: Option<Patch>,
    /// The pull request that it opens.
    pub pull: Option<PullState>,
    /// The merge that follows it.
    pub merge: Option<PullState>,
}

/// What became of a pull request that a job opens or merges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullState {
    /// The forge has not done it yet.
    Waits,
    /// Opened, with its address; or merged.
    Done(String),
    /// The forge refused it.
    Refused(String),
}

/// What a run committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Patch {
    /// Short, and without characters that a reader does not see.
    Shown(String),
    /// It is only on the machine of the run.
    Kept,
}

impl Patch {
    /// A patch as it is shown. One that would have to be changed for that is not shown: nobody could apply it.
    pub fn of(text: String) -> Self {
        let is_seen = |c: char| matches!(c, '\n' | '\t') || !text::is_hidden(c);
        if text.len() <= MAX_PATCH && text.chars().all(is_seen) {
            Self::Shown(text)
        } else {
            Self::Kept
        }
    }
}

/// What a comment should say now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Tells one from another; a comment with the same label is left alone.
    pub label: String,
    /// Whether it is the last one.
    pub is_last: bool,
    /// Whether it is worth a comment of its own, where none was written before.
    pub starts: bool,
    text: String,
}

/// The longest part of an agent's text, in bytes. With mentions broken up, the comment stays within the 65,536
/// characters that GitHub takes.
const MAX_ANSWER: usize = 20_000;
const MAX_REASON: usize = 300;
/// The longest patch in a comment, in bytes. Together with the answer it stays within the same limit.
pub const MAX_PATCH: usize = 16_000;

impl Notice {
    /// What to say about a job; none where there is nothing to say yet.
    pub fn of(kind: ReplyKind, job: &Job, run: &RunNow) -> Option<Self> {
        match kind {
            ReplyKind::Eyes | ReplyKind::Pull | ReplyKind::Merge => None,
            ReplyKind::Status => Self::status(job, run),
            ReplyKind::Parked => Self::parked_only(job),
            ReplyKind::Reset => Self::reset(job),
        }
    }

    /// The whole comment.
    pub fn comment(&self, kind: ReplyKind, job: &JobId) -> String {
        format!("{MARKER}\n{}\n{}", mark(kind, job), self.text)
    }

    fn status(job: &Job, run: &RunNow) -> Option<Self> {
        let notice = |label: String, is_last, starts, text| {
            Some(Self {
                label,
                is_last,
                starts,
                text,
            })
        };
        let agent = &job.agent;
        let named = job.run.as_ref().map(ToString::to_string);
        let named = named.unwrap_or_default();
        match job.state {
            JobState::Begun => match &run.waiting {
                None => {
                    let (label, text) = running(job, &named, run);
                    notice(label, false, true, text)
                }
                Some(_) => notice(
                    format!("waiting {named}"),
                    false,
                    true,
                    format!("**{agent}** is waiting for its provider (run `{named}`).\n"),
                ),
            },
            JobState::Parked => {
                let parked = job.parked.as_ref()?;
                let until = parked.until.map_or_else(String::new, |at| at.to_string());
                let label = format!("parked {} {until}", parked.reason.as_str());
                notice(label, false, true, parked_text(job, parked))
            }
            JobState::Ended => {
                let end = job.end.as_ref()?;
                let outcome = end.outcome.unwrap_or(Outcome::Interrupted);
                let waits = job.unpublished.as_ref().map_or("", |_| " unpublished");
                let (followed, is_last) = followed(run);
                let label = format!("ended {} {named}{waits}{followed}", outcome.as_str());
                let text = ended_text(job, outcome, &end.why, run);
                notice(label, is_last, true, text)
            }
            JobState::Cancelled if job.is_refused() => Some(Self::refused(job)),
            JobState::Cancelled => {
                let why = job.end.as_ref().map_or("", |end| &end.why);
                let text = format!("Cancelled: {}\n", span(why));
                notice("cancelled".to_owned(), true, false, text)
            }
            JobState::Queued if job.failures >= MAX_FAILURES => Some(Self::not_started(job)),
            JobState::Queued | JobState::Starting => None,
        }
    }

    /// A park that somebody should know of, although no comment follows the job.
    fn parked_only(job: &Job) -> Option<Self> {
        if job.is_refused() {
            return Some(Self::refused(job));
        }
        if !job.is_open() {
            return Some(Self {
                label: "over".to_owned(),
                is_last: true,
                starts: false,
                text: String::new(),
            });
        }
        let parked = job.parked.as_ref()?;
        // Whatever waits for a person, somebody is told.
        let is_told = parked.until.is_none() || parked.reason == ParkedFor::Budget;
        is_told.then(|| Self {
            label: "parked".to_owned(),
            is_last: true,
            starts: true,
            text: parked_text(job, parked),
        })
    }
}

/// How a run gets on. The label changes once a minute, and so does the comment.
fn running(job: &Job, named: &str, run: &RunNow) -> (String, String) {
    let agent = &job.agent;
    match run.since {
        Some((since, minutes)) if minutes > 0 => {
            let plural = if minutes == 1 { "" } else { "s" };
            let step = run.step.as_deref().and_then(tool_name);
            let step = step.map_or_else(String::new, |step| format!(" Last step: `{step}`."));
            let text = format!(
                "**{agent}** has been working on this for {minutes} minute{plural}, since {} (run `{named}`).{step}\n",
                minute(since)
            );
            (format!("running {named} {minutes}"), text)
        }
        _ => (
            format!("running {named}"),
            format!("**{agent}** is working on this (run `{named}`).\n"),
        ),
    }
}

/// The name of a tool, without what it was called with: that may name files, or show what an agent wrote.
fn tool_name(step: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let end = step.find(|c: char| !is_name(c)).unwrap_or(step.len());
    Some(&step[..end.min(MAX_STEP)]).filter(|name| !name.is_empty())
}

const MAX_STEP: usize = 40;

fn parked_text(job: &Job, parked: &Parked) -> String {
    let agent = &job.agent;
    // Everybody reads it, so it has only our own words: reasons from elsewhere may name files and show what an agent wrote.
    let why = match parked.reason {
        ParkedFor::Breaker | ParkedFor::Cap | ParkedFor::Budget | ParkedFor::Repository => {
            span(&parked.why)
        }
        ParkedFor::Limit => "the agent has reached its usage limit".to_owned(),
        ParkedFor::Unusable => "its conversation cannot be continued".to_owned(),
        ParkedFor::Attempts => "it could not be started".to_owned(),
    };
    match (parked.until, parked.reason) {
        (Some(until), _) => format!("Parked until {}: {why}\n", minute(until)),
        (None, ParkedFor::Breaker) => format!(
            "Parked: {why}\n\n**{agent}** will continue when someone who is allowed to start runs comments here, a minute after the last run or later.\n"
        ),
        (None, _) => format!(
            "Parked: {why}\n\nRun `tenure queue explain {}` for details.\n",
            job.id
        ),
    }
}

/// What became of pull requests, for a label; and whether nothing of it is to come.
fn followed(run: &RunNow) -> (String, bool) {
    let mut label = String::new();
    for state in [&run.pull, &run.merge].into_iter().flatten() {
        label.push_str(match state {
            PullState::Waits => " waits",
            PullState::Done(_) => " followed",
            PullState::Refused(_) => " refused",
        });
    }
    let waits = [&run.pull, &run.merge].contains(&&Some(PullState::Waits));
    (label, !waits)
}

fn pull_text(run: &RunNow) -> String {
    let mut text = String::new();
    match &run.pull {
        Some(PullState::Done(address)) => {
            let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '`' | '<' | '>' | '@');
            let shown = if address.chars().all(is_plain) {
                address.clone()
            } else {
                span(address)
            };
            text.push_str(&format!("\nPull request: {shown}\n"));
        }
        Some(PullState::Refused(why)) => {
            text.push_str(&format!("\nNo pull request was opened: {}\n", span(why)));
        }
        Some(PullState::Waits) | None => {}
    }
    match &run.merge {
        Some(PullState::Done(_)) => text.push_str("\nIt was merged.\n"),
        Some(PullState::Refused(why)) => {
            text.push_str(&format!("\nIt was not merged: {}\n", span(why)));
        }
        Some(PullState::Waits) | None => {}
    }
    text
}

fn ended_text(job: &Job, outcome: Outcome, why: &str, run: &RunNow) -> String {
    let agent = &job.agent;
    let named = job.run.as_ref().map(ToString::to_string);
    let named = named.unwrap_or_default();
    let mut text = match outcome {
        Outcome::Done => format!("**{agent}** is done (run `{named}`).\n"),
        Outcome::Stopped => format!("**{agent}** was stopped (run `{named}`): {}\n", span(why)),
        other => format!(
            "**{agent}** failed (run `{named}`, {}). Run `tenure runs show {named}` for the reason.\n",
            other.as_str()
        ),
    };
    text.push_str(&pull_text(run));
    if let Some(why) = &job.unpublished {
        text.push_str(&format!(
            "\nThe result waits for a person: {}\n\nRun `tenure queue publish {}` to publish it.\n",
            span(why),
            job.id
        ));
    }
    if let Some(answer) = &run.answer {
        text.push_str(&fenced_answer(answer));
        if answer.len() > MAX_ANSWER {
            text.push_str(&format!(
                "\nThe rest was cut. Run `tenure runs tail {named}` for all of it.\n"
            ));
        }
    }
    match &run.patch {
        Some(Patch::Shown(patch)) => {
            let fence = fence_for(patch);
            text.push_str(&format!(
                "\nWhat it committed and did not publish:\n\n{fence}diff\n{patch}{fence}\n"
            ));
        }
        Some(Patch::Kept) => text.push_str(&format!(
            "\nWhat it committed was not published. Run `tenure runs show {named}` for the patch.\n"
        )),
        None => {}
    }
    text
}

/// A fence that the text cannot close.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max();
    "`".repeat(longest.unwrap_or(0).max(2) + 1)
}

pub(super) fn fenced_answer(answer: &str) -> String {
    let mut end = answer.len().min(MAX_ANSWER);
    while !answer.is_char_boundary(end) {
        end -= 1;
    }
    prompt::fenced(&answer[..end])
}

/// A sentence from elsewhere as code on one line: nothing in it is a mention, a link or a command to the forge.
fn span(text: &str) -> String {
    let shown = text::line(text).replace('`', "'");
    let shown = text::clipped(&shown, MAX_REASON);
    let shown = prompt::without_mentions(shown.trim());
    if shown.is_empty() {
        "`no reason was given`".to_owned()
    } else {
        format!("`{shown}`")
    }
}

/// A time as people read it: `2026-11-16 09:30 UTC`.
fn minute(at: Timestamp) -> String {
    let shown = at.to_string();
    match (shown.get(..10), shown.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => shown,
    }
}

#[cfg(test)]
mod told_tests;

#[cfg(test)]
pub(super) mod tests;

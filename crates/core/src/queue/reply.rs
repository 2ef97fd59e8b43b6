//! What is written in a forge about a job: which comment, with which text, and what was written of it.
//!
//! A reply is a wish that is stored with its job. What it should say now follows from the job each time it is looked
//! at ([`Notice::of`]), so nothing is lost when a change goes by unseen. A comment is written once and then edited.
//!
//! *Crash*: before a comment is created, the reply is stored as `unsure`. If the answer of the forge is then never
//! recorded, the comment is looked for by its [`mark`] before another is created. *Text from an agent* stands in a
//! block whose fence it cannot close, without hidden characters and mentions, and is cut. *Older version*: one that
//! does not know replies writes none.

mod told;

use std::time::Duration;

use super::step::MOST_FAILURES;
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
    }
}

/// Something to write in a forge, and what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
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

impl Reply {
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
}

impl NewReply {
    /// The replies of one event of an item; `is_new` where it did not join a job. Eyes are for the event, which may be of
    /// another item of the job's conversation.
    pub fn replies(&self, job: &Job, item: &Key, is_new: bool, now: Timestamp) -> Vec<Reply> {
        let reply = |kind, target| Reply {
            target,
            ..Reply::new(kind, &self.forge, item, &job.id, now)
        };
        let mut all = Vec::new();
        if self.eyes {
            all.push(reply(ReplyKind::Eyes, self.target.clone()));
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
    /// The last text of the agent.
    pub answer: Option<String>,
    /// What it committed, if that was not published.
    pub patch: Option<Patch>,
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
        if text.len() <= LONGEST_PATCH && text.chars().all(is_seen) {
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
const LONGEST_ANSWER: usize = 20_000;
const LONGEST_WHY: usize = 300;
/// The longest patch in a comment, in bytes. Together with the answer it stays within the same limit.
pub const LONGEST_PATCH: usize = 16_000;

impl Notice {
    /// What to say about a job; none where there is nothing to say yet.
    pub fn of(kind: ReplyKind, job: &Job, run: &RunNow) -> Option<Self> {
        match kind {
            ReplyKind::Eyes => None,
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
                None => notice(
                    format!("running {named}"),
                    false,
                    true,
                    format!("**{agent}** is working on this (run `{named}`).\n"),
                ),
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
                let label = format!("ended {} {named}{waits}", outcome.as_str());
                notice(label, true, true, ended_text(job, outcome, &end.why, run))
            }
            JobState::Cancelled if job.is_refused() => Some(Self::refused(job)),
            JobState::Cancelled => {
                let why = job.end.as_ref().map_or("", |end| &end.why);
                let text = format!("Cancelled: {}\n", span(why));
                notice("cancelled".to_owned(), true, false, text)
            }
            JobState::Queued if job.failures >= MOST_FAILURES => Some(Self::not_started(job)),
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
    if let Some(why) = &job.unpublished {
        text.push_str(&format!(
            "\nThe result waits for a person: {}\n\nRun `tenure queue publish {}` to publish it.\n",
            span(why),
            job.id
        ));
    }
    if let Some(answer) = &run.answer {
        text.push_str(&fenced_answer(answer));
        if answer.len() > LONGEST_ANSWER {
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

fn fenced_answer(answer: &str) -> String {
    let mut end = answer.len().min(LONGEST_ANSWER);
    while !answer.is_char_boundary(end) {
        end -= 1;
    }
    prompt::fenced(&answer[..end])
}

/// A sentence from elsewhere as code on one line: nothing in it is a mention, a link or a command to the forge.
fn span(text: &str) -> String {
    let shown = text::line(text).replace('`', "'");
    let shown = text::clipped(&shown, LONGEST_WHY);
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::forge::text::{is_ours, mentions};
    use crate::id::{AgentName, RunId, WorkerRole};
    use crate::queue::{Caps, JobAsk, JobEnd, JobSpec, JobWorkdir, Trust};

    pub(super) fn job(state: JobState) -> Job {
        let item = Key::stored("issue:acme/web#6").unwrap();
        Job {
            id: JobId::mint([0; 16]),
            agent: AgentName::known("claude"),
            role: WorkerRole::default(),
            root: item.clone(),
            item,
            rule: Some("fix".to_owned()),
            trust: Trust::Trusted,
            repo: None,
            spec: JobSpec {
                ask: JobAsk::Text("do it".to_owned()),
                workdir: JobWorkdir {
                    dir: "/work".to_owned(),
                    worktree: false,
                },
                args: Vec::new(),
                env: Vec::new(),
                wrap: Vec::new(),
                exclusive: false,
                fresh: false,
                shares_dir: false,
                timeout_ms: None,
                caps: Caps::default(),
                dispatched: true,
                trusted_repo: false,
                code: Default::default(),
            },
            state,
            attempt: 1,
            failures: 0,
            failure: None,
            taken: None,
            run: Some(RunId::mint([0; 16])),
            parked: None,
            not_before: None,
            by: None,
            created_at: Timestamp(0),
            end: None,
            unpublished: None,
            revision: 1,
        }
    }

    pub(super) fn ended(outcome: Outcome, why: &str) -> Job {
        Job {
            end: Some(JobEnd {
                at: Timestamp(0),
                outcome: Some(outcome),
                why: why.to_owned(),
            }),
            ..job(JobState::Ended)
        }
    }

    fn parked(reason: ParkedFor, until: Option<Timestamp>) -> Job {
        Job {
            parked: Some(Parked {
                reason,
                until,
                why: "10 runs of issue:acme/web#6 since a person last asked".to_owned(),
            }),
            ..job(JobState::Parked)
        }
    }

    pub(super) fn said(job: &Job, run: &RunNow) -> String {
        let notice = Notice::of(ReplyKind::Status, job, run).unwrap();
        notice.comment(ReplyKind::Status, &job.id)
    }

    #[test]
    fn an_unpublished_result_is_shown_with_its_patch_and_the_command() {
        let waits = Job {
            unpublished: Some("its rule asks".to_owned()),
            ..ended(Outcome::Done, "so")
        };
        let patch = "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+```\n+\t@alice\n";
        let run = RunNow {
            patch: Some(Patch::of(patch.to_owned())),
            ..RunNow::default()
        };
        let told = said(&waits, &run);
        assert!(
            told.contains("waits for a person: `its rule asks`"),
            "{told}"
        );
        assert!(told.contains(&format!("Run `tenure queue publish {}`", waits.id)));
        assert!(
            told.ends_with(&format!("\n````diff\n{patch}````\n")),
            "{told}"
        );
        let label = |job: &Job| Notice::of(ReplyKind::Status, job, &run).map(|one| one.label);
        let published = ended(Outcome::Done, "so");
        assert_ne!(label(&waits), label(&published), "the comment is edited");
        assert!(!said(&published, &run).contains("queue publish"));
    }

    #[test]
    fn a_patch_that_is_long_or_has_hidden_characters_is_only_named() {
        let long = "+x\n".repeat(LONGEST_PATCH);
        for text in [long, "+\u{202e}x\n".to_owned(), "+a\r\n".to_owned()] {
            assert_eq!(Patch::of(text), Patch::Kept);
        }
        let run = RunNow {
            patch: Some(Patch::Kept),
            ..RunNow::default()
        };
        let told = said(&ended(Outcome::Done, "so"), &run);
        assert!(
            told.contains("Run `tenure runs show r-2222222222` for the patch."),
            "{told}"
        );
    }

    #[test]
    fn a_comment_follows_its_job_from_the_start_to_the_end() {
        let quiet = RunNow::default();
        for state in [JobState::Queued, JobState::Starting] {
            assert_eq!(Notice::of(ReplyKind::Status, &job(state), &quiet), None);
        }
        let begins = "<!-- tenure -->\n<!-- tenure status j-2222222222 -->\n";
        let running = said(&job(JobState::Begun), &quiet);
        assert_eq!(
            running,
            format!("{begins}**claude** is working on this (run `r-2222222222`).\n")
        );
        let waits = RunNow {
            waiting: Some("529 overloaded".to_owned()),
            ..quiet.clone()
        };
        let waiting = said(&job(JobState::Begun), &waits);
        assert!(
            waiting.ends_with("**claude** is waiting for its provider (run `r-2222222222`).\n")
        );
        let until = Some(Timestamp(1_795_000_000_000));
        let limit = said(&parked(ParkedFor::Limit, until), &quiet);
        assert!(
            limit.contains("Parked until 2026-11-18 11:06 UTC: the agent has reached its usage"),
            "{limit}"
        );
        let told = RunNow {
            answer: Some("Fixed it.".to_owned()),
            ..quiet.clone()
        };
        let done = said(&ended(Outcome::Done, "so"), &told);
        assert!(
            done.ends_with("**claude** is done (run `r-2222222222`).\n\n```\nFixed it.\n```\n")
        );
        let failed = said(&ended(Outcome::Timeout, "no end within 5m"), &quiet);
        assert!(failed.contains("failed (run `r-2222222222`, timeout). Run `tenure runs show"));
        for text in [running, waiting, limit, done, failed] {
            assert!(is_ours(&text), "{text}");
            assert!(
                text.lines()
                    .any(|line| line == mark(ReplyKind::Status, &job(JobState::Begun).id))
            );
        }
    }

    #[test]
    fn what_is_cancelled_before_it_ran_needs_no_comment() {
        let notice = Notice::of(
            ReplyKind::Status,
            &job(JobState::Cancelled),
            &RunNow::default(),
        );
        let notice = notice.unwrap();
        assert!(notice.is_last && !notice.starts);
    }

    #[test]
    fn without_a_comment_only_parks_that_somebody_should_know_of_are_told() {
        let of = |job: &Job| Notice::of(ReplyKind::Parked, job, &RunNow::default());
        assert_eq!(of(&job(JobState::Begun)), None);
        assert_eq!(of(&parked(ParkedFor::Limit, Some(Timestamp(1)))), None);
        assert_eq!(of(&parked(ParkedFor::Cap, Some(Timestamp(1)))), None);
        let breaker = of(&parked(ParkedFor::Breaker, None)).unwrap();
        assert!(breaker.starts && breaker.is_last);
        assert!(
            breaker.text.contains("will continue when someone"),
            "{}",
            breaker.text
        );
        assert!(
            of(&parked(ParkedFor::Budget, Some(Timestamp(1))))
                .unwrap()
                .starts
        );
        for reason in [ParkedFor::Attempts, ParkedFor::Unusable] {
            assert!(of(&parked(reason, None)).unwrap().starts, "{reason:?}");
        }
        let over = of(&ended(Outcome::Done, "")).unwrap();
        assert!(over.is_last && !over.starts);
    }

    #[test]
    fn what_an_agent_printed_and_local_paths_are_in_no_comment() {
        let leak = "spawn /home/alice/.config/x: sk-secret";
        let mut jobs = vec![job(JobState::Begun)];
        let outcomes = [
            Outcome::Failed,
            Outcome::Refused,
            Outcome::Timeout,
            Outcome::Interrupted,
            Outcome::Unusable,
        ];
        jobs.extend(outcomes.map(|outcome| ended(outcome, leak)));
        let reasons = [ParkedFor::Limit, ParkedFor::Unusable, ParkedFor::Attempts];
        for (reason, until) in reasons.into_iter().zip([Some(Timestamp(1)), None, None]) {
            let mut job = parked(reason, until);
            job.parked.as_mut().unwrap().why = leak.to_owned();
            jobs.push(job);
        }
        let run = RunNow {
            waiting: Some(leak.to_owned()),
            ..RunNow::default()
        };
        for job in jobs {
            for kind in [ReplyKind::Status, ReplyKind::Parked] {
                let text = Notice::of(kind, &job, &run)
                    .map_or_else(String::new, |notice| notice.comment(kind, &job.id));
                let has = ["alice", "secret", "spawn"]
                    .iter()
                    .any(|word| text.contains(word));
                assert!(!has, "{text}");
            }
        }
    }

    #[test]
    fn an_edit_needs_a_new_label_and_times_of_parks_are_part_of_it() {
        let label = |job: &Job| {
            Notice::of(ReplyKind::Status, job, &RunNow::default())
                .unwrap()
                .label
        };
        let one = label(&parked(ParkedFor::Budget, Some(Timestamp(1))));
        assert_eq!(one, label(&parked(ParkedFor::Budget, Some(Timestamp(1)))));
        assert_ne!(one, label(&parked(ParkedFor::Budget, Some(Timestamp(2)))));
        assert_ne!(one, label(&job(JobState::Begun)));
    }

    #[test]
    fn a_reply_is_tried_later_each_time_and_every_five_minutes_at_the_latest() {
        let all: Vec<u64> = (1..=1000).map(|tries| back_off(tries).as_secs()).collect();
        assert_eq!(all[..4], [2, 4, 8, 16]);
        assert_eq!(all.iter().max(), Some(&300));
    }

    proptest! {
        /// Whatever an agent writes: nobody is mentioned, the comment stays ours and within GitHub's bound.
        #[test]
        fn no_text_of_an_agent_leaves_its_block(
            answer in prop::collection::vec(
                prop::sample::select(vec![
                    "@alice", "```", "~~~", "\n", "<!-- tenure -->", "<!--", "-->", "/close", "#6", "\u{202e}",
                    "\u{1b}[2J", "`", " ", "text", "</details>", "\u{e0041}",
                ]), 0..200),
            why in "[ -~\u{202e}`@\n]{0,400}",
        ) {
            let answer = answer.concat();
            let run = RunNow { answer: Some(answer), ..RunNow::default() };
            let comment = said(&ended(Outcome::Failed, &why), &run);
            prop_assert!(is_ours(&comment));
            prop_assert!(!mentions(&comment, "@alice"));
            for (at, _) in comment.match_indices('@') {
                prop_assert!(comment[at + 1..].starts_with('\u{200b}'), "{comment}");
            }
            let hides = |c: char| !matches!(c, '\n' | '\t' | '\u{200b}') && text::is_hidden(c);
            prop_assert!(!comment.chars().any(hides));
            // Our three lines, then a block up to the end.
            let body: Vec<&str> = comment.lines().skip(2).collect();
            prop_assert!(body[0].starts_with("**claude** failed"), "{comment}");
            let fence = body[2];
            prop_assert!(fence.len() >= 3 && fence.bytes().all(|b| b == b'`'));
            let inside = &body[3..body.len() - 1];
            prop_assert_eq!(*body.last().unwrap(), fence);
            prop_assert!(inside.iter().all(|line| !line.contains(fence)));
        }
    }

    #[test]
    fn a_long_answer_is_cut_with_the_way_to_the_rest() {
        let run = RunNow {
            answer: Some("@ö".repeat(40_000)),
            ..RunNow::default()
        };
        let comment = said(&ended(Outcome::Done, ""), &run);
        assert!(
            comment.chars().count() < 65_536,
            "{}",
            comment.chars().count()
        );
        assert!(comment.ends_with("Run `tenure runs tail r-2222222222` for all of it.\n"));
    }
}

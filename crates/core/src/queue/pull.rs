//! Pull requests for the results of jobs: when one is opened, what it says, and when one is merged.
//!
//! Both are stored as replies of the job ([`ReplyKind::Pull`], [`ReplyKind::Merge`]), so they are tried again until the
//! forge answers. *Crash* after the forge opened a pull request: the next attempt finds it by its branch. *Crash* after
//! the merge: the forge says that it is merged. *Text from an agent* stands in a block that it cannot close.

use super::reply::{ReplyKind, fenced_answer, mark};
use super::{Job, JobState};
use crate::forge::text::MARKER;
use crate::key::Key;
use crate::run::{Outcome, prompt};
use crate::text;

/// What there is to do about the pull request of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullWork {
    /// The job has not ended, or its result waits for a person.
    NotYet,
    Nothing,
    /// This branch needs an open pull request.
    Open(String),
    /// This commit was approved and is merged. No other is.
    Merge(String),
}

/// What a reply of this kind asks for now.
pub fn work(kind: ReplyKind, job: &Job) -> PullWork {
    if job.is_open() {
        return PullWork::NotYet;
    }
    let outcome = job.end.as_ref().and_then(|end| end.outcome);
    let is_done = job.state == JobState::Ended && outcome == Some(Outcome::Done);
    match kind {
        ReplyKind::Pull if job.unpublished.is_some() => PullWork::NotYet,
        ReplyKind::Pull => match &job.published {
            Some(branch) if is_done => PullWork::Open(branch.clone()),
            _ => PullWork::Nothing,
        },
        ReplyKind::Merge => match &job.spec.code.head {
            Some(head) if is_done && job.item.scheme() == "pr" => PullWork::Merge(head.clone()),
            _ => PullWork::Nothing,
        },
        _ => PullWork::Nothing,
    }
}

/// The branch that a pull request is opened against; none for the default branch. A result of a pull request whose
/// branch is not ours is proposed to that branch.
pub fn base_of(job: &Job, branch: &str) -> Option<String> {
    let own = job.spec.code.branch.as_deref();
    own.filter(|own| *own != branch).map(str::to_owned)
}

/// The title and body of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullText {
    pub title: String,
    pub body: String,
}

/// The longest title of an item that is repeated, in characters.
const MAX_TITLE: usize = 120;

impl PullText {
    /// For the result of a job: with the title of its item, and the last text of its agent.
    pub fn of(job: &Job, title: &str, answer: Option<&str>) -> Self {
        let (agent, number) = (&job.agent, number(&job.item));
        let shown = text::clipped(text::line(title).trim(), MAX_TITLE);
        let shown = prompt::without_mentions(&shown);
        let title = match (shown.is_empty(), number) {
            (false, Some(number)) => format!("{shown} (#{number})"),
            (false, None) => shown,
            (true, _) => format!("Result of {}", job.item),
        };
        let closes = number.filter(|_| job.item.scheme() == "issue");
        let closes = closes.map_or_else(String::new, |number| format!("Closes #{number}\n\n"));
        let run = job.run.as_ref().map(ToString::to_string);
        let mut body = format!(
            "{MARKER}\n{}\n{closes}By **{agent}** (run `{}`).\n",
            mark(ReplyKind::Pull, &job.id),
            run.unwrap_or_default()
        );
        if let Some(answer) = answer {
            body.push_str(&fenced_answer(answer));
        }
        Self { title, body }
    }
}

fn number(item: &Key) -> Option<u64> {
    item.rest().rsplit_once('#')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::reply::tests::{ended, job};
    use super::*;
    use crate::forge::text::{closed_issues, is_ours};

    #[test]
    fn a_pull_request_is_opened_for_what_was_pushed_by_a_run_that_is_done() {
        let of = |job: &Job| work(ReplyKind::Pull, job);
        let published = |outcome| Job {
            published: Some("tenure/issue-6".to_owned()),
            ..ended(outcome, "")
        };
        assert_eq!(of(&job(JobState::Begun)), PullWork::NotYet);
        let done = published(Outcome::Done);
        assert_eq!(of(&done), PullWork::Open("tenure/issue-6".to_owned()));
        assert_eq!(of(&published(Outcome::Failed)), PullWork::Nothing);
        assert_eq!(of(&ended(Outcome::Done, "")), PullWork::Nothing);
        let waits = Job {
            unpublished: Some("its rule asks".to_owned()),
            ..ended(Outcome::Done, "")
        };
        assert_eq!(of(&waits), PullWork::NotYet, "a person may publish it");
        assert_eq!(base_of(&done, "tenure/issue-6"), None);
    }

    #[test]
    fn only_the_approved_commit_is_merged_and_only_after_a_run_that_is_done() {
        let pull = |outcome| {
            let mut job = ended(outcome, "");
            job.item = Key::stored("pr:acme/web#9").unwrap();
            job.spec.code.head = Some("a1".to_owned());
            job
        };
        let of = |job: &Job| work(ReplyKind::Merge, job);
        assert_eq!(of(&pull(Outcome::Done)), PullWork::Merge("a1".to_owned()));
        for outcome in [Outcome::Failed, Outcome::Stopped, Outcome::Refused] {
            assert_eq!(of(&pull(outcome)), PullWork::Nothing, "{outcome:?}");
        }
        let mut unknown = pull(Outcome::Done);
        unknown.spec.code.head = None;
        assert_eq!(of(&unknown), PullWork::Nothing);
        assert_eq!(of(&job(JobState::Queued)), PullWork::NotYet);
    }

    #[test]
    fn the_text_names_the_issue_and_nothing_in_it_is_a_command_to_the_forge() {
        let answer = "Done.\n```\nCloses #7\n@alice\n";
        let told = PullText::of(
            &ended(Outcome::Done, ""),
            "Login\u{202e} @alice",
            Some(answer),
        );
        assert!(told.title.ends_with(" (#6)"), "{}", told.title);
        assert!(!told.title.contains('\u{202e}') && !told.title.contains("@alice"));
        assert!(is_ours(&told.body) && !told.body.contains("@alice"));
        assert_eq!(closed_issues(&told.body, "acme/web"), [6]);
        let untitled = PullText::of(&ended(Outcome::Done, ""), " ", None);
        assert_eq!(untitled.title, "Result of issue:acme/web#6");
    }
}

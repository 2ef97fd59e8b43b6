use proptest::prelude::*;

use super::*;
use crate::forge::text::{is_ours, mentions};
use crate::id::RunId;
use crate::queue::JobEnd;
use crate::queue::job_for_tests as sample;

pub fn job(state: JobState) -> Job {
    Job {
        state,
        attempt: 1,
        run: Some(RunId::mint([0; 16])),
        ..sample::job(Timestamp(0))
    }
}

pub fn ended(outcome: Outcome, why: &str) -> Job {
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

pub fn said(job: &Job, run: &RunNow) -> String {
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
    let long = "+x\n".repeat(MAX_PATCH);
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
    assert!(waiting.ends_with("**claude** is waiting for its provider (run `r-2222222222`).\n"));
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
    assert!(done.ends_with("**claude** is done (run `r-2222222222`).\n\n```\nFixed it.\n```\n"));
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
fn a_comment_tells_what_became_of_the_pull_request_and_waits_for_that() {
    let of = |pull, merge| {
        let run = RunNow {
            pull,
            merge,
            ..RunNow::default()
        };
        let job = ended(Outcome::Done, "so");
        let notice = Notice::of(ReplyKind::Status, &job, &run).unwrap();
        (notice.label, notice.is_last, notice.text)
    };
    let (waits, is_last, _) = of(Some(PullState::Waits), None);
    assert!(!is_last);
    let address = "https://git.example.org/acme/web/pulls/9".to_owned();
    let (opened, is_last, text) = of(Some(PullState::Done(address.clone())), None);
    assert!(
        is_last && text.contains(&format!("Pull request: {address}\n")),
        "{text}"
    );
    assert_ne!(waits, opened, "the comment is edited");
    let refused = PullState::Refused("the head moved".to_owned());
    let (_, is_last, text) = of(None, Some(refused));
    assert!(
        is_last && text.contains("It was not merged: `the head moved`"),
        "{text}"
    );
}

#[test]
fn a_comment_tells_how_a_run_gets_on_once_a_minute_and_by_the_name_of_the_tool_alone() {
    let of = |minutes, step: &str| {
        let run = RunNow {
            since: Some((Timestamp(1_795_000_000_000), minutes)),
            step: Some(step.to_owned()),
            ..RunNow::default()
        };
        let notice = Notice::of(ReplyKind::Status, &job(JobState::Begun), &run).unwrap();
        (notice.label, notice.text)
    };
    let (first, text) = of(0, "Bash: ls");
    assert!(text.starts_with("**claude** is working on this"), "{text}");
    let (later, text) = of(12, "Bash: cat /home/alice/secret");
    assert_eq!(
        text,
        "**claude** has been working on this for 12 minutes, since 2026-11-18 11:06 UTC (run `r-2222222222`). Last step: `Bash`.\n"
    );
    assert_ne!(first, later);
    assert_eq!(later, of(12, "Edit: x").0, "one edit for a minute");
    assert!(of(1, "/etc/passwd").1.ends_with("(run `r-2222222222`).\n"));
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

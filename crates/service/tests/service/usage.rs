//! What sessions used, counted while somebody looks, on a store that panics where one writes what it did not lock.

use tenure_core::local_time::Zone;
use tenure_core::notice::NoticeKind;
use tenure_core::run::budget::Budgets;
use tenure_core::run::line::Tokens;
use tenure_core::spend::{CountedRecord, ReadMark, ReadTranscript, UsageBy};
use tenure_core::time::Timestamp;
use tenure_service::view::SpendView;
use tenure_service::{UsageRequest, UsageSource};

use crate::{Rig, Who};

/// New records of 10 bytes each, at this time.
fn transcript(source: &str, from: ReadMark, at: Timestamp, input: &[u64]) -> ReadTranscript {
    let mut end = from.end;
    let records = input.iter().enumerate().map(|(n, input)| {
        let begin = end;
        end += 10;
        CountedRecord {
            at,
            total_of: format!("{begin} {n}"),
            tokens: Tokens {
                input: *input,
                output: 1,
            },
            begin,
        }
    });
    let records = records.collect();
    ReadTranscript {
        source: source.to_owned(),
        from,
        records,
        end,
    }
}

fn sources(rig: &mut Rig, who: &Who) -> Vec<UsageSource> {
    rig.call(who, |service| service.usage_sources(Timestamp(0)))
        .unwrap()
}

fn request(by: UsageBy) -> UsageRequest {
    UsageRequest {
        by,
        since: Timestamp(0),
        zone: Zone::utc(),
        budgets: Budgets::default(),
    }
}

fn count(rig: &mut Rig, who: &Who, source: &UsageSource, read: &[ReadTranscript]) {
    let request = request(UsageBy::Session);
    rig.call(who, |service| {
        service.count_usage(source.session, read, &request)
    })
    .unwrap();
}

fn usage(rig: &mut Rig, who: &Who, by: UsageBy) -> SpendView {
    rig.call(who, |service| service.usage(&request(by)))
        .unwrap()
}

/// Names with the tokens that were read.
fn rows(view: &SpendView) -> Vec<(Option<&str>, u64)> {
    let rows = view.rows.iter();
    rows.map(|row| (row.name.as_deref(), row.used.tokens_in))
        .collect()
}

/// A session in a conversation with a file.
fn session(rig: &mut Rig, native: &str) -> Who {
    let who = rig.here(&[20]);
    let handle = rig.register(&who, native).session.handle;
    let path = format!("/t/{native}.jsonl");
    rig.call(&who, |service| service.keep_transcript(&handle, &path))
        .unwrap();
    who
}

#[test]
fn what_a_transcript_adds_is_counted_once_and_for_the_item_that_was_held() {
    let mut rig = Rig::new();
    let ann = session(&mut rig, "c-1");
    rig.claim(&ann, "wp:1").unwrap();
    let now = rig.clock.now().wall;
    let found = sources(&mut rig, &ann);
    assert_eq!(found.len(), 1);
    let own = &found[0];
    assert_eq!(own.files, [("c-1".to_owned(), "/t/c-1.jsonl".to_owned())]);
    let first = transcript("c-1", ReadMark::default(), now, &[100, 20]);
    count(&mut rig, &ann, own, std::slice::from_ref(&first));
    // Another look read the same at the same time.
    count(&mut rig, &ann, own, &[first]);
    let by_item = usage(&mut rig, &ann, UsageBy::Item);
    assert_eq!(rows(&by_item), [(Some("wp:1"), 120)]);
    assert_eq!(by_item.total.tokens_out, 2);
    assert_eq!(by_item.total.cost, None);
    let again = &sources(&mut rig, &ann)[0];
    let mark = again.marks["c-1"];
    assert_eq!(mark, ReadMark { end: 20, last: 10 });
    rig.release(&ann, "wp:1");
    let later = Timestamp(rig.clock.now().wall.0 + 1_000);
    let more = transcript("c-1", mark, later, &[7]);
    let subagent = transcript("agent-1", ReadMark::default(), later, &[3]);
    count(&mut rig, &ann, again, &[more, subagent]);
    let by_item = usage(&mut rig, &ann, UsageBy::Item);
    assert_eq!(rows(&by_item), [(Some("wp:1"), 120), (None, 10)]);
    let by_session = usage(&mut rig, &ann, UsageBy::Session);
    assert_eq!(by_session.rows.len(), 1);
    assert_eq!(by_session.rows[0].used.tokens_in, 130);
    assert!(by_session.rows[0].session.is_some());
    assert_eq!(
        rows(&usage(&mut rig, &ann, UsageBy::Agent)),
        [(Some("worker"), 130)]
    );
}

#[test]
fn how_far_a_transcript_without_tokens_was_read_is_kept() {
    let mut rig = Rig::new();
    let ann = session(&mut rig, "c-1");
    let own = &sources(&mut rig, &ann)[0];
    let read = ReadTranscript {
        end: 500,
        ..transcript("c-1", ReadMark::default(), Timestamp(1), &[])
    };
    count(&mut rig, &ann, own, &[read]);
    let mark = sources(&mut rig, &ann)[0].marks["c-1"];
    assert_eq!(
        mark,
        ReadMark {
            end: 500,
            last: 500
        }
    );
    let view = usage(&mut rig, &ann, UsageBy::Session);
    assert_eq!(rows(&view), [], "it used nothing");
}

#[test]
fn what_was_used_before_the_first_day_is_left_out() {
    let mut rig = Rig::new();
    let ann = session(&mut rig, "c-1");
    let now = rig.clock.now().wall;
    let old = Timestamp(now.0 - 3 * 86_400_000);
    let own = &sources(&mut rig, &ann)[0];
    let first = transcript("c-1", ReadMark::default(), old, &[100]);
    let mut rest = transcript("c-1", ReadMark::default(), now, &[1, 20]);
    rest.records[0] = first.records[0].clone();
    count(&mut rig, &ann, own, &[rest]);
    let request = UsageRequest {
        since: now,
        ..request(UsageBy::Day)
    };
    let view = rig.call(&ann, |service| service.usage(&request)).unwrap();
    assert_eq!(view.total.tokens_in, 20);
    assert_eq!(usage(&mut rig, &ann, UsageBy::Day).rows.len(), 2);
}

#[test]
fn a_session_past_the_tokens_of_a_day_is_warned_once() {
    let mut rig = Rig::new();
    let ann = session(&mut rig, "c-1");
    let now = rig.clock.now().wall;
    let request = UsageRequest {
        budgets: Budgets {
            day_tokens: 100,
            ..Budgets::default()
        },
        ..request(UsageBy::Session)
    };
    let mut warned = Vec::new();
    for (input, is_past) in [(90, false), (20, true), (50, true)] {
        let own = &sources(&mut rig, &ann)[0];
        let mark = own.marks.get("c-1").copied().unwrap_or_default();
        let read = transcript("c-1", mark, now, &[input]);
        rig.call(&ann, |service| {
            service.count_usage(own.session, &[read], &request)
        })
        .unwrap();
        let view = rig.call(&ann, |service| service.usage(&request)).unwrap();
        assert_eq!(!view.past_budgets.is_empty(), is_past, "{view:?}");
        warned.extend(
            rig.told
                .drain(..)
                .filter(|one| one.kind == NoticeKind::Warned),
        );
    }
    let said: Vec<&str> = warned.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(
        said,
        ["sessions used 112 tokens today; budget.day_tokens is 100"]
    );
    assert!(rig.claim(&ann, "wp:1").is_ok(), "it may go on");
}

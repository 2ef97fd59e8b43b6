use super::*;
use crate::claim::{EndedBy, HoldEnd, Means};
use crate::id::{Epoch, Life};

fn key(text: &str) -> Key {
    Key::stored(text).unwrap()
}

fn hold(item: &str, from: i64, to: Option<i64>) -> Hold {
    Hold {
        key: key(item),
        epoch: Epoch(1),
        session: SessionId::mint(1, [0; 10]),
        life: Life::FIRST,
        request: None,
        means: Means::Claim,
        note: None,
        home: None,
        granted_at: Timestamp(from),
        taken_from: None,
        ended: to.map(|at| HoldEnd {
            at: Timestamp(at),
            by: EndedBy::Release,
        }),
    }
}

fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input, output }
}

/// Records of 10 bytes each, from the first byte that is to be read on.
fn transcript(from: ReadMark, records: &[(i64, &str, u64)]) -> ReadTranscript {
    let mut begin = from.last;
    let mut placed = Vec::new();
    for (at, total_of, input) in records {
        placed.push(CountedRecord {
            at: Timestamp(*at),
            total_of: (*total_of).to_owned(),
            tokens: tokens(*input, 1),
            begin,
        });
        begin += 10;
    }
    ReadTranscript {
        source: "c-1".into(),
        from,
        records: placed,
        end: begin,
    }
}

fn plain(holds: &[Hold], runs: &[RunTime]) -> (Vec<Hold>, Vec<RunTime>, Zone) {
    (holds.to_vec(), runs.to_vec(), Zone::utc())
}

fn added(
    read: &ReadTranscript,
    (holds, runs, zone): &(Vec<Hold>, Vec<RunTime>, Zone),
) -> (Vec<(Option<String>, u64)>, ReadMark) {
    let by = Attribution {
        holds,
        runs,
        forked_at: None,
        zone,
    };
    let new = add_up(read, &by);
    let sums = new.sums.into_iter();
    let shown = sums.map(|((_, item), sum)| (item.map(|item| item.to_string()), sum.input));
    (shown.collect(), new.mark)
}

#[test]
fn an_answer_that_has_several_records_counts_once() {
    let all = transcript(
        ReadMark::default(),
        &[(1, "a", 10), (2, "a", 10), (3, "b", 5), (4, "a", 12)],
    );
    let (sums, mark) = added(&all, &plain(&[], &[]));
    assert_eq!(sums, [(None, 17)]);
    assert_eq!(mark, ReadMark { end: 40, last: 30 });
}

#[test]
fn reading_goes_on_with_the_last_record_and_counts_what_is_new() {
    let first = transcript(ReadMark::default(), &[(1, "whole", 10), (2, "whole", 25)]);
    let (sums, mark) = added(&first, &plain(&[], &[]));
    assert_eq!(sums, [(None, 25)]);
    // The last record is read again, and is what the next one adds to.
    let next = transcript(mark, &[(2, "whole", 25), (3, "whole", 40)]);
    let (sums, mark) = added(&next, &plain(&[], &[]));
    assert_eq!(sums, [(None, 15)]);
    // A compacted conversation begins to count again.
    let less = transcript(mark, &[(3, "whole", 40), (4, "whole", 7)]);
    assert_eq!(added(&less, &plain(&[], &[])).0, [(None, 7)]);
    let nothing = transcript(mark, &[(3, "whole", 40)]);
    assert_eq!(added(&nothing, &plain(&[], &[])), (vec![], mark));
}

#[test]
fn a_transcript_without_records_is_not_read_again() {
    let read = ReadTranscript {
        end: 500,
        ..transcript(ReadMark::default(), &[])
    };
    let (_, mark) = added(&read, &plain(&[], &[]));
    assert_eq!(
        mark,
        ReadMark {
            end: 500,
            last: 500
        }
    );
}

#[test]
fn a_record_counts_for_the_item_that_was_held_then() {
    let holds = [
        hold("issue:acme/web#1", 10, Some(50)),
        hold("issue:acme/web#2", 30, None),
        hold("path:acme/web:src/**", 40, None),
    ];
    let all = transcript(
        ReadMark::default(),
        &[(5, "a", 1), (20, "b", 2), (45, "c", 4), (60, "d", 8)],
    );
    let (sums, _) = added(&all, &plain(&holds, &[]));
    assert_eq!(
        sums,
        [
            (None, 1),
            (Some("issue:acme/web#1".into()), 2),
            (Some("issue:acme/web#2".into()), 12),
        ]
    );
}

#[test]
fn a_day_is_that_of_the_record_in_the_zone_of_the_machine() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap().0;
    let all = transcript(
        ReadMark::default(),
        &[
            (at("2026-11-18T22:59:00Z"), "a", 1),
            (at("2026-11-18T23:01:00Z"), "b", 2),
        ],
    );
    let zone = Zone::spelt_out("CET-1").unwrap();
    let by = Attribution {
        holds: &[],
        runs: &[],
        forked_at: None,
        zone: &zone,
    };
    let sums = add_up(&all, &by).sums;
    let days: Vec<(&str, u64)> = sums
        .iter()
        .map(|((day, _), sum)| (day.as_str(), sum.input))
        .collect();
    assert_eq!(days, [("2026-11-18", 1), ("2026-11-19", 2)]);
}

fn run(from: i64, to: Option<i64>, reports: bool) -> RunTime {
    RunTime {
        item: key("wp:run"),
        begun_at: Timestamp(from),
        ended_at: to.map(Timestamp),
        reports,
    }
}

#[test]
fn what_a_run_reports_itself_is_not_counted_twice() {
    let records = [(5, "a", 1), (20, "b", 2), (60, "c", 4)];
    let all = transcript(ReadMark::default(), &records);
    let reported = plain(&[], &[run(10, Some(30), true)]);
    assert_eq!(added(&all, &reported).0, [(None, 5)]);
    // One that was killed reports nothing.
    let silent = plain(&[], &[run(10, Some(30), false)]);
    let expected = [(None, 5), (Some("wp:run".into()), 2)];
    assert_eq!(added(&all, &silent).0, expected);
}

#[test]
fn records_of_a_run_that_has_not_ended_wait_for_its_end() {
    let all = transcript(
        ReadMark::default(),
        &[(5, "a", 1), (20, "b", 2), (25, "c", 4)],
    );
    let (sums, mark) = added(&all, &plain(&[], &[run(10, None, false)]));
    assert_eq!(sums, [(None, 1)]);
    assert_eq!(mark, ReadMark { end: 10, last: 0 });
    let rest = transcript(mark, &[(5, "a", 1), (20, "b", 2), (25, "c", 4)]);
    let (sums, mark) = added(&rest, &plain(&[], &[run(10, Some(22), false)]));
    assert_eq!(sums, [(None, 4), (Some("wp:run".into()), 2)]);
    assert_eq!(mark.end, 30);
}

#[test]
fn what_a_fork_brought_along_is_its_origins() {
    let all = transcript(ReadMark::default(), &[(5, "a", 1), (20, "b", 2)]);
    let zone = Zone::utc();
    let by = Attribution {
        holds: &[],
        runs: &[],
        forked_at: Some(Timestamp(10)),
        zone: &zone,
    };
    let sums: Vec<u64> = add_up(&all, &by)
        .sums
        .values()
        .map(|sum| sum.input)
        .collect();
    assert_eq!(sums, [2]);
}

#[test]
fn usage_is_added_up_by_what_is_asked_for() {
    let used = |n: u8, agent: &str, day: &str, item: Option<&str>, input, cost| Used {
        session: Some(SessionId::mint(i64::from(n), [n; 10])),
        agent: AgentName::parse(agent).unwrap(),
        day: Day::parse(day).unwrap(),
        item: item.map(key),
        sum: UsageSum {
            tokens: tokens(input, 1),
            cost,
        },
    };
    let all = [
        used(1, "claude", "2026-11-18", Some("wp:1"), 10, Some(0.5)),
        used(1, "claude", "2026-11-19", None, 5, None),
        used(2, "codex", "2026-11-19", Some("wp:1"), 30, None),
    ];
    let by = |by| {
        let listed = sums(by, &all).into_iter();
        let shown = listed.map(|(of, sum)| {
            let of = match of {
                UsageOf::Session(id) => id.map_or("none".into(), |id| id.to_string()),
                UsageOf::Item(item) => item.map_or("none".into(), |item| item.to_string()),
                UsageOf::Day(day) => day.to_string(),
                UsageOf::Agent(agent) => agent,
            };
            (of, sum.tokens.input, sum.cost)
        });
        shown.collect::<Vec<_>>()
    };
    let row = |of: &str, input, cost| (of.to_owned(), input, cost);
    assert_eq!(
        by(UsageBy::Day),
        [
            row("2026-11-19", 35, None),
            row("2026-11-18", 10, Some(0.5))
        ]
    );
    assert_eq!(
        by(UsageBy::Item),
        [row("wp:1", 40, Some(0.5)), row("none", 5, None)]
    );
    assert_eq!(
        by(UsageBy::Agent),
        [row("codex", 30, None), row("claude", 15, Some(0.5))]
    );
    assert_eq!(by(UsageBy::Session).len(), 2);
    assert_eq!(total(&all).tokens, tokens(45, 3));
}

#[test]
fn a_day_is_written_in_one_way() {
    for wrong in [
        "",
        "today",
        "2026-13-01",
        "20261119",
        "2026-11-19T00:00:00Z",
    ] {
        assert!(Day::parse(wrong).is_err(), "{wrong}");
    }
    assert_eq!(Day::parse("2026-11-19").unwrap().as_str(), "2026-11-19");
}

//! Every captured stream, and what it must mean.

use tenure_core::conversation::fitness::Left;
use tenure_core::run::Outcome;
use tenure_core::run::end::{End, Stop};
use tenure_core::run::progress::RunProgress;

use crate::captured::{self, Capture};

/// One stream per row: outcome, class of the error, what is left of the conversation, the beginning of its id,
/// turns, tokens in/out, cost, until when the agent is parked, and the answer. A capture that was ended from outside
/// counts as a timeout.
const EXPECTED: &str = include_str!("table.txt");

fn row(capture: &Capture, seen: &RunProgress, end: &End) -> String {
    let none = || "-".to_owned();
    let class = end.error.as_ref().map_or("-", |error| error.class.as_str());
    let left = if end.left == Left::Sound {
        "-"
    } else {
        end.left.as_str()
    };
    let start_of = |text: &str, most: usize| text.chars().take(most).collect::<String>();
    let id = seen.id().map_or_else(none, |id| start_of(id.as_str(), 12));
    let usage = seen.usage();
    let number = |number: Option<u64>| number.map_or_else(none, |number| number.to_string());
    let tokens = format!("{}/{}", number(usage.tokens_in), number(usage.tokens_out));
    let cost = usage.cost.map_or_else(none, |cost| format!("{cost:.5}"));
    let park = end.park.map_or_else(none, |until| {
        let minutes = (until.at.0 - captured::NOW.0) / 60_000;
        let named = if until.named { "named" } else { "unnamed" };
        format!("{minutes}m-{named}")
    });
    let answer = seen
        .answer()
        .map_or_else(none, |answer| start_of(answer, 30));
    let row = format!(
        "{:<39} {:<11} {:<20} {left:<10} {id:<12} {:>2} {tokens:>5} {cost:>7} {park:<13} {answer}",
        capture.name,
        end.outcome.as_str(),
        class,
        number(usage.turns),
    );
    row.trim_end().to_owned()
}

#[test]
fn every_captured_stream_means_what_the_table_says() {
    let rows = captured::all().into_iter().map(|capture| {
        let seen = capture.seen();
        let stop = capture.gave_up.then_some(Stop::TimedOut);
        row(&capture, &seen, &capture.end(&seen, stop, None))
    });
    let found: Vec<String> = rows.collect();
    let expected: Vec<&str> = EXPECTED.lines().skip(1).collect();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len(), "{}", found.join("\n"));
}

/// A stop is recorded before the agent is told: whatever it says afterwards, short of success, it was stopped.
#[test]
fn a_stream_that_was_stopped_is_stopped_unless_it_had_succeeded() {
    for capture in captured::all() {
        let seen = capture.seen();
        for (stop, expected) in [
            (Stop::Asked, Outcome::Stopped),
            (Stop::TimedOut, Outcome::Timeout),
        ] {
            let end = capture.end(&seen, Some(stop), None);
            if seen.succeeded() {
                assert!(matches!(end.outcome, Outcome::Done | Outcome::Refused));
            } else {
                assert_eq!(end.outcome, expected, "{}", capture.name);
            }
            assert_eq!(
                (end.left, end.park),
                (Left::Sound, None),
                "{}",
                capture.name
            );
        }
    }
}

/// Claude Code, Codex and Qwen Code compact a history by themselves; the next resume may succeed, the next refusal counts.
#[test]
fn a_second_overflow_of_a_resume_is_unusable() {
    let names = [
        "claude-2.1.325/d-400long-2",
        "codex-0.166.0/d-ssefaillong-2",
        "qwen-0.24.4/d-400long",
        "qwen-0.24.4/an-413",
    ];
    for capture in captured::all() {
        if !names.contains(&capture.name.as_str()) {
            continue;
        }
        let seen = capture.seen();
        let first = capture.end(&seen, None, None);
        assert_eq!(
            (first.outcome, first.left),
            (Outcome::Failed, Left::Overflowed)
        );
        let second = capture.end(&seen, None, Some(first.left));
        assert_eq!(
            (second.outcome, second.left),
            (Outcome::Unusable, Left::Unusable)
        );
    }
}

/// What is refused as the first turn says nothing about a history; the same refusal of a resume does.
#[test]
fn the_same_refusals_of_a_resume_are_unusable() {
    let mut refusals = 0;
    for mut capture in captured::all() {
        let seen = capture.seen();
        let class = capture
            .end(&seen, None, None)
            .error
            .map(|error| error.class);
        let is_history = class.is_some_and(|class| class.as_str() == "history");
        if capture.resumed || !is_history {
            continue;
        }
        refusals += 1;
        capture.resumed = true;
        let end = capture.end(&seen, None, None);
        assert_eq!((end.outcome, end.left), (Outcome::Unusable, Left::Unusable));
    }
    assert!(refusals >= 8, "{refusals}");
}

/// opencode asks again at once, without end, when an answer is cut off.
#[test]
fn a_cut_answer_that_is_asked_for_again_and_again_is_a_loop() {
    for name in ["err-drop", "err-droptext", "err-garbage"] {
        let capture = captured::all()
            .into_iter()
            .find(|one| one.name.ends_with(&format!("opencode-1.18.33/{name}")));
        let mut capture = capture.expect("it was captured");
        assert!(!capture.seen().loops(), "{name}: a few steps are no loop");
        capture.stream = capture.stream.repeat(5);
        let seen = capture.seen();
        assert!(seen.loops(), "{name}");
        let end = capture.end(&seen, None, None);
        let class = end.error.map(|error| error.class.as_str());
        assert_eq!(
            (end.outcome, class),
            (Outcome::Failed, Some("loop")),
            "{name}"
        );
    }
}

/// An agent that waits inside shows it in its own lines: Claude Code, Codex and Qwen Code in the stream, Gemini on
/// stderr.
#[test]
fn an_agent_that_waits_for_its_provider_is_seen_to_wait() {
    for name in [
        "codex-0.166.0/err-429ralong",
        "codex-0.166.0/err-refused",
        "qwen-0.24.4/err-429quota",
    ] {
        let capture = captured::all().into_iter().find(|one| one.name == name);
        let seen = capture.expect("it was captured").seen();
        assert!(seen.waiting().is_some(), "{name}");
    }
    let capture = captured::all()
        .into_iter()
        .find(|one| one.name == "gemini-0.61.0/err-429code");
    let capture = capture.expect("it was captured");
    let run: &dyn tenure_agents::run::Runs = capture.run;
    let waits = capture
        .stderr
        .lines()
        .filter_map(|line| run.read_stderr(line));
    assert_eq!(waits.count(), 1);
    let fine = captured::all()
        .into_iter()
        .find(|one| one.name == "gemini-0.61.0/a-resume");
    let fine = fine.expect("it was captured");
    assert!(
        fine.stderr
            .lines()
            .all(|line| run.read_stderr(line).is_none())
    );
}

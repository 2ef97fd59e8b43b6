//! The timeline as people read it: one line per hold, with how it ended; a page for a browser, and a trace.

pub mod page;
#[cfg(test)]
mod sample;
pub mod trace;

use tenure_core::claim::EndedBy;
use tenure_core::text;
use tenure_core::time::{Span, Timestamp};
use tenure_host::clock;
use tenure_service::view::HoldView;

use crate::columns::{Cell, Column, column, fitted};
use crate::lines::Lines;

/// On a narrow terminal EPOCH goes first, then FROM and HELD.
const COLUMNS: &[Column] = &[
    column("KEY", 16, 0),
    column("EPOCH", 5, 3),
    column("HOLDER", 12, 0),
    column("FROM", 5, 2),
    column("HELD", 4, 1),
    column("END", 16, 0),
];

/// A table of holds, within this many columns.
pub fn holds(holds: &[HoldView], now: Timestamp, room: Option<usize>) -> Lines {
    if holds.is_empty() {
        return "nothing was held".into();
    }
    let zone = clock::zone();
    let row = |hold: &HoldView| {
        let length = hold.from.age_at(hold.to.unwrap_or(now));
        vec![
            Cell::ending(hold.key.clone(), hold.key.clone()),
            Cell::plain(hold.epoch.to_string()),
            Cell::plain(hold.session.handle.clone()),
            Cell::plain(zone.short(hold.from, now)),
            Cell::plain(Span(length).to_string()),
            Cell::state(ending(hold, now), colour(hold)),
        ]
    };
    let rows: Vec<Vec<Cell>> = holds.iter().map(row).collect();
    fitted(COLUMNS, &rows, room)
}

/// The state whose colour an end has.
fn colour(hold: &HoldView) -> &'static str {
    match (hold.ended_by, hold.suspect_since) {
        (None, Some(_)) => "suspect",
        (None, None) => "held",
        (Some("death" | "lease" | "taken"), _) => "dead",
        (Some(_), _) => "free",
    }
}

/// How a hold ended, or that it has not.
pub fn ending(hold: &HoldView, now: Timestamp) -> String {
    let Some(by) = hold.ended_by.and_then(|by| EndedBy::parse(by).ok()) else {
        return match hold.free_at {
            Some(free) => {
                let left = now.age_at(free);
                format!("suspect: its lease expired; free in {}", Span(left))
            }
            None => "held".to_owned(),
        };
    };
    let to = |verb: &str| match &hold.passed_to {
        Some(to) => format!("{verb} {}", to.handle),
        None => verb.split(' ').next().unwrap_or(verb).to_owned(),
    };
    let said = match by {
        EndedBy::Release => "released".to_owned(),
        EndedBy::Done => "done".to_owned(),
        EndedBy::End => "its session ended".to_owned(),
        EndedBy::Death => "its holder died".to_owned(),
        EndedBy::Lease => "its lease expired".to_owned(),
        EndedBy::Taken => to("taken by"),
        EndedBy::Handoff => to("handed to"),
    };
    match &hold.ended_why {
        Some(why) if by == EndedBy::Taken => format!("{said}: {}", text::quoted(why)),
        Some(why) => format!("{said}: {why}"),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use super::sample::{hold, name};
    use super::*;

    #[test]
    fn every_end_has_its_words() {
        let now = Timestamp(90_000);
        for by in EndedBy::NAMES {
            let said = ending(&hold(Some(by)), now);
            assert!(!said.is_empty() && said != "held", "{by}: {said}");
        }
        let taken = HoldView {
            passed_to: Some(name("codex-m3xa")),
            ended_why: Some("stuck".into()),
            ..hold(Some("taken"))
        };
        assert_eq!(ending(&taken, now), "taken by codex-m3xa: \"stuck\"");
        assert_eq!(ending(&hold(Some("taken")), now), "taken");
        assert_eq!(ending(&hold(Some("handoff")), now), "handed");
        let died = HoldView {
            ended_why: Some("pid 7 exited".into()),
            ..hold(Some("death"))
        };
        assert_eq!(ending(&died, now), "its holder died: pid 7 exited");
        let suspect = HoldView {
            suspect_since: Some(Timestamp(80_000)),
            free_at: Some(Timestamp(95_000)),
            ..hold(None)
        };
        let said = "suspect: its lease expired; free in 5s";
        assert_eq!(ending(&suspect, now), said);
    }

    #[test]
    fn a_narrow_terminal_keeps_what_was_held_by_whom_and_how_it_ended() {
        let rows = [hold(None), hold(Some("done"))];
        for width in [60, 40] {
            let text = holds(&rows, Timestamp(90_000), Some(width));
            for line in text.as_str().lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(text.as_str().contains("ann-k7qd"), "{width}");
            assert!(text.as_str().contains("done"), "{width}");
        }
    }
}

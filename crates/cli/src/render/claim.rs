//! Claims as people read them: one grant, a table, and why a key is as it is.

use tenure_core::time::{Span, Timestamp};
use tenure_host::clock;
use tenure_service::Why;
use tenure_service::view::ClaimView;

use crate::columns::{Cell, Column, column, fitted};
use crate::lines::Lines;
use crate::output::{Painted, paint};
use crate::screen;
use crate::standing::age;
use crate::survivors;

fn now() -> Timestamp {
    clock::wall()
}

pub fn grant(claim: &ClaimView) -> Lines {
    let already = claim.already_held == Some(true);
    let word = if already {
        "you already hold"
    } else {
        "claimed"
    };
    let mut text = Lines::from(format!("{word} {} (epoch {})", claim.key, claim.epoch));
    if let Some(previous) = &claim.taken_from {
        let (handle, proof) = (&previous.handle, &previous.proof);
        text.line(match previous.by.as_str() {
            "taken" => format!("  taken over from {handle}: {proof}"),
            _ => format!("  previous holder: {handle} ({proof})"),
        });
        let branch = previous
            .branch
            .as_ref()
            .map_or(String::new(), |branch| format!(" (branch {branch})"));
        text.line(format!(
            "  check {}{branch} for unfinished work",
            previous.dir
        ));
        for held in &previous.also_ended {
            let (key, epoch) = (&held.key, held.epoch);
            text.line(format!(
                "  also taken from it: {key} (epoch {epoch}), which overlaps"
            ));
        }
        survivors::tell(&mut text, previous);
    }
    text
}

/// On a narrow terminal NOTE goes first, then EPOCH, SINCE and STATE.
const CLAIM_COLUMNS: &[Column] = &[
    column("KEY", 20, 0),
    column("STATE", 7, 1),
    column("HOLDER", 14, 0),
    column("SINCE", 5, 2),
    column("EPOCH", 5, 3),
    column("NOTE", 16, 4),
];

pub fn claims(claims: &[ClaimView]) -> Lines {
    claims_within(claims, screen::columns())
}

fn claims_within(claims: &[ClaimView], room: Option<usize>) -> Lines {
    if claims.is_empty() {
        return "no claims".into();
    }
    let now = now();
    let rows: Vec<Vec<Cell>> = claims
        .iter()
        .map(|claim| {
            let holder = claim
                .holder
                .as_ref()
                .map_or("-".to_owned(), |session| session.handle.clone());
            let since = claim.acquired_at.map_or("-".to_owned(), |at| age(at, now));
            vec![
                Cell::ending(claim.key.clone(), claim.key.clone()),
                Cell::state(claim.state, claim.state),
                Cell::plain(holder),
                Cell::plain(since),
                Cell::plain(claim.epoch.to_string()),
                Cell::plain(claim.note.clone().unwrap_or_else(|| "-".into())),
            ]
        })
        .collect();
    fitted(CLAIM_COLUMNS, &rows, room)
}

/// The explanation of a key.
pub fn why(why: &Why) -> Lines {
    let claim = &why.claim;
    let state = paint(claim.state, claim.state);
    let but = match why.why.answer.as_str() {
        "refused: overlaps" => ", but another claim overlaps it",
        _ => "",
    };
    let key = Painted::from(format!("{} is ", claim.key));
    let mut text = Lines::from(key.and(state).and(but));
    text.line(match why.why.answer.as_str() {
        "yours" => "  you hold this".to_owned(),
        "granted" => "  you can claim it now".to_owned(),
        "refused: overlaps" => "  you cannot claim it now".to_owned(),
        "refused: held" => match &claim.holder {
            Some(holder) => format!("  you cannot claim it now: {} holds it", holder.handle),
            None => "  you cannot claim it now: another session holds it".to_owned(),
        },
        "refused: done" => "  you cannot claim it now: it is done".to_owned(),
        "refused: cannot tell" => {
            "  you cannot claim it now: its holder may be alive, and cannot be checked from here"
                .to_owned()
        }
        answer => {
            let why = answer.strip_prefix("refused: ").unwrap_or(answer);
            format!("  you cannot claim it now: {why}")
        }
    });
    for line in &why.why.because {
        text.line(format!("  {line}"));
    }
    for waiter in &why.why.waiters {
        let who = waiter.session.as_deref().unwrap_or("a command");
        text.line(format!(
            "  {who} (pid {}) has been waiting in the queue for {}",
            waiter.pid,
            Span(waiter.since.age_at(now()))
        ));
    }
    for hint in &why.why.hints {
        text.line(format!("  {}", hint.sentence()));
    }
    text
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn claims_fit_a_narrow_terminal() {
        let claim = |key: &str| ClaimView {
            key: key.to_owned(),
            epoch: 12,
            holder: None,
            state: "suspect",
            acquired_at: None,
            freed_by: None,
            lease_until: None,
            note: Some("until the release is out".to_owned()),
            already_held: None,
            may_write_until: None,
            taken_from: None,
            via: None,
            age: None,
        };
        let all = [claim("issue:acme/web-of-things#42"), claim("wp:1")];
        let text = claims_within(&all, Some(40));
        for line in text.as_str().lines() {
            assert!(line.width() <= 40, "{line}");
        }
        assert!(text.as_str().contains("things#42"), "{}", text.as_str());
    }
}

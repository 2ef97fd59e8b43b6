//! Runs all checks on one history, and reports what they find.

use std::collections::HashMap;

use super::audit::Audit;
use super::history::{Call, History};
use super::keys::{CROWD, LINE, SILENT, SPACES};
use super::memory;
use super::model::{KeyStates, Model, Space};
use super::order::{MAX_TRIED, Puzzle, SearchOutcome};
use super::places;
use super::record::{CallAnswer, Op};
use super::rule::{self, Violation};
use super::served;
use super::shrink::{describe, shorten};

/// Checks a history, and the store that it left if there is one.
pub fn check(history: &History, audit: Option<&Audit>) -> Vec<Violation> {
    let mut found = rule::violations(history);
    found.extend(
        audit
            .map(|audit| audit.violations(history))
            .unwrap_or_default(),
    );
    // On a server, something keeps the store from answering every second or so, and a waiter that cannot ask is not
    // passed over: it is granted the key when it is heard again. So how long a free key stays free shows nothing there.
    if !history.may_be_away() {
        found.extend(served::violations(history, audit));
    }
    found.extend(memory::violations(history, audit));
    found.extend(places::violations(history));
    let spaces = SPACES.iter().copied().chain([LINE, CROWD]);
    for keys in spaces.chain(SILENT.chunks(1)) {
        found.extend(disorder(history, audit, &Space::new(keys)));
    }
    for keys in places::spaces(history) {
        found.extend(disorder(history, audit, &Space::new(&keys)));
    }
    found
}

/// A violation if no order of the calls on some keys explains all answers.
pub fn disorder(history: &History, audit: Option<&Audit>, space: &Space) -> Option<Violation> {
    let model = Model {
        space,
        liveness: history,
    };
    let nothing = HashMap::new();
    let fits = |state: &KeyStates| audit.is_none_or(|audit| audit.fits(space, state));
    let places: Vec<usize> = (0..history.calls.len())
        .filter(|place| model.concerns(&history.calls[*place]))
        .collect();
    let puzzle = Puzzle {
        model,
        calls: places.iter().map(|place| &history.calls[*place]).collect(),
        start: space.fresh(),
        log: audit.map_or(&nothing, |audit| &audit.events),
        fits: &fits,
        most_tried: MAX_TRIED,
    };
    let stuck = match puzzle.solve() {
        SearchOutcome::Ordered { .. } => return None,
        SearchOutcome::Stuck(stuck) => stuck,
    };
    let name = |life: usize| history.lives[life].name.clone();
    // A search that gave up proves nothing either way.
    let (rule, how) = if stuck.exhausted {
        ("linearizable", "every order was tried")
    } else {
        ("inconclusive", "the search gave up")
    };
    let what = format!(
        "{} has no order that explains its answers ({how}; {} of {} calls can be placed, then {})",
        space.keys.join(" "),
        stuck.placed,
        puzzle.calls.len(),
        describe(space, &stuck.state, &name)
    );
    let short = shorten(&puzzle, &stuck);
    let calls = short.calls.iter().map(|call| places[*call]).collect();
    Some(Violation {
        before: Some(describe(space, &short.before, &name)),
        ..Violation::new(rule, what, calls)
    })
}

pub fn tell(history: &History, violation: &Violation) -> String {
    let mut lines = vec![format!(
        "VIOLATION of {:?}: {}",
        violation.rule, violation.what
    )];
    let before = violation.before.iter();
    lines.extend(before.map(|before| format!("  before: {before}")));
    let calls = violation.calls.iter();
    lines.extend(calls.map(|call| format!("  {}", tell_call(history, &history.calls[*call]))));
    lines.join("\n")
}

fn tell_call(history: &History, call: &Call) -> String {
    let zero = history.calls.first().map_or(0, |first| first.asked);
    let time = |at: u64| match at {
        u64::MAX => "never".to_owned(),
        at => format!(
            "{:.6}s",
            std::time::Duration::from_nanos(at - zero).as_secs_f64()
        ),
    };
    let life = &history.lives[call.life];
    let session = call.session.as_deref().unwrap_or("nobody");
    let answer = match &call.answer {
        None => "no answer".to_owned(),
        Some(answer) => tell_answer(answer),
    };
    let doom = match life.doomed {
        u64::MAX => String::new(),
        doomed => format!(", killed {} gone {}", time(doomed), time(life.gone)),
    };
    format!(
        "{} [{} to {}] {session} (pid {}{doom}): {} -> {answer}",
        call.tag,
        time(call.asked),
        time(call.until),
        life.pid,
        tell_op(&call.op),
    )
}

fn tell_op(op: &Op) -> String {
    serde_json::to_string(op).unwrap_or_else(|_| format!("{op:?}"))
}

fn tell_answer(answer: &CallAnswer) -> String {
    serde_json::to_string(answer).unwrap_or_else(|_| format!("{answer:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::HoldRow;
    use crate::story::{
        Story, claim, grant, granted, guard, held, refused, release, takeover, yes,
    };

    const KEY: &str = "wp:1";

    fn found(story: &Story) -> (History, Option<Violation>) {
        let history = story.history();
        let violation = disorder(&history, None, &Space::new(&[KEY]));
        (history, violation)
    }

    /// Many correct calls, then a robbery among unrelated calls.
    fn robbery() -> Story {
        let mut story = Story::default();
        let (a, b, c) = (story.life("a"), story.life("b"), story.life("c"));
        for turn in 0..20 {
            let (at, epoch) = (turn * 10, turn + 1);
            let claimed = granted(&[grant(KEY, epoch)]);
            story.call(a, "A", at + 1, at + 2, claim(&[KEY]), claimed);
            story.call(b, "B", at + 3, at + 4, claim(&[KEY]), held(KEY, "A", epoch));
            story.call(a, "A", at + 5, at + 6, release(KEY), yes(epoch));
        }
        let claimed = granted(&[grant(KEY, 21)]);
        story.call(a, "A", 301, 302, claim(&[KEY]), claimed);
        story.call(c, "C", 303, 320, guard(KEY, 7), held(KEY, "A", 21));
        story.call(b, "B", 304, 305, takeover(KEY), refused("free", KEY));
        let mut stolen = grant(KEY, 22);
        stolen.taken_from = Some(("A".into(), 21));
        story.call(c, "C", 321, 322, claim(&[KEY]), granted(&[stolen]));
        story
    }

    #[test]
    fn a_contradiction_is_told_with_few_calls() {
        let (history, violation) = found(&robbery());
        let violation = violation.unwrap();
        let told = tell(&history, &violation);
        let ops: Vec<&Op> = violation
            .calls
            .iter()
            .map(|call| &history.calls[*call].op)
            .collect();
        assert_eq!(ops, [&claim(&[KEY]), &takeover(KEY)], "{told}");
        assert!(told.contains("every order was tried"), "{told}");
        assert!(told.contains("before: wp:1: epoch 20"), "{told}");
    }

    fn audit_of(rows: &[(u64, &str, Option<&str>)]) -> Audit {
        let mut audit = Audit::default();
        for (epoch, session, ended_by) in rows {
            let row = HoldRow {
                session: (*session).into(),
                means: "claim".into(),
                note: None,
                ended_by: ended_by.map(str::to_owned),
            };
            audit.claims.insert(KEY.into(), *epoch);
            let holds = audit.holds.entry(KEY.into()).or_default();
            holds.insert(*epoch, row);
            audit.granted.insert((KEY.into(), *epoch));
            if ended_by.is_some() {
                audit.ended.insert((KEY.into(), *epoch));
            }
        }
        audit
    }

    fn judged(story: &Story, audit: &Audit) -> Vec<&'static str> {
        let history = story.history();
        let mut found = audit.violations(&history);
        found.extend(disorder(&history, Some(audit), &Space::new(&[KEY])));
        found.iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn an_acknowledged_change_that_the_store_does_not_have_is_found() {
        let mut story = Story::default();
        let a = story.life("a");
        story.call(a, "A", 1, 2, claim(&[KEY]), granted(&[grant(KEY, 1)]));
        assert_eq!(judged(&story, &audit_of(&[(1, "A", None)])), [""; 0]);
        let (stored, linear) = ("acknowledged means stored", "linearizable");
        assert_eq!(judged(&story, &audit_of(&[])), [stored, linear]);
        assert_eq!(
            judged(&story, &audit_of(&[(1, "B", None)])),
            [stored, linear]
        );
        let released = audit_of(&[(1, "A", Some("release"))]);
        assert_eq!(judged(&story, &released), [linear], "nobody released it");
        let tag = story.call(a, "A", 3, 4, release(KEY), yes(1));
        let mut right = audit_of(&[(1, "A", Some("release"))]);
        right.events.insert(tag, 2);
        assert_eq!(judged(&story, &right), [""; 0]);
        assert_eq!(
            judged(&story, &audit_of(&[(1, "A", None)])),
            [stored, linear]
        );
    }

    #[test]
    fn rows_that_contradict_each_other_are_found() {
        let story = Story::default();
        let whole = "a whole store";
        let two_open = audit_of(&[(1, "A", None), (2, "B", None)]);
        assert_eq!(judged(&story, &two_open)[0], whole);
        let hole = audit_of(&[(1, "A", Some("release")), (3, "B", None)]);
        assert_eq!(judged(&story, &hole)[0], whole);
        let mut unlogged = audit_of(&[(1, "A", None)]);
        unlogged.granted.clear();
        assert_eq!(judged(&story, &unlogged)[0], whole);
    }
}

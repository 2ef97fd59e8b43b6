//! The model and the search together, on handwritten histories: correct and broken ones.

use std::collections::HashMap;

use super::{Model, Space};
use crate::order::{MAX_TRIED, Puzzle, SearchOutcome};
use crate::record::{CallAnswer, Claim, Grant, Op, RefusalRecord};
use crate::story::{
    Story, claim, grant, granted, guard, held, refused, register, registered, release, takeover,
    yes,
};

const KEY: &str = "wp:1";

/// Whether an order of all calls exists, judged together on these keys.
fn is_ordered(story: &Story, keys: &[&str]) -> bool {
    let history = story.history();
    let space = Space::new(keys);
    let model = Model {
        space: &space,
        liveness: &history,
    };
    let puzzle = Puzzle {
        model,
        calls: history
            .calls
            .iter()
            .filter(|call| model.concerns(call))
            .collect(),
        start: space.fresh(),
        log: &HashMap::new(),
        fits: &|_| true,
        most_tried: MAX_TRIED,
    };
    matches!(puzzle.solve(), SearchOutcome::Ordered { .. })
}

fn three() -> (Story, usize, usize, usize) {
    let mut story = Story::default();
    let (a, b, c) = (story.life("a"), story.life("b"), story.life("c"));
    (story, a, b, c)
}

fn from(grant: Grant, session: &str, epoch: u64) -> Grant {
    Grant {
        taken_from: Some((session.into(), epoch)),
        ..grant
    }
}

/// The key, taken from a session that had the previous epoch.
fn won(epoch: u64, session: &str) -> Option<CallAnswer> {
    granted(&[from(grant(KEY, epoch), session, epoch - 1)])
}

#[test]
fn overlapping_calls_find_their_order() {
    let (mut story, a, b, c) = three();
    story.call(a, "A", 1, 20, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    story.call(b, "B", 2, 19, claim(&[KEY]), granted(&[grant(KEY, 2)]));
    story.call(c, "C", 3, 18, claim(&[KEY]), held(KEY, "A", 1));
    assert!(!is_ordered(&story, &[KEY]));
    story.call(a, "A", 21, 30, release(KEY), yes(1));
    assert!(!is_ordered(&story, &[KEY]));
    let (mut story, a, b, c) = three();
    story.call(a, "A", 1, 5, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    story.call(a, "A", 6, 20, release(KEY), yes(1));
    story.call(b, "B", 2, 19, claim(&[KEY]), granted(&[grant(KEY, 2)]));
    story.call(c, "C", 3, 18, claim(&[KEY]), held(KEY, "A", 1));
    assert!(is_ordered(&story, &[KEY]));
}

#[test]
fn two_holders_have_no_order() {
    let (mut story, a, b, _) = three();
    story.call(a, "A", 1, 2, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    story.call(b, "B", 3, 4, claim(&[KEY]), won(2, "A"));
    assert!(!is_ordered(&story, &[KEY]), "the living are not robbed");
    story.killed(a, 4, 5);
    assert!(is_ordered(&story, &[KEY]), "the dead do not block");
}

#[test]
fn an_epoch_given_twice_has_no_order() {
    let (mut story, a, b, _) = three();
    story.call(a, "A", 1, 2, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    story.call(a, "A", 3, 4, release(KEY), yes(1));
    story.call(b, "B", 5, 6, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    assert!(!is_ordered(&story, &[KEY]));
}

#[test]
fn an_acknowledged_grant_that_is_gone_has_no_order() {
    let (mut story, a, b, _) = three();
    story.call(a, "A", 1, 2, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    let mut guarded = story.clone();
    story.call(b, "B", 3, 4, guard(KEY, 1), refused("free", KEY));
    assert!(!is_ordered(&story, &[KEY]));
    guarded.call(a, "A", 3, 4, guard(KEY, 1), refused("free", KEY));
    assert!(!is_ordered(&guarded, &[KEY]));
}

#[test]
fn a_stale_yes_has_no_order() {
    let (mut story, a, b, _) = three();
    story.call(a, "A", 1, 2, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    story.call(b, "B", 3, 4, takeover(KEY), won(2, "A"));
    let mut told = story.clone();
    story.call(a, "A", 5, 6, guard(KEY, 1), yes(1));
    assert!(!is_ordered(&story, &[KEY]));
    told.call(a, "A", 5, 6, guard(KEY, 1), refused("lost", KEY));
    assert!(is_ordered(&told, &[KEY]));
    told.call(a, "A", 7, 8, guard(KEY, 1), held(KEY, "B", 2));
    assert!(
        !is_ordered(&told, &[KEY]),
        "the session that lost it is told so"
    );
}

#[test]
fn the_dead_do_not_block() {
    let (mut story, a, b, _) = three();
    story.killed(a, 3, 5);
    story.call(a, "A", 1, 2, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    let mut early = story.clone();
    early.call(b, "B", 4, 9, claim(&[KEY]), held(KEY, "A", 1));
    assert!(is_ordered(&early, &[KEY]));
    story.call(b, "B", 6, 9, claim(&[KEY]), held(KEY, "A", 1));
    assert!(!is_ordered(&story, &[KEY]));
}

#[test]
fn the_unanswered_happened_before_their_process_was_gone_or_never() {
    let (mut story, a, b, _) = three();
    story.killed(a, 8, 10);
    story.call(a, "A", 1, 10, claim(&[KEY]), None);
    let mut never = story.clone();
    let mut late = story.clone();
    story.call(b, "B", 12, 13, claim(&[KEY]), won(2, "A"));
    assert!(is_ordered(&story, &[KEY]));
    never.call(b, "B", 12, 13, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    assert!(is_ordered(&never, &[KEY]));
    late.call(b, "B", 12, 13, guard(KEY, 1), refused("free", KEY));
    late.call(b, "B", 14, 15, claim(&[KEY]), granted(&[grant(KEY, 3)]));
    assert!(!is_ordered(&late, &[KEY]));
}

#[test]
fn a_read_that_fits_does_not_shut_out_an_earlier_caller() {
    let (mut story, a, b, c) = three();
    story.killed(a, 3, 4);
    story.killed(b, 8, 10);
    story.call(a, "A", 1, 2, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    story.call(b, "B", 5, 10, takeover(KEY), None);
    // Correct before B's takeover, and after it too: both previous holders are dead.
    story.call(c, "C", 12, 13, guard(KEY, 1), refused("free", KEY));
    story.call(c, "C", 14, 15, claim(&[KEY]), won(3, "B"));
    assert!(is_ordered(&story, &[KEY]));
}

#[test]
fn what_ended_with_a_session_is_granted_again() {
    let (mut story, a, b, _) = three();
    story.killed(a, 5, 6);
    story.call(a, "", 1, 2, register("n"), registered("A", "new", &[]));
    story.call(a, "A", 3, 4, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    for (regranted, right) in [
        (&[(KEY, 2)][..], true),
        (&[][..], false),
        (&[(KEY, 3)][..], false),
    ] {
        let mut story = story.clone();
        story.call(
            b,
            "",
            7,
            8,
            register("n"),
            registered("A", "resumed", regranted),
        );
        assert_eq!(is_ordered(&story, &[KEY]), right, "{regranted:?}");
    }
    story.call(b, "B", 7, 8, claim(&[KEY]), won(2, "A"));
    let c = story.life("c");
    story.call(c, "", 9, 10, register("n"), registered("A", "resumed", &[]));
    story.call(c, "A", 11, 12, release(KEY), refused("lost", KEY));
    assert!(is_ordered(&story, &[KEY]));
}

#[test]
fn a_retry_is_answered_like_the_first_time() {
    let (mut story, a, _, _) = three();
    let ask = || {
        Op::Claim(Claim {
            keys: vec![KEY.into()],
            request: Some("r".into()),
            ..Claim::default()
        })
    };
    story.call(a, "A", 1, 2, ask(), granted(&[grant(KEY, 1)]));
    story.call(a, "A", 3, 4, ask(), granted(&[grant(KEY, 1)]));
    assert!(is_ordered(&story, &[KEY]));
    story.call(a, "A", 5, 6, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    assert!(
        !is_ordered(&story, &[KEY]),
        "without the request it is already held"
    );
}

#[test]
fn all_or_none_and_the_first_free() {
    let (mut story, a, b, _) = three();
    let any = |keys: &[&str]| {
        let Op::Claim(claim) = claim(keys) else {
            unreachable!("a claim")
        };
        Op::Claim(Claim { any: true, ..claim })
    };
    let keys = &["wp:1", "wp:2"];
    story.call(a, "A", 1, 2, claim(&["wp:1"]), granted(&[grant("wp:1", 1)]));
    let mut all = story.clone();
    let mut wrong = story.clone();
    story.call(b, "B", 3, 4, any(keys), granted(&[grant("wp:2", 1)]));
    let none = RefusalRecord {
        kind: "held".into(),
        none_free: true,
        holder: Some("A".into()),
        epoch: Some(1),
        key: Some("wp:1".into()),
        ..RefusalRecord::default()
    };
    let c = story.life("c");
    story.call(c, "C", 5, 6, any(keys), Some(CallAnswer::Refused(none)));
    assert!(is_ordered(&story, keys));
    wrong.call(a, "A", 3, 4, release("wp:1"), yes(1));
    wrong.call(b, "B", 5, 6, any(keys), granted(&[grant("wp:2", 1)]));
    assert!(!is_ordered(&wrong, keys), "the first was free");
    all.call(b, "B", 3, 4, claim(keys), held("wp:1", "A", 1));
    all.call(b, "B", 5, 6, claim(&["wp:2"]), granted(&[grant("wp:2", 2)]));
    assert!(
        !is_ordered(&all, keys),
        "a refusal left something half granted"
    );
}

#[test]
fn one_file_has_one_holder() {
    let (mut story, a, b, _) = three();
    let (wide, narrow) = ("path:o/r:src/**", "path:o/r:src/db/x.rs");
    let keys = &[wide, narrow];
    story.call(a, "A", 1, 2, claim(&[wide]), granted(&[grant(wide, 1)]));
    story.call(a, "A", 3, 4, guard(narrow, 1), yes(1));
    let mut robbed = story.clone();
    let overlaps = RefusalRecord {
        kind: "overlaps".into(),
        key: Some(narrow.into()),
        rival: Some(wide.into()),
        holder: Some("A".into()),
        epoch: Some(1),
        ..RefusalRecord::default()
    };
    let refusal = Some(CallAnswer::Refused(overlaps));
    story.call(b, "B", 5, 6, claim(&[narrow]), refusal.clone());
    story.call(b, "B", 7, 8, guard(narrow, 1), refusal);
    assert!(is_ordered(&story, keys));
    robbed.call(b, "B", 5, 6, claim(&[narrow]), granted(&[grant(narrow, 1)]));
    assert!(!is_ordered(&robbed, keys));
    robbed.killed(a, 5, 5);
    assert!(is_ordered(&robbed, keys));
}

#[test]
fn a_takeover_takes_along_what_the_same_holder_has_beside_it() {
    let (mut story, a, b, c) = three();
    let (wide, narrow) = ("path:o/r:src/**", "path:o/r:src/db/x.rs");
    let keys = &[wide, narrow];
    story.call(a, "A", 1, 2, claim(&[wide]), granted(&[grant(wide, 1)]));
    story.call(a, "A", 3, 4, claim(&[narrow]), granted(&[grant(narrow, 1)]));
    let mut silent = story.clone();
    let mut refusal = story.clone();
    let won = from(grant(wide, 2), "A", 1);
    let named = Grant {
        also_ended: vec![(narrow.into(), 1)],
        ..won.clone()
    };
    story.call(b, "B", 5, 6, takeover(wide), granted(&[named]));
    let mut kept = story.clone();
    story.call(a, "A", 7, 8, guard(narrow, 1), refused("lost", narrow));
    story.call(b, "B", 9, 10, guard(narrow, 2), yes(2));
    story.call(c, "C", 11, 12, guard(wide, 1), held(wide, "B", 2));
    assert!(is_ordered(&story, keys));
    kept.call(a, "A", 7, 8, guard(narrow, 1), yes(1));
    assert!(!is_ordered(&kept, keys), "one file has one holder");
    silent.call(b, "B", 5, 6, takeover(wide), granted(&[won]));
    assert!(!is_ordered(&silent, keys), "the taker is told of all");
    let overlaps = RefusalRecord {
        kind: "overlaps".into(),
        key: Some(wide.into()),
        rival: Some(narrow.into()),
        holder: Some("A".into()),
        epoch: Some(1),
        ..RefusalRecord::default()
    };
    let answer = Some(CallAnswer::Refused(overlaps));
    refusal.call(b, "B", 5, 6, takeover(wide), answer);
    assert!(
        !is_ordered(&refusal, keys),
        "holds of one session bar nobody"
    );
}

#[test]
fn a_handoff_reaches_a_living_session_only() {
    let (mut story, a, b, _) = three();
    let hand = || Op::Handoff {
        key: KEY.into(),
        to: "B".into(),
        epoch: None,
    };
    story.call(b, "", 1, 2, register("b"), registered("B", "new", &[]));
    story.call(a, "A", 3, 4, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    story.call(a, "A", 10, 11, hand(), yes(2));
    story.call(b, "B", 12, 13, guard(KEY, 2), yes(2));
    assert!(is_ordered(&story, &[KEY]));
    story.killed(b, 7, 8);
    assert!(
        !is_ordered(&story, &[KEY]),
        "it was dead before it was asked for"
    );
}

#[test]
fn who_insists_on_quiet_gets_nothing_while_a_dead_holders_processes_run() {
    let (mut story, a, b, _) = three();
    let quiet = || {
        Op::Claim(Claim {
            keys: vec![KEY.into()],
            quiet: true,
            ..Claim::default()
        })
    };
    story.call(a, "", 1, 2, register("a"), registered("A", "new", &[]));
    story.call(a, "A", 3, 4, claim(&[KEY]), granted(&[grant(KEY, 1)]));
    story.killed(a, 10, 11);
    let mut without = story.clone();
    without.call(b, "B", 20, 21, quiet(), refused("survivors", KEY));
    assert!(!is_ordered(&without, &[KEY]), "it left nothing behind");
    story.sent(a, 5, 30);
    for (asked, until, answer, right) in [
        (20, 21, won(2, "A"), false),
        (20, 21, refused("survivors", KEY), true),
        (29, 31, won(2, "A"), true),
        (31, 32, won(2, "A"), true),
        (31, 32, refused("survivors", KEY), false),
    ] {
        let mut told = story.clone();
        told.call(b, "B", asked, until, quiet(), answer);
        assert_eq!(is_ordered(&told, &[KEY]), right, "{asked} to {until}");
    }
    let mut plain = story.clone();
    plain.call(b, "B", 20, 21, claim(&[KEY]), won(2, "A"));
    assert!(is_ordered(&plain, &[KEY]), "others do not mind");
}

use super::*;

const REGISTRY: &str = "its own registry";

fn told(doing: Doing, at: i64) -> Activity {
    Activity::new(doing, Timestamp(at))
}

fn said(doing: Doing, at: i64) -> OwnReport {
    OwnReport {
        doing: Some(doing),
        at: Timestamp(at),
        ..OwnReport::empty(REGISTRY, &[Doing::Busy, Doing::Waiting, Doing::Idle])
    }
}

fn words<'a>(events: Option<&'a Activity>, own: Option<&'a OwnReport>) -> Words<'a> {
    Words {
        events,
        seen_at: Timestamp(0),
        own,
        runs_since: None,
        suspended: false,
        asked: (None, None),
        attended_at: None,
        silent_ends: &[],
        now: Timestamp(0),
    }
}

#[test]
fn the_newer_word_counts() {
    let doing = |events: i64, own: i64| {
        let (events, own) = (told(Doing::Waiting, events), said(Doing::Idle, own));
        words(Some(&events), Some(&own)).newest().unwrap().doing
    };
    assert_eq!(doing(2, 1), Doing::Waiting);
    assert_eq!(doing(1, 2), Doing::Idle);
    assert_eq!(doing(1, 1), Doing::Idle);
}

#[test]
fn a_file_that_tells_every_change_holds_until_it_is_written_again() {
    let seen = |told_at: i64, now: i64, own: &OwnReport| {
        let stop = told(Doing::Idle, told_at);
        let all = Words {
            now: Timestamp(now),
            ..words(Some(&stop), Some(own))
        };
        let shown = all.newest().unwrap();
        (shown.doing, shown.source)
    };
    let busy = said(Doing::Busy, 1_000);
    let (by_file, by_event) = ((Doing::Busy, REGISTRY), (Doing::Idle, EVENTS));
    assert_eq!(seen(5_000, 7_000, &busy), by_event, "not written yet");
    assert_eq!(seen(5_000, 7_001, &busy), by_file, "a subagent goes on");
    let half = OwnReport {
        tells: &[Doing::Busy],
        ..busy
    };
    assert_eq!(seen(5_000, 7_001, &half), by_event, "it would not tell");
}

#[test]
fn a_command_that_began_after_the_question_was_allowed() {
    let seen = |doing: Doing, began: i64, own: Option<&OwnReport>| {
        let events = Activity {
            asks: Some("permission for `make`".into()),
            ..told(doing, 1_000)
        };
        let all = Words {
            runs_since: Some(Timestamp(began)),
            ..words(Some(&events), own)
        };
        let shown = all.newest().unwrap();
        (shown.doing, shown.source, shown.asks.is_some())
    };
    let asks = (Doing::Waiting, EVENTS, true);
    assert_eq!(seen(Doing::Waiting, 900, None), asks, "it ran before");
    assert_eq!(
        seen(Doing::Waiting, 1_199, None),
        asks,
        "too soon for a yes"
    );
    let runs = (Doing::Busy, PROCESSES, false);
    assert_eq!(seen(Doing::Waiting, 1_200, None), runs);
    assert_eq!(seen(Doing::Idle, 1_200, None).0, Doing::Idle);
    let cancelled = OwnReport {
        tells: &[Doing::Busy],
        ..said(Doing::Idle, 1_300)
    };
    assert_eq!(seen(Doing::Waiting, 1_200, Some(&cancelled)).0, Doing::Idle);
}

#[test]
fn a_tool_that_was_stopped_does_not_begin_a_turn() {
    let own = said(Doing::Idle, 10_000);
    let doing = |at: i64, attended: Option<i64>| {
        let events = told(Doing::Busy, at);
        let all = Words {
            attended_at: attended.map(Timestamp),
            ..words(Some(&events), Some(&own))
        };
        all.newest().unwrap().doing
    };
    assert_eq!(doing(10_300, None), Doing::Idle);
    assert_eq!(doing(10_300, Some(10_300)), Doing::Busy, "a prompt does");
    assert_eq!(doing(12_001, None), Doing::Busy);
}

#[test]
fn one_word_alone_counts() {
    let busy = told(Doing::Busy, 1);
    let only = words(Some(&busy), None).newest().unwrap();
    assert_eq!((only.doing, only.source), (Doing::Busy, EVENTS));
    let waits = said(Doing::Waiting, 1);
    let only = words(None, Some(&waits)).newest().unwrap();
    assert_eq!((only.doing, only.source), (Doing::Waiting, REGISTRY));
    assert_eq!(words(None, None).newest(), None);
}

#[test]
fn a_file_without_a_status_leaves_the_events() {
    let (busy, mute) = (told(Doing::Busy, 1), said(Doing::Idle, 9));
    let mute = OwnReport {
        doing: None,
        ..mute
    };
    let seen = words(Some(&busy), Some(&mute)).newest().unwrap();
    assert_eq!((seen.doing, seen.source), (Doing::Busy, EVENTS));
}

#[test]
fn an_old_file_of_the_same_state_makes_the_state_no_older() {
    let (events, own) = (told(Doing::Busy, 50), said(Doing::Busy, 10));
    let seen = words(Some(&events), Some(&own)).newest().unwrap();
    assert_eq!((seen.since, seen.source), (Timestamp(50), EVENTS));
}

#[test]
fn of_one_prompt_the_event_says_what_is_asked() {
    let asks = |at: i64, own_at: i64, doing: Doing| {
        let events = Activity {
            asks: Some("permission for `rm -rf build`".into()),
            ..told(Doing::Waiting, at)
        };
        let own = OwnReport {
            asks: Some("permission prompt".into()),
            ..said(doing, own_at)
        };
        words(Some(&events), Some(&own)).newest().unwrap().asks
    };
    let event = Some("permission for `rm -rf build`".to_owned());
    assert_eq!(asks(1_000, 1_200, Doing::Waiting), event);
    assert_eq!(asks(1_200, 1_000, Doing::Waiting), event);
    let later = asks(1_000, 60_000, Doing::Waiting);
    assert_eq!(later.as_deref(), Some("permission prompt"));
    assert_eq!(asks(1_000, 1_200, Doing::Idle), None);
}

#[test]
fn a_state_that_can_end_without_a_word_is_in_doubt_when_it_is_old() {
    let waits = told(Doing::Waiting, 0);
    let certain = |silent: &[Doing], seen_at: i64, now: i64, own: Option<&OwnReport>| {
        let all = Words {
            seen_at: Timestamp(seen_at),
            silent_ends: silent,
            now: Timestamp(now),
            ..words(Some(&waits), own)
        };
        all.newest().unwrap().certain
    };
    let silent = &[Doing::Waiting];
    assert!(certain(silent, 0, 60_000, None));
    assert!(!certain(silent, 0, 60_001, None));
    assert!(certain(silent, 30_000, 90_000, None), "it was heard of");
    assert!(
        certain(&[Doing::Busy], 0, 60_001, None),
        "this end has an event"
    );
    let older = said(Doing::Busy, -5);
    assert!(
        certain(silent, 0, 60_001, Some(&older)),
        "its file would have told"
    );
    let half = OwnReport {
        tells: &[Doing::Busy],
        ..older
    };
    assert!(!certain(silent, 0, 60_001, Some(&half)));
}

fn finished(events: &Activity, own: Option<&OwnReport>, attended: Option<i64>, now: i64) -> bool {
    let all = Words {
        now: Timestamp(now),
        ..words(Some(events), own)
    };
    let shown = all.newest();
    is_finished(shown.as_ref(), attended.map(Timestamp), Timestamp(now))
}

#[test]
fn a_turn_is_finished_until_a_person_was_there_or_it_is_old() {
    let ended = told(Doing::Finished, 100);
    assert!(finished(&ended, None, Some(50), 200));
    assert!(!finished(&ended, None, Some(100), 200));
    assert!(!finished(&ended, None, None, 200), "nobody was ever there");
    let half_an_hour = 30 * 60 * 1000;
    assert!(finished(&ended, None, Some(50), 99 + half_an_hour));
    assert!(!finished(&ended, None, Some(50), 100 + half_an_hour));
    for calm in [Doing::Idle, Doing::Busy, Doing::Failed] {
        assert!(!finished(&told(calm, 100), None, Some(50), 200), "{calm:?}");
    }
    let rests = said(Doing::Idle, 110);
    assert!(finished(&ended, Some(&rests), Some(50), 200));
    let much_later = said(Doing::Idle, 90_000);
    assert!(
        !finished(&ended, Some(&much_later), Some(101), 90_001),
        "a background command ended; the turn was seen"
    );
}

#[test]
fn what_a_person_ended_is_not_finished() {
    let by = |end: TurnEnd, at: i64| OwnReport {
        turn_end: Some(end),
        ..said(Doing::Idle, at)
    };
    let busy = told(Doing::Busy, 60);
    assert!(!finished(
        &busy,
        Some(&said(Doing::Idle, 110)),
        Some(50),
        200
    ));
    assert!(!finished(
        &busy,
        Some(&by(TurnEnd::ByPerson, 110)),
        Some(50),
        200
    ));
    assert!(finished(
        &busy,
        Some(&by(TurnEnd::ByItself, 110)),
        Some(50),
        200
    ));
    let command = told(Doing::Idle, 105);
    assert!(
        !finished(&command, Some(&by(TurnEnd::ByItself, 110)), Some(50), 200),
        "/compact is a turn to the file, not to the events"
    );
    let ended = told(Doing::Finished, 108);
    assert!(
        !finished(&ended, Some(&by(TurnEnd::ByPerson, 110)), Some(50), 200),
        "an agent that was cancelled also reports the end of its turn"
    );
}

#[test]
fn an_error_stays_when_the_agent_then_rests() {
    let failed = Activity {
        why: Some("500 Internal server error".into()),
        ..told(Doing::Failed, 100)
    };
    let rest = |doing: Doing| ActivityReport {
        doing,
        asks: None,
        why: None,
        until: None,
        is_new: false,
    };
    for limit in [Doing::Failed, Doing::Limited] {
        let failed = told(limit, 100);
        for doing in [Doing::Idle, Doing::Finished] {
            assert_eq!(after(Some(&failed), &rest(doing), Timestamp(101)), None);
        }
        let cleared = ActivityReport {
            is_new: true,
            ..rest(Doing::Idle)
        };
        assert!(after(Some(&failed), &cleared, Timestamp(101)).is_some());
        assert!(after(Some(&failed), &rest(Doing::Busy), Timestamp(101)).is_some());
    }
    let notified = after(
        Some(&told(Doing::Finished, 100)),
        &rest(Doing::Idle),
        Timestamp(160),
    );
    assert_eq!(notified, None, "the agent only says that it still rests");
    let reported = after(
        Some(&told(Doing::Idle, 90)),
        &rest(Doing::Failed),
        Timestamp(100),
    );
    assert_eq!(reported, Some(told(Doing::Failed, 100)), "rest came first");
    for rests_at in [90, 100, 105] {
        let own = said(Doing::Idle, rests_at);
        let all = Words {
            now: Timestamp(60_000),
            ..words(Some(&failed), Some(&own))
        };
        let shown = all.newest().unwrap();
        assert_eq!((shown.doing, shown.source), (Doing::Failed, EVENTS));
        assert_eq!(shown.why.as_deref(), Some("500 Internal server error"));
    }
    let later = said(Doing::Idle, 50_000);
    let shown = words(Some(&failed), Some(&later)).newest().unwrap();
    assert_eq!(shown.doing, Doing::Idle, "another turn ended since");
}

#[test]
fn a_limit_lasts_until_its_time() {
    let doing = |doing: Doing, until: Option<i64>, now: i64| {
        let limited = Activity {
            until: until.map(Timestamp),
            ..told(doing, 100)
        };
        let all = Words {
            now: Timestamp(now),
            ..words(Some(&limited), None)
        };
        all.newest().unwrap().doing
    };
    assert_eq!(doing(Doing::Limited, Some(9_000), 8_999), Doing::Limited);
    assert_eq!(doing(Doing::Limited, Some(9_000), 9_000), Doing::Failed);
    assert_eq!(doing(Doing::Limited, None, 9_000), Doing::Limited);
    assert_eq!(doing(Doing::Retrying, Some(60_200), 200), Doing::Retrying);
    assert_eq!(doing(Doing::Retrying, Some(60_201), 200), Doing::Limited);
    let event = told(Doing::Limited, 100);
    let file = OwnReport {
        until: Some(Timestamp(9_000)),
        ..said(Doing::Limited, 90)
    };
    let shown = words(Some(&event), Some(&file)).newest().unwrap();
    assert_eq!(
        shown.until,
        Some(Timestamp(9_000)),
        "only the file knows it"
    );
}

#[test]
fn requests_that_fail_are_no_progress() {
    let busy = told(Doing::Busy, 100);
    let tries = OwnReport {
        why: Some("attempt 3".into()),
        ..said(Doing::Retrying, 200)
    };
    let shown = words(Some(&busy), Some(&tries)).newest().unwrap();
    assert_eq!((shown.doing, shown.source), (Doing::Retrying, REGISTRY));
    let next = ActivityReport {
        doing: Doing::Retrying,
        asks: None,
        why: Some("attempt 4"),
        until: None,
        is_new: false,
    };
    let third = Activity {
        why: Some("attempt 3".into()),
        ..told(Doing::Retrying, 100)
    };
    let fourth = after(Some(&third), &next, Timestamp(300)).unwrap();
    assert_eq!(fourth.since, Timestamp(100), "it retries since then");
    assert_eq!(fourth.why.as_deref(), Some("attempt 4"));
}

#[test]
fn a_model_that_is_asked_twice_did_not_answer() {
    let busy = told(Doing::Busy, 100);
    let doing = |asked: (i64, i64), answered: Option<i64>, told: &Activity| {
        let own = OwnReport {
            doing: None,
            answered_at: answered.map(Timestamp),
            ..said(Doing::Idle, 0)
        };
        let all = Words {
            asked: (Some(Timestamp(asked.1)), Some(Timestamp(asked.0))),
            ..words(Some(told), Some(&own))
        };
        let shown = all.newest().unwrap();
        (shown.doing, shown.ended_by_itself)
    };
    assert_eq!(doing((110, 120), Some(90), &busy).0, Doing::Retrying);
    assert_eq!(doing((110, 120), None, &busy).0, Doing::Retrying);
    assert_eq!(doing((110, 120), Some(115), &busy).0, Doing::Busy);
    assert_eq!(doing((90, 120), None, &busy).0, Doing::Busy, "another turn");
    let wordless = told(Doing::Failed, 130);
    assert_eq!(doing((110, 120), Some(115), &wordless).0, Doing::Failed);
    assert_eq!(doing((110, 120), Some(125), &wordless), (Doing::Idle, true));
}

#[test]
fn a_stopped_process_is_suspended_whatever_it_did() {
    for before in [Doing::Busy, Doing::Waiting, Doing::Idle] {
        let events = told(before, 100);
        let all = Words {
            suspended: true,
            ..words(Some(&events), None)
        };
        let shown = all.newest().unwrap();
        assert_eq!((shown.doing, shown.source), (Doing::Suspended, KERNEL));
        assert!(shown.certain);
    }
}

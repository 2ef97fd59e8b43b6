use super::*;
use crate::top::sample::{NOW, session, ten};

fn shown() -> Top {
    let mut top = Top::default();
    top.take(ten(), NOW);
    top
}

fn handles(top: &Top) -> Vec<&str> {
    let sessions = top.sessions();
    sessions.iter().map(|one| one.handle.as_str()).collect()
}

fn under_cursor(top: &Top) -> &str {
    &top.chosen().unwrap().handle
}

#[test]
fn f_v11_the_cursor_stays_on_its_session_when_rows_move() {
    let mut top = shown();
    assert_eq!(under_cursor(&top), "claude-k7qd");
    top.press(Key::Down);
    assert_eq!(under_cursor(&top), "codex-m3xa");
    let mut moved = ten();
    moved.sessions.rotate_left(4);
    top.take(moved, NOW);
    assert_eq!(under_cursor(&top), "codex-m3xa");
    assert_eq!(handles(&top)[0], "claude-rf7b");
}

#[test]
fn f_v11_looking_at_a_session_does_not_move_its_row() {
    let mut top = shown();
    let before: Vec<String> = handles(&top).into_iter().map(str::to_owned).collect();
    let asked = top.press(Key::Enter);
    assert!(matches!(&asked[..], [Effect::Ask(Ask::Details(one))] if one.handle == "claude-k7qd"));
    let mut moved = ten();
    moved.sessions.rotate_left(4);
    moved.sessions[0].activity = Some("idle");
    assert!(top.take(moved, NOW).is_empty(), "it did not change itself");
    assert_eq!(handles(&top), before);
    let mut changed = ten();
    changed.sessions[0].activity = Some("busy");
    assert_eq!(top.take(changed, NOW).len(), 1, "it is read again");
    let mut more = ten();
    more.sessions.rotate_left(4);
    more.sessions.insert(0, session("claude-new0", "busy"));
    top.take(more, NOW);
    assert_eq!(handles(&top)[..10], before);
    assert_eq!(handles(&top)[10], "claude-new0", "what is new comes last");
    top.press(Key::Down);
    assert_eq!(handles(&top)[..10], before);
    top.press(Key::Escape);
    assert_eq!(
        handles(&top)[..2],
        ["claude-new0", "claude-rf7b"],
        "the order of every list again, at once"
    );
}

#[test]
fn a_chosen_session_that_is_gone_leaves_the_cursor_on_its_row() {
    let mut top = shown();
    top.press(Key::Down);
    top.press(Key::Down);
    let mut fewer = ten();
    fewer.sessions.remove(2);
    top.take(fewer, NOW);
    assert_eq!(under_cursor(&top), "qwen-x2mn");
    let mut moved = ten();
    moved.sessions.rotate_left(1);
    top.take(moved, NOW);
    assert_eq!(under_cursor(&top), "qwen-x2mn", "that one is chosen now");
    top.press(Key::End);
    assert_eq!(under_cursor(&top), "claude-k7qd", "the last one");
    let mut fewer = ten();
    fewer.sessions.remove(0);
    fewer.sessions.truncate(2);
    top.take(fewer, NOW);
    assert_eq!(under_cursor(&top), "gemini-p4wz");
}

#[test]
fn an_act_is_for_the_session_whose_details_are_shown() {
    let mut top = shown();
    top.press(Key::Down);
    top.press(Key::Down);
    top.press(Key::Enter);
    for key in "/codex".chars() {
        top.press(Key::Char(key));
    }
    top.press(Key::Enter);
    top.press(Key::Char('e'));
    assert!(matches!(&top.mode, Mode::Text { handle, .. } if handle == "gemini-p4wz"));
    top.press(Key::Escape);
    let mut fewer = ten();
    fewer.sessions.remove(2);
    top.take(fewer, NOW);
    assert!(top.details.is_none(), "it is not in the list any more");
}

#[test]
fn what_is_pasted_is_text_and_presses_no_key() {
    let mut top = shown();
    let paste = |top: &mut Top, text: &str| {
        for c in text.chars() {
            assert!(top.press(Key::Pasted(c)).is_empty());
        }
    };
    paste(&mut top, "q/e");
    assert_eq!(top.mode, Mode::Keys);
    top.press(Key::Char('t'));
    paste(&mut top, "one ey");
    assert!(matches!(&top.mode, Mode::Text { text, .. } if text == "one ey"));
    top.press(Key::Escape);
    top.press(Key::Down);
    top.press(Key::Char('d'));
    paste(&mut top, "y");
    assert!(matches!(top.mode, Mode::Confirm(Act::Dismiss, _)));
    top.press(Key::Escape);
    top.press(Key::Char('/'));
    paste(&mut top, "web");
    assert_eq!(top.filter, "web");
}

#[test]
fn while_something_is_done_only_the_second_q_quits() {
    let mut top = shown();
    top.press(Key::Char('t'));
    top.press(Key::Char('x'));
    assert_eq!(top.press(Key::Enter).len(), 1);
    let quits = |top: &mut Top| {
        let done = top.press(Key::Char('q'));
        matches!(&done[..], [Effect::Leave(TopExit::Quit)])
    };
    assert!(!quits(&mut top));
    let said = "still doing: tell claude-k7qd; press q again to quit";
    assert_eq!(top.said.as_deref(), Some(said));
    top.press(Key::Down);
    top.press(Key::Char('r'));
    let said = "cannot resume codex-m3xa: still doing: tell claude-k7qd";
    assert_eq!(top.said.as_deref(), Some(said));
    assert!(!quits(&mut top));
    assert!(quits(&mut top));
    top.take_done(Ok("done".to_owned()));
    assert!(quits(&mut top));
}

#[test]
fn an_act_that_does_not_fit_is_refused_with_the_reason() {
    let mut fleet = ten();
    let cut_off = fleet.sessions[1].resume.as_mut().unwrap();
    (cut_off.command, cut_off.problem) = (None, Some("its conversation is gone".to_owned()));
    fleet.sessions[0].host = Some("beta".to_owned());
    let mut top = Top::default();
    top.take(fleet, NOW);
    let mut refused = |key| {
        assert!(top.press(Key::Char(key)).is_empty());
        assert_eq!(top.mode, Mode::Keys);
        let said = top.said.clone();
        if key == 's' {
            top.press(Key::Down);
        }
        said.unwrap_or_default()
    };
    assert_eq!(refused('g'), "cannot go to claude-k7qd: it runs on beta");
    assert_eq!(
        refused('d'),
        "cannot dismiss claude-k7qd: it was not cut off"
    );
    assert!(refused('s').starts_with("cannot end what claude-k7qd left"));
    assert_eq!(
        refused('r'),
        "cannot resume codex-m3xa: its conversation is gone"
    );
    assert_eq!(refused('e'), "cannot end codex-m3xa: it is over");
}

#[test]
fn a_filter_keeps_what_contains_it_and_escape_shows_all() {
    let mut top = shown();
    for key in "/COLLIDES".chars() {
        top.press(Key::Char(key));
    }
    top.press(Key::Enter);
    assert_eq!(handles(&top), ["gemini-p4wz", "qwen-x2mn"]);
    assert_eq!(under_cursor(&top), "gemini-p4wz");
    top.press(Key::Escape);
    assert_eq!(handles(&top).len(), 10);
    for key in ["/", "zzz", "q"].concat().chars() {
        assert!(top.press(Key::Char(key)).is_empty(), "it is typed");
    }
    assert!(top.chosen().is_none());
    top.press(Key::Enter);
    assert!(
        top.press(Key::Char('t')).is_empty(),
        "there is nobody to tell"
    );
}

#[test]
fn groups_stand_in_the_order_of_their_first_session() {
    let mut fleet = ten();
    fleet.sessions[1].repo = Some("acme/docs".to_owned());
    fleet.sessions[9].repo = Some("acme/docs".to_owned());
    let mut top = Top::default();
    top.take(fleet, NOW);
    top.press(Key::Char('o'));
    let rows = top.rows();
    assert!(matches!(rows[0], Row::Group("acme/web")));
    assert!(matches!(rows[9], Row::Group("acme/docs")));
    assert_eq!(handles(&top)[8..], ["codex-m3xa", "codex-dddd"]);
}

#[test]
fn an_act_that_changes_something_is_confirmed() {
    let mut top = shown();
    top.press(Key::Down);
    assert!(top.press(Key::Char('d')).is_empty());
    assert!(top.press(Key::Char('n')).is_empty());
    assert_eq!(top.mode, Mode::Keys);
    top.press(Key::Char('d'));
    let done = top.press(Key::Char('y'));
    assert!(
        matches!(&done[..], [Effect::Ask(Ask::Do { act: Act::Dismiss, handle, .. })] if handle == "codex-m3xa")
    );
    top.take_done(Ok(String::new()));
    top.press(Key::Char('r'));
    let left = top.press(Key::Char('y'));
    assert!(matches!(&left[..], [Effect::Leave(TopExit::Resume(one))] if one == "codex-m3xa"));
    top.press(Key::Home);
    top.press(Key::Char('e'));
    assert!(top.press(Key::Enter).is_empty(), "it needs a reason");
    top.press(Key::Char('t'));
    for key in "quit?".chars() {
        assert!(top.press(Key::Char(key)).is_empty());
    }
    top.press(Key::Backspace);
    let told = top.press(Key::Enter);
    assert!(
        matches!(&told[..], [Effect::Ask(Ask::Do { act: Act::Tell, texts, .. })] if texts[..] == ["quit"])
    );
}

#[test]
fn a_store_that_goes_away_is_told_and_one_that_was_never_there_ends_it() {
    let problem = || {
        let hint = tenure_service::answer::Hint::verb("ps", "to list sessions");
        let class = tenure_service::answer::Class::Store;
        Problem::new(class, "store_unavailable", "no store", hint)
    };
    assert!(Top::default().take_problem(problem()).is_err());
    let mut top = shown();
    assert!(top.take_problem(problem()).is_ok());
    assert_eq!(top.trouble.as_deref(), Some("no store"));
    top.take(ten(), NOW);
    assert_eq!(top.trouble, None);
}

/// Types a text and Enter.
fn types(top: &mut Top, text: &str) -> Vec<Effect> {
    for c in text.chars() {
        assert!(top.press(Key::Char(c)).is_empty());
    }
    top.press(Key::Enter)
}

#[test]
fn an_item_is_freed_or_given_with_a_reason_and_chosen_among_those_that_are_held() {
    let mut fleet = ten();
    let held = |key: &str| tenure_service::view::HeldView {
        key: key.to_owned(),
        epoch: 1,
    };
    fleet.sessions[4].claims = Some(vec![held("wp:1"), held("wp:2")]);
    let mut top = Top::default();
    top.take(fleet, NOW);
    assert!(top.press(Key::Char('f')).is_empty());
    assert_eq!(
        top.said.as_deref(),
        Some("cannot free what claude-k7qd holds: it holds nothing")
    );
    for _ in 0..4 {
        top.press(Key::Down);
    }
    top.press(Key::Char('f'));
    top.press(Key::Down);
    assert!(top.press(Key::Enter).is_empty(), "it needs a reason");
    let done = types(&mut top, "stuck");
    assert!(
        matches!(&done[..], [Effect::Ask(Ask::Do { act: Act::Free, handle, texts })]
            if handle == "claude-rf7b" && texts[..] == ["wp:2", "stuck"])
    );
    top.take_done(Ok(String::new()));
    top.press(Key::Char('G'));
    top.press(Key::Enter);
    assert!(matches!(&top.mode, Mode::Text { text, .. } if text.is_empty()));
    top.press(Key::Up);
    assert!(matches!(&top.mode, Mode::Text { text, .. } if text == "codex-dddd"));
    top.press(Key::Up);
    top.press(Key::Enter);
    let done = types(&mut top, "it knows more");
    assert!(
        matches!(&done[..], [Effect::Ask(Ask::Do { act: Act::Give, texts, .. })]
            if texts[..] == ["wp:1", "codex-cccc", "it knows more"])
    );
}

#[test]
fn the_history_of_an_item_is_read_again_when_it_passes_to_another() {
    let mut top = shown();
    for _ in 0..4 {
        top.press(Key::Down);
    }
    let asked = top.press(Key::Char('h'));
    let key = "issue:acme/web#42";
    assert!(
        matches!(&asked[..], [Effect::Ask(Ask::Details(one))] if one.key.as_deref() == Some(key))
    );
    assert!(top.take(ten(), NOW).is_empty(), "nothing passed");
    let mut passed = ten();
    passed.claims[1].epoch = 2;
    assert_eq!(top.take(passed, NOW).len(), 1);
    assert!(matches!(&top.press(Key::Escape)[..], []));
    assert!(top.details.is_none());
}

#[test]
fn a_run_can_be_started_by_somebody_who_has_no_session_yet() {
    let mut top = Top::default();
    top.take(Fleet::default(), NOW);
    top.press(Key::Char('n'));
    types(&mut top, "claude");
    types(&mut top, "wp:1");
    let done = types(&mut top, "fix it");
    assert!(
        matches!(&done[..], [Effect::Ask(Ask::Do { act: Act::Run, handle, texts })]
            if handle.is_empty() && texts[..] == ["claude", "wp:1", "fix it"])
    );
}

#[test]
fn the_order_and_the_tree_are_chosen_and_the_cursor_stays() {
    let mut fleet = ten();
    fleet.sessions[9].parent = Some(fleet.sessions[0].id.clone());
    let mut top = Top::default();
    top.take(fleet, NOW);
    top.press(Key::Down);
    top.press(Key::Char('v'));
    assert_eq!(handles(&top)[..2], ["claude-k7qd", "codex-dddd"]);
    assert_eq!(top.branches()[1].depth, 1);
    assert_eq!(under_cursor(&top), "codex-m3xa");
    top.press(Key::Char('v'));
    top.press(Key::Char('S'));
    top.press(Key::Char('S'));
    assert!(handles(&top).is_sorted());
    assert_eq!(under_cursor(&top), "codex-m3xa");
    top.press(Key::Char('S'));
    assert_eq!(handles(&top)[0], "claude-k7qd");
}

#[test]
fn a_click_chooses_a_row_and_a_second_one_shows_it() {
    let mut top = shown();
    assert!(top.click("id-gemini-p4wz").is_empty());
    assert_eq!(under_cursor(&top), "gemini-p4wz");
    let asked = top.click("id-gemini-p4wz");
    assert!(matches!(&asked[..], [Effect::Ask(Ask::Details(one))] if one.handle == "gemini-p4wz"));
    top.press(Key::Wheel(1));
    assert_eq!(top.details.as_ref().map(|shown| shown.above), Some(3));
    top.press(Key::Escape);
    top.press(Key::Wheel(-1));
    assert_eq!(under_cursor(&top), "claude-k7qd");
    top.press(Key::Char('t'));
    assert!(top.click("id-gemini-p4wz").is_empty());
    assert_eq!(
        under_cursor(&top),
        "claude-k7qd",
        "while something is typed"
    );
}

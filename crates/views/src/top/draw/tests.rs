use unicode_width::UnicodeWidthStr;

use super::*;
use crate::top::keys::Key;
use crate::top::sample::{NOW, session, ten};

fn shown(fleet: Fleet) -> Top {
    let mut top = Top::default();
    top.take(fleet, NOW);
    top
}

fn drawn(top: &Top, columns: usize, rows: usize) -> Vec<String> {
    frame(top, Size { columns, rows }, NOW)
}

#[test]
fn the_first_screen_of_ten_sessions_answers_the_four_questions() {
    let lines = drawn(&shown(ten()), 80, 24);
    let screen = lines.join("\n");
    let row = |word: &str| {
        let found = lines.iter().find(|line| line.contains(word));
        found.unwrap_or_else(|| panic!("nothing shows {word:?}:\n{screen}"))
    };
    assert!(
        lines[2].contains("claude-k7qd") && lines[2].contains("asks: `rm -rf build`, 3m"),
        "{screen}"
    );
    assert!(row("cut off 4m").contains("web#7"), "{screen}");
    row("run `tenure resume codex-m3xa`");
    let held = row("issue:acme/web#42 ");
    assert!(
        held.contains("claude-rf7b") && held.contains("12m"),
        "{screen}"
    );
    assert!(held.contains("opencode-h8aa 2m"), "{screen}");
    assert!(
        row("collides with qwen-x2mn").contains("gemini-p4wz"),
        "{screen}"
    );
    for session in ten().sessions {
        row(&session.handle);
    }
    assert!(lines[23].ends_with("q quit"), "{screen}");
}

#[test]
fn a_screen_has_the_size_of_the_terminal_and_nothing_wraps() {
    let mut wide = ten();
    wide.sessions[0].title = Some("日本語の題\u{202e} \u{1b}[31mred\nsecond line".to_owned());
    let mut top = shown(wide);
    for with_details in [false, true] {
        if with_details {
            top.press(Key::Enter);
        }
        for columns in (60..=200).step_by(7) {
            for rows in [1, 2, 3, 10, 24, 60] {
                let lines = drawn(&top, columns, rows);
                assert_eq!(lines.len(), rows, "{columns}x{rows}");
                for (at, line) in lines.iter().enumerate() {
                    let is_plain = !line.chars().any(|c| c.is_control() || c == '\u{202e}');
                    assert!(is_plain, "{line:?}");
                    let is_head = at == 0;
                    assert!(
                        is_head || line.width() <= columns,
                        "{columns}x{rows}: {line}"
                    );
                }
            }
        }
    }
    assert_eq!(drawn(&top, 1, 1).len(), 1);
}

#[test]
fn a_row_of_the_screen_is_the_session_that_is_drawn_there() {
    let top = shown(ten());
    let size = Size {
        columns: 80,
        rows: 24,
    };
    let lines = frame(&top, size, NOW);
    let mut found = 0;
    for (row, line) in lines.iter().enumerate() {
        if let Some(id) = session_at(&top, size, NOW, row) {
            let handle = id.strip_prefix("id-").unwrap();
            assert!(line.contains(handle), "{row}: {line}");
            found += 1;
        }
    }
    assert_eq!(found, 10);
    let small = Size {
        columns: 1,
        rows: 1,
    };
    assert_eq!(session_at(&top, small, NOW, 0), None);
}

#[test]
fn columns_drop_out_by_rank() {
    let heads = |columns| {
        let lines = drawn(&shown(ten()), columns, 24);
        lines[1].split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(heads(60), "HANDLE STATE PLACE");
    assert_eq!(heads(80), "HANDLE STATE TITLE PLACE HOLDS");
    assert_eq!(heads(200), "HANDLE STATE TITLE WHERE PLACE AGE HOLDS");
}

#[test]
fn what_is_below_the_table_keeps_a_third_and_the_cursor_stays_in_sight() {
    let mut fleet = ten();
    for number in 0..50 {
        fleet
            .sessions
            .push(session(&format!("claude-{number:04}"), "idle"));
    }
    let mut top = shown(fleet);
    let lines = drawn(&top, 80, 24);
    assert!(
        lines.iter().any(|line| line.contains("tenure resume")),
        "{lines:#?}"
    );
    assert!(lines.iter().any(|line| line.contains("more")), "{lines:#?}");
    top.press(Key::End);
    let lines = drawn(&top, 80, 24);
    assert!(
        lines.iter().any(|line| line.starts_with("> claude-0049")),
        "{lines:#?}"
    );
}

#[test]
fn the_last_line_offers_what_fits_the_session_and_the_terminal() {
    let mut top = shown(ten());
    let last = |top: &Top, columns| drawn(top, columns, 24).pop().unwrap();
    assert!(last(&top, 80).contains("g go to") && !last(&top, 80).contains("r resume"));
    top.press(Key::Down);
    let dead = last(&top, 80);
    assert!(
        dead.contains("r resume") && dead.contains("d dismiss"),
        "{dead}"
    );
    assert!(last(&top, 30).ends_with("q quit"));
    top.press(Key::Char('d'));
    assert_eq!(
        last(&top, 80),
        "y/n take codex-m3xa off the list of cut-off sessions?"
    );
}

#[test]
fn what_is_confirmed_stays_in_sight_on_a_narrow_terminal() {
    let mut fleet = ten();
    fleet.sessions[1].handle = "opencode-m3xa".to_owned();
    let mut top = shown(fleet);
    let last = |top: &Top| drawn(top, 60, 24).pop().unwrap();
    top.press(Key::Char('e'));
    assert!(last(&top).starts_with("end claude-k7qd: _  (a reason"));
    for c in "日本語の題は長い "
        .repeat(9)
        .chars()
        .chain("at the end".chars())
    {
        top.press(Key::Char(c));
        assert!(last(&top).starts_with("end claude-k7qd: "));
        assert!(last(&top).width() <= 60, "{}", last(&top));
    }
    assert!(last(&top).ends_with("at the end_"), "{}", last(&top));
    top.press(Key::Escape);
    top.press(Key::Down);
    for act in [Act::Resume, Act::Dismiss, Act::EndSurvivors] {
        top.mode = Mode::Confirm(act, "opencode-m3xa".to_owned());
        let asked = last(&top);
        assert!(asked.starts_with("y/n ") && asked.ends_with('?'), "{asked}");
        assert!(
            asked.contains("opencode-m3xa") && asked.width() <= 60,
            "{asked}"
        );
    }
}

#[test]
fn an_age_is_drawn_again_when_it_reads_differently() {
    let seconds = Duration::from_secs;
    assert_eq!(until_next(seconds(12)), seconds(1));
    assert_eq!(
        until_next(Duration::from_millis(12_250)),
        Duration::from_millis(750)
    );
    assert_eq!(until_next(seconds(61)), seconds(59));
    assert_eq!(until_next(seconds(3 * 3_600 + 5)), seconds(55));
    assert_eq!(until_next(seconds(2 * 86_400 + 60)), seconds(3_540));
    assert_eq!(next_age(&shown(ten()), NOW), seconds(60));
}

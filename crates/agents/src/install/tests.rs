//! Install, install again, uninstall: on files full of the user's own settings, and on generated ones.

use proptest::prelude::*;
use serde_json::Value;
use tenure_core::write_conflict::GuardMode;

use super::*;
use crate::ADAPTERS;

/// The agents that have a `hooks` object.
fn formats() -> impl Iterator<Item = &'static HooksFormat> {
    let settings = ADAPTERS.iter().filter_map(|row| row.settings.as_ref());
    settings.filter_map(Settings::hooks)
}

fn format_of(agent: &str) -> &'static HooksFormat {
    formats().find(|format| format.agent == agent).unwrap()
}

fn line(program: &str, mode: GuardMode) -> HookLine {
    HookLine {
        program: program.to_owned(),
        mode,
        answers: false,
    }
}

fn ours() -> HookLine {
    line("/opt/tenure", GuardMode::Warn)
}

/// Installs, installs again, uninstalls; returns the text in between.
fn there_and_back(format: &HooksFormat, text: &str) -> String {
    let with = format.install(text, &ours()).unwrap();
    assert_eq!(
        format.install(&with, &ours()).unwrap(),
        with,
        "a second time changed something"
    );
    let entries = format.entries(&with).unwrap();
    assert_eq!(entries.len(), format.asked().count(), "{with}");
    assert!(format.missing(&entries).is_empty());
    assert_eq!(
        format.uninstall(&with).unwrap(),
        Edited::Text(text.to_owned()),
        "through\n{with}"
    );
    with
}

#[test]
fn the_hooks_that_wait_come_and_go_and_leave_every_other_byte() {
    let format = format_of("claude");
    for text in ["{}\n", FULL, "{\"hooks\": {\"Stop\": []}}\n"] {
        let plain = format.install(text, &ours()).unwrap();
        let with = format.install_all(text, &ours(), true).unwrap();
        assert_eq!(format.install_all(&plain, &ours(), true).unwrap(), with);
        assert_eq!(format.install_all(&with, &ours(), true).unwrap(), with);
        assert_eq!(format.has_waiting(&with), Ok(Some(true)));
        let entries = format.entries(&with).unwrap();
        assert_eq!(entries.len(), format.asked().count());
        let parsed: serde_json::Value = serde_json::from_str(&with).unwrap();
        for event in ["Stop", "SessionStart"] {
            let groups = parsed["hooks"][event].as_array().unwrap();
            let hook = &groups.last().unwrap()["hooks"][0];
            assert_eq!(hook["asyncRewake"], true, "{with}");
            assert_eq!(hook["timeout"], 86_400);
            let command = hook["command"].as_str().unwrap();
            assert!(command.ends_with(" hook claude --wait"), "{command}");
        }
        assert_eq!(with.matches("--wait").count(), 2);
        assert_eq!(
            format.install(&with, &ours()).unwrap(),
            plain,
            "without again"
        );
        let back = format.uninstall(&with).unwrap();
        assert_eq!(back, Edited::Text(text.to_owned()), "through\n{with}");
    }
    let with = format.install_all("{}", &ours(), true).unwrap();
    let held_up = with.replace("\"asyncRewake\": true", "\"asyncRewake\": false");
    assert_ne!(held_up, with);
    let mended = format.install_all(&held_up, &ours(), true).unwrap();
    assert_eq!(
        mended.matches("\"asyncRewake\": true").count(),
        2,
        "{mended}"
    );
    assert!(!mended.contains("false"), "{mended}");
    assert_eq!(format_of("codex").has_waiting("{}"), Ok(None));
    let same = format_of("codex").install("{}", &ours());
    assert_eq!(format_of("codex").install_all("{}", &ours(), true), same);
}

const FULL: &str = r#"{
    "model": "opus",
    "permissions": { "allow": ["Bash(ls:*)"],
        "deny": [ ] },
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "my-check"}]}
        ],
        "Stop": [],
        "Other": [
          {
            "hooks": [ {"type":"command","command":"x"} ]
          }
        ]
    },

    "statusLine": {"type": "command", "command": "line"}
}"#;

#[test]
fn f_h07_a_file_full_of_the_users_things_is_as_it_was() {
    for format in formats() {
        let with = there_and_back(format, FULL);
        let value: Value = serde_json::from_str(&with).unwrap();
        assert_eq!(
            value["hooks"]["PreToolUse"][0]["hooks"][0]["command"],
            "my-check"
        );
        assert_eq!(
            value["statusLine"]["command"], "line",
            "theirs is still there"
        );
    }
}

#[test]
fn odd_files_are_as_they_were() {
    for text in [
        "{}",
        "{ }",
        "{\n}",
        "{}\n",
        "{\"a\":1}",
        "{\"hooks\":{}}",
        "{\"hooks\": {\n}}",
        "{\"hooks\":{\"Stop\":[],\"SessionStart\":[ ]}}",
        "{\r\n\t\"a\": 1\r\n}\r\n",
        "  {\"a\":[1,2],\n\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}]}}  ",
        "{\n\"hooks\": {\n\"Stop\": [\n]\n}\n}",
    ] {
        for format in formats() {
            there_and_back(format, text);
        }
    }
    let marked = "\u{feff}{\"a\": 1}";
    assert!(there_and_back(format_of("claude"), marked).starts_with('\u{feff}'));
    assert!(format_of("codex").install(marked, &ours()).is_err());
}

#[test]
fn comments_stay_with_what_they_speak_of() {
    let text =
        "// mine\n{\n  \"a\": 1, // one\n  /* two */ \"b\": 2 // last\n  // end\n}\n// after\n";
    let with = there_and_back(format_of("gemini"), text);
    assert!(
        with.contains("\"b\": 2, // last\n  // end\n  \"hooks\": {"),
        "{with}"
    );
    let inside = "{\n  \"hooks\": {\n    // none yet\n  }\n}\n";
    there_and_back(format_of("gemini"), inside);
    assert!(
        format_of("claude").install(text, &ours()).is_err(),
        "Claude Code reads no comments"
    );
}

#[test]
fn a_new_file_is_made_and_comes_to_nothing_again() {
    for format in formats() {
        for empty in ["", "\n", "  \n\n"] {
            let made = format.install(empty, &ours()).unwrap();
            assert!(
                made.starts_with("{\n  \"hooks\": {\n    \"SessionStart\": [\n"),
                "{made}"
            );
            assert!(made.ends_with("\n}\n"));
            assert_eq!(format.uninstall(&made).unwrap(), Edited::Nothing);
        }
    }
}

#[test]
fn f_h04_no_entry_has_a_matcher_and_one_that_got_one_is_mended() {
    let with = format_of("claude").install("{}", &ours()).unwrap();
    assert!(!with.contains("matcher"));
    let limited = "{\"hooks\":{\"SessionStart\":[{\"matcher\":\"startup\",\"hooks\":[{\"type\":\"command\",\"command\":\"/old/tenure hook claude\"},{\"type\":\"command\",\"command\":\"theirs\"}]}]}}";
    let mended = format_of("claude").install(limited, &ours()).unwrap();
    let entries = format_of("claude").entries(&mended).unwrap();
    assert!(
        entries.iter().all(|entry| entry.matcher.is_none()),
        "{mended}"
    );
    let value: Value = serde_json::from_str(&mended).unwrap();
    let start = &value["hooks"]["SessionStart"];
    assert_eq!(start[0]["hooks"][0]["command"], "theirs");
    assert_eq!(start[0]["matcher"], "startup");
    assert_eq!(start[1]["hooks"][0]["command"], ours().text("claude"));
}

#[test]
fn f_h07_another_path_or_mode_is_replaced_in_place_and_never_doubled() {
    let old = format_of("claude")
        .install(FULL, &line("/old/bin/tenure", GuardMode::Block))
        .unwrap();
    let new = format_of("claude").install(&old, &ours()).unwrap();
    let (before, after) = (
        line("/old/bin/tenure", GuardMode::Block).text("claude"),
        ours().text("claude"),
    );
    assert_eq!(new, old.replace(&before, &after));
    // Duplicated by hand, or by a version with other events.
    let doubled = new.replacen(
        "\"Stop\": [",
        "\"Stop\": [{\"hooks\":[{\"type\":\"command\",\"command\":\"tenure hook claude\"}]}, ",
        1,
    );
    let doubled = doubled.replace(
        "\"Other\": [",
        "\"Other\": [{\"hooks\":[{\"type\":\"command\",\"command\":\"'/a b/tenure' hook claude\"}]}, ",
    );
    let once = format_of("claude").install(&doubled, &ours()).unwrap();
    assert_eq!(
        format_of("claude").entries(&once).unwrap().len(),
        format_of("claude").asked().count(),
        "{once}"
    );
    assert_eq!(
        once.matches("hook claude").count(),
        format_of("claude").asked().count()
    );
}

#[test]
fn a_hook_of_the_users_in_our_group_stays() {
    let with = format_of("claude").install("{}", &ours()).unwrap();
    let mut value: Value = serde_json::from_str(&with).unwrap();
    let theirs = serde_json::json!({"type": "command", "command": "theirs"});
    value["hooks"]["Stop"][0]["hooks"]
        .as_array_mut()
        .unwrap()
        .insert(0, theirs);
    let text = serde_json::to_string_pretty(&value).unwrap();
    let Edited::Text(left) = format_of("claude").uninstall(&text).unwrap() else {
        panic!("theirs was eaten")
    };
    let left: Value = serde_json::from_str(&left).unwrap();
    assert_eq!(
        left,
        serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}})
    );
}

#[test]
fn what_does_not_parse_is_refused_with_its_place() {
    let refused = |text: &str| format_of("claude").install(text, &ours()).unwrap_err();
    let error = refused("{\n  \"a\": 1,\n  \"b\" 2\n}");
    assert_eq!((error.line, error.column), (3, 7), "{error}");
    assert_eq!(
        refused("{\n \"hooks\": []\n}").to_string(),
        "line 2, column 11: hooks is not an object"
    );
    assert_eq!(
        refused("{\"hooks\": {\"Stop\": {}}}").to_string(),
        "line 1, column 20: hooks.Stop is not a list"
    );
    assert_eq!(
        refused("[]").to_string(),
        "line 1, column 1: the file is not an object"
    );
    for text in ["{", "{\"a\": }", "{'a': 1}", "{} {}", "{\"a\": 1,}", "nul"] {
        for format in formats() {
            assert!(format.install(text, &ours()).is_err(), "{text}");
            assert!(format.uninstall(text).is_err(), "{text}");
        }
    }
    let error = format_of("gemini")
        .install("{ // c\n \"a\" 1}", &ours())
        .unwrap_err();
    assert_eq!((error.line, error.column), (2, 6), "{error}");
    let deep = "[".repeat(100_000);
    assert!(format_of("gemini").install(&deep, &ours()).is_err());
}

#[test]
fn hooks_that_a_user_switched_off_are_seen_to_be_off() {
    let text = "{\"hooksConfig\": {\"enabled\": false}, \"disableAllHooks\": true}";
    for settings in ADAPTERS.iter().filter_map(|row| row.settings.as_ref()) {
        let (Some(format), Some(off)) = (settings.hooks(), &settings.off) else {
            continue;
        };
        assert!(format.is_off(text, off), "{}", format.agent);
        assert!(!format.is_off("{}", off), "{}", format.agent);
    }
}

/// The blanks between the tokens of a generated document.
fn blanks(comments: bool) -> BoxedStrategy<String> {
    let plain = prop_oneof![
        6 => Just(String::new()),
        4 => Just(" ".to_owned()),
        2 => Just("\n  ".to_owned()),
        1 => Just("\r\n\t".to_owned()),
        1 => Just("\t\n".to_owned()),
    ];
    if !comments {
        plain.boxed()
    } else {
        prop_oneof![
            8 => plain,
            1 => Just(" // it's, [a] {comment}\n ".to_owned()),
            1 => Just("/* , \"x\" } */".to_owned()),
            1 => Just(" /* a */ // b\r\n".to_owned()),
        ]
        .boxed()
    }
}

fn joined(open: &str, items: Vec<(String, String, String)>, last: &str, close: &str) -> String {
    let parts: Vec<String> = items
        .into_iter()
        .map(|(before, item, after)| format!("{before}{item}{after}"))
        .collect();
    if parts.is_empty() {
        format!("{open}{last}{close}")
    } else {
        format!("{open}{}{close}", parts.join(","))
    }
}

fn list_of(
    item: BoxedStrategy<String>,
    comments: bool,
    open: &'static str,
    close: &'static str,
) -> BoxedStrategy<String> {
    let element = (blanks(comments), item, blanks(comments));
    (prop::collection::vec(element, 0..3), blanks(comments))
        .prop_map(move |(items, last)| joined(open, items, &last, close))
        .boxed()
}

/// Properties with different names: a name is made of its number.
fn object_of(
    names: &'static [&'static str],
    value: BoxedStrategy<String>,
    comments: bool,
) -> BoxedStrategy<String> {
    let property = (
        prop::sample::subsequence(names.to_vec(), 0..=names.len().min(3)).prop_shuffle(),
        prop::collection::vec(
            (blanks(comments), blanks(comments), value, blanks(comments)),
            3,
        ),
        blanks(comments),
    );
    property
        .prop_map(|(names, parts, last)| {
            let items = names
                .into_iter()
                .zip(parts)
                .map(|(name, (a, b, value, c))| (a, format!("\"{name}\"{b}:{value}"), c));
            joined("{", items.collect(), &last, "}")
        })
        .boxed()
}

/// A document with hooks in it, in random order.
fn document(comments: bool) -> BoxedStrategy<String> {
    let plain = prop_oneof![
        Just("1".to_owned()),
        Just("\"a, ] \\\" // }\"".to_owned()),
        Just("null".to_owned()),
        Just("\"é\"".to_owned()),
    ]
    .boxed();
    let value = prop_oneof![
        plain.clone(),
        list_of(plain.clone(), comments, "[", "]"),
        object_of(&["x", "y", "z"], plain.clone(), comments),
    ]
    .boxed();
    let command = prop_oneof![
        Just("\"theirs\"".to_owned()),
        Just("\"tenure hook other\"".to_owned())
    ];
    let hook = object_of(&["command"], command.boxed(), comments);
    let hooks = list_of(hook, comments, "[", "]");
    let group = prop_oneof![
        4 => object_of(&["hooks"], hooks, comments),
        1 => plain,
    ];
    let groups = list_of(group.boxed(), comments, "[", "]");
    let events = object_of(
        &["Stop", "SessionStart", "PreToolUse", "Mine", "BeforeTool"],
        groups,
        comments,
    );
    let top = (
        object_of(&["a", "b", "c"], value, comments),
        events,
        blanks(comments),
        blanks(comments),
        blanks(comments),
        0..4,
    );
    top.prop_map(|(object, events, a, b, c, place)| {
        let inside = &object[1..object.len() - 1];
        let hooks = format!("{a}\"hooks\":{b}{events}");
        let body = match (place, inside.contains(':')) {
            (0, _) => inside.to_owned(),
            (1, true) => format!("{hooks},{inside}"),
            (_, true) => format!("{inside},{hooks}"),
            (_, false) => format!("{inside}{hooks}"),
        };
        format!("{c}{{{body}}}{a}")
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn f_h07_generated_files_are_as_they_were(text in document(false)) {
        for format in formats() {
            there_and_back(format, &text);
        }
    }

    #[test]
    fn f_h07_generated_files_with_comments_are_as_they_were(text in document(true)) {
        there_and_back(format_of("gemini"), &text);
    }

    #[test]
    fn any_settings_are_refused_or_take_the_hooks_once(text in "\\PC{0,60}", cut in 0usize..400) {
        let with = format_of("claude").install(FULL, &ours()).unwrap();
        let part: String = with.chars().take(cut).collect();
        for format in formats() {
            for text in [&text, &part] {
                if let Ok(with) = format.install(text, &ours()) {
                    prop_assert_eq!(format.install(&with, &ours()), Ok(with.clone()));
                }
                prop_assert!(format.uninstall(text).is_ok() == format.entries(text).is_ok());
            }
        }
    }
}

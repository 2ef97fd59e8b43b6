//! A command line that is wrong: what is wrong with it, and the one command that helps.

use serde_json::Value;
use tenure_testkit::Env;

use crate::env;

/// The message and the only hint of a line that is refused as usage.
#[track_caller]
fn wrong(env: &Env, code: i32, line: &str) -> (String, String) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let said = env.tenure(&words).fails(code);
    let hints: Vec<&str> = said
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("hint: "))
        .collect();
    assert_eq!(hints.len(), 1, "{line}: {said}");
    let error = said.stderr.lines().next().unwrap_or_default();
    let json = env
        .tenure(&[&words[..], &["--json"]].concat())
        .fails(code)
        .json();
    let listed = json["error"]["hints"].as_array().map_or(0, Vec::len);
    assert_eq!(
        (listed, &json["error"]["message"]),
        (1, &Value::from(error.trim_start_matches("error: ")))
    );
    (error.to_owned(), hints[0].to_owned())
}

#[test]
fn a_value_that_is_wrong_points_to_the_help_of_its_verb() {
    let env = env();
    for (line, named, help) in [
        (
            "wait x --timeout abc",
            "'abc' for '--timeout",
            "wait --help",
        ),
        (
            "claim wp:1 --wait banana",
            "'banana' for '--wait",
            "claim --help",
        ),
        ("ps --limit x", "'x' for '--limit", "ps --help"),
        ("log --after x", "'x' for '--after", "log --help"),
        (
            "wait x --for never",
            "possible values: end, idle",
            "wait --help",
        ),
        (
            "install --mode loud",
            "observe, warn, block",
            "install --help",
        ),
        ("install nope", "claude, codex", "install --help"),
        (
            "--session x register --pid y",
            "'y' for '--pid",
            "register --help",
        ),
        ("mission join m", "--role", "mission join --help"),
        ("takeover wp:1 --reason", "--reason", "takeover --help"),
        ("lock", "<NAME>", "lock --help"),
    ] {
        let (error, hint) = wrong(&env, 2, line);
        assert!(error.contains(named), "{line}: {error}");
        assert_eq!(
            hint,
            format!("run `tenure {help}` for its options and examples"),
            "{line}"
        );
    }
}

#[test]
fn a_mistyped_verb_or_flag_is_answered_with_the_nearest() {
    let env = env();
    for (line, said, hint) in [
        ("clain", "unrecognized subcommand 'clain'", "claim --help"),
        ("clain wp:1", "'clain'", "claim wp:1"),
        ("satus", "'satus'", "status"),
        ("relase wp:1 --done", "'relase'", "release wp:1 --done"),
        // Not a command for a model to run as it stands.
        ("takover wp:1 --reason x", "'takover'", "takeover --help"),
        (
            "ps --limt 3",
            "unexpected argument '--limt' found",
            "ps --limit 3",
        ),
        ("ps --limt=3", "'--limt'", "ps --limit=3"),
        (
            "mission joi m --role r",
            "unrecognized subcommand 'joi'",
            "mission join m --role r",
        ),
        ("ps -z", "unexpected argument '-z' found", "ps --help"),
        (
            "whoami now",
            "unexpected argument 'now' found",
            "whoami --help",
        ),
        // Nothing like it.
        ("xyzzy", "unrecognized subcommand 'xyzzy'", "help --all"),
        // What other tools call it.
        ("ls", "'ls'", "ps"),
        ("list -a", "'list'", "ps -a"),
        ("attach x", "'attach'", "goto x"),
        ("kill x", "'kill'", "end --help"),
        ("start", "'start'", "run --help"),
        ("send x hi", "'send'", "tell x hi"),
        ("settings", "'settings'", "config"),
    ] {
        let (error, told) = wrong(&env, 2, line);
        assert!(error.contains(said), "{line}: {error}");
        for other in ["tip:", "Usage:", "For more"] {
            assert!(!error.contains(other), "{line}: {error}");
        }
        assert!(
            told.starts_with(&format!("run `tenure {hint}` ")),
            "{line}: {told}"
        );
    }
    for (line, said, hint) in [
        (
            "help mission joi",
            "unknown command \"mission joi\"",
            "mission join --help",
        ),
        ("help clain", "unknown command \"clain\"", "claim --help"),
        (
            "help claim wp:1",
            "unknown command \"claim wp:1\"",
            "claim --help",
        ),
    ] {
        let (error, told) = wrong(&env, 4, line);
        assert!(error.ends_with(said), "{line}: {error}");
        assert_eq!(
            told,
            format!("run `tenure {hint}` for its options and examples")
        );
    }
}

#[test]
fn the_exit_codes_of_commands_that_run_another_are_listed() {
    let env = env();
    let codes = env.tenure(&["help", "exit-codes", "--json"]).ok().json();
    let codes = codes["exit_codes"].as_array().unwrap().clone();
    let codes: Vec<u64> = codes
        .iter()
        .filter_map(|one| one["code"].as_u64())
        .collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 70, 125, 126, 127]);
    for (line, code) in [
        ("lock one -- /nowhere/at/all", 127),
        ("lock one -- /etc/passwd", 126),
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let _said = env.tenure(&words).fails(code);
    }
}

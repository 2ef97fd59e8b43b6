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
        ("ps --limit x", "expected a whole number", "ps --help"),
        ("log --after x", "expected a whole number", "log --help"),
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
        (
            "clain",
            "unknown command \"clain\"; did you mean claim?",
            "claim --help",
        ),
        ("clain wp:1", "did you mean claim?", "claim wp:1"),
        ("satus", "did you mean status?", "status"),
        (
            "relase wp:1 --done",
            "did you mean release?",
            "release wp:1 --done",
        ),
        // Not a command for a model to run as it stands.
        (
            "takover wp:1 --reason x",
            "did you mean takeover?",
            "takeover --help",
        ),
        (
            "ps --limt 3",
            "ps has no option --limt; did you mean --limit?",
            "ps --limit 3",
        ),
        (
            "ps --limt=3",
            "ps has no option --limt; did you mean --limit?",
            "ps --limit=3",
        ),
        (
            "mission joi m --role r",
            "mission has no command \"joi\"; did you mean join?",
            "mission join m --role r",
        ),
        ("ps -z", "ps has no option -z", "ps --help"),
        (
            "whoami now",
            "whoami does not accept \"now\" here",
            "whoami --help",
        ),
        ("xyzzy", "unknown command \"xyzzy\"", "help --all"),
        // Nothing like it.
        ("pause", "unknown command \"pause\"", "help --all"),
        ("open", "unknown command \"open\"", "help --all"),
        ("worktree add", "unknown command \"worktree\"", "help --all"),
        // What other tools call it.
        ("ls", "did you mean ps?", "ps"),
        ("list -a", "did you mean ps?", "ps -a"),
        ("attach x", "did you mean goto?", "goto x"),
        ("kill x", "did you mean end --kill?", "end --help"),
        ("start", "did you mean run?", "run --help"),
    ] {
        let (error, told) = wrong(&env, 2, line);
        assert!(error.contains(said), "{line}: {error}");
        assert!(!error.contains("tip:"), "{line}: {error}");
        assert!(
            told.starts_with(&format!("run `tenure {hint}` ")),
            "{line}: {told}"
        );
    }
    for line in ["xyzzy", "pause", "worktree add", "mission zzz"] {
        let (error, _) = wrong(&env, 2, line);
        assert!(!error.contains("did you mean"), "{line}: {error}");
    }
    let (error, hint) = wrong(&env, 4, "help mission joi");
    assert!(
        error.ends_with("mission has no command \"joi\"; did you mean join?"),
        "{error}"
    );
    assert_eq!(
        hint,
        "run `tenure mission join --help` for its options and examples"
    );
    let (error, hint) = wrong(&env, 4, "help clain");
    assert!(error.ends_with("did you mean claim?"), "{error}");
    assert_eq!(
        hint,
        "run `tenure claim --help` for its options and examples"
    );
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

//! Which variables a run gets.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn variables(pairs: &[(&str, &str)]) -> Variables {
    let pair = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
    pairs.iter().map(pair).collect()
}

fn own() -> OwnRow<'static> {
    OwnRow {
        run: "r-1",
        temporary: Path::new("/s/tmp/r-1"),
        state: Path::new("/s"),
        store: None,
    }
}

const CODEX: AgentRow<'static> = AgentRow {
    passed: &["CODEX_HOME", "OPENAI_*"],
    set: &[("NO_COLOR", "1")],
};

/// The variables of a person inside a Claude Code session.
fn theirs() -> Variables {
    variables(&[
        ("PATH", "/bin"),
        ("HOME", "/h"),
        ("LC_ALL", "C"),
        ("TERM", "xterm"),
        ("EDITOR", "vi"),
        ("https_proxy", "http://p"),
        ("OPENAI_API_KEY", "k"),
        ("OPENAI", "not a key"),
        ("ANTHROPIC_API_KEY", "a"),
        ("CODEX_HOME", "/c"),
        ("FORGE_TOKEN", "secret"),
        ("CLAUDECODE", "1"),
        ("CLAUDE_CODE_SESSION_ID", "x"),
        ("CLAUDE_CODE_MESSAGING_SOCKET", "/t"),
        ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "9"),
        ("CODEX_THREAD_ID", "y"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("TENURE_SESSION", "s"),
        ("TENURE_RUN", "r-0"),
        ("TENURE_LEASE", "5m"),
        ("TMPDIR", "/tmp"),
    ])
}

#[test]
fn a_person_passes_on_everything_but_marks_of_agents() {
    let all = made(StartedBy::Person, &theirs(), &CODEX, &own());
    let expected = variables(&[
        ("PATH", "/bin"),
        ("HOME", "/h"),
        ("LC_ALL", "C"),
        ("TERM", "xterm"),
        ("EDITOR", "vi"),
        ("https_proxy", "http://p"),
        ("OPENAI_API_KEY", "k"),
        ("OPENAI", "not a key"),
        ("ANTHROPIC_API_KEY", "a"),
        ("CODEX_HOME", "/c"),
        ("FORGE_TOKEN", "secret"),
        ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "9"),
        ("TENURE_LEASE", "5m"),
        ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
        ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
        ("NO_COLOR", "1"),
        ("TENURE_HOME", "/s"),
        ("TENURE_RUN", "r-1"),
        ("TMPDIR", "/s/tmp/r-1"),
    ]);
    assert_eq!(all, expected);
}

#[test]
fn f_r29_a_dispatched_run_gets_what_is_listed_and_nothing_else() {
    let rule = variables(&[
        ("DEPLOY", "staging"),
        ("TERM", "vt100"),
        ("TMPDIR", "/evil"),
    ]);
    let row = OwnRow {
        store: Some("/s/other.db"),
        ..own()
    };
    let all = made(StartedBy::Dispatcher(&rule), &theirs(), &CODEX, &row);
    let expected = variables(&[
        ("PATH", "/bin"),
        ("HOME", "/h"),
        ("LC_ALL", "C"),
        ("TERM", "vt100"),
        ("https_proxy", "http://p"),
        ("OPENAI_API_KEY", "k"),
        ("CODEX_HOME", "/c"),
        ("DEPLOY", "staging"),
        ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
        ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
        ("NO_COLOR", "1"),
        ("TENURE_HOME", "/s"),
        ("TENURE_STORE", "/s/other.db"),
        ("TENURE_RUN", "r-1"),
        ("TMPDIR", "/s/tmp/r-1"),
    ]);
    assert_eq!(all, expected);
    let plain = made(
        StartedBy::Dispatcher(&Variables::new()),
        &theirs(),
        &CODEX,
        &own(),
    );
    assert_eq!(plain[OsStr::new("TERM")], "dumb");
}

#[test]
fn temporary_files_have_a_directory_for_the_owner_alone() {
    let state = tempfile::tempdir().unwrap();
    let dir = make_temporary(state.path(), "r-1").unwrap();
    for made in [dir.as_path(), dir.parent().unwrap()] {
        let mode = fs_err::metadata(made).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", made.display());
    }
    fs_err::write(dir.join("gemini-client-error.json"), "x").unwrap();
    let other = make_temporary(state.path(), "r-2").unwrap();
    remove_temporary(state.path(), "r-1").unwrap();
    remove_temporary(state.path(), "r-1").unwrap();
    assert!(!dir.exists() && other.exists());
}

#[test]
fn a_wrap_gets_nothing_that_tells_about_this_user() {
    let rule = variables(&[("NPM_TOKEN", "t")]);
    let home = Path::new("/p/issue-6.home");
    let by = StartedBy::Wrap { rule: &rule, home };
    let all = made(by, &theirs(), &CODEX, &own());
    let mut expected = variables(&[
        ("PATH", "/bin"),
        ("HOME", "/p/issue-6.home"),
        ("LC_ALL", "C"),
        ("TERM", "dumb"),
        ("NPM_TOKEN", "t"),
        ("NO_COLOR", "1"),
        ("TENURE_RUN", "r-1"),
    ]);
    let each = SET_FOR_EVERY_RUN.iter();
    expected.extend(each.map(|(name, value)| ((*name).into(), (*value).into())));
    assert_eq!(all, expected);
    let inside = set_inside(&all, &rule);
    assert!(inside.contains(&"TENURE_RUN=r-1".into()), "{inside:?}");
    let text = format!("{inside:?}");
    let absent = ["NPM_TOKEN", "HOME=", "PATH=", "secret"];
    assert!(absent.iter().all(|name| !text.contains(name)), "{text}");
}

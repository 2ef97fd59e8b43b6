//! A limit on the size of files, and standard streams that are closed: an error like any other, and nothing is
//! half written.

use serde_json::json;
use tenure_testkit::{Agent, Cmd, Env, Output};

use crate::env;
use crate::support::answer::{ask, register};
use crate::support::hook::{captured, claude, only};

/// What a file may be that was just made, and what none of ours can be.
const LIMITS: [&str; 3] = ["ulimit -f 0", "ulimit -f 1", "ulimit -f 16"];

/// Runs tenure below a limit. What it says goes through a pipe, for which there is no limit.
#[track_caller]
fn limited(agent: &Agent, limit: &str, command: &str, stdin: &str) -> Output {
    let line = format!("({limit}; tenure {command} 2>&1; echo $?) | cat");
    let all = agent.run(Cmd::shell(&line).stdin(stdin)).ok().stdout;
    let mut lines: Vec<&str> = all.lines().collect();
    let code = lines.pop().and_then(|code| code.parse().ok());
    Output {
        code: code.unwrap_or_else(|| panic!("{all}")),
        stdout: lines.join("\n"),
        stderr: String::new(),
    }
}

#[test]
fn f_h06_a_limit_on_the_size_of_files_kills_no_hook() {
    for limit in LIMITS {
        let env = env();
        let a = env.agent("claude");
        let start = captured(&env, "claude-2.1.325/SessionStart.startup", "a1").to_string();
        let said = limited(&a, limit, "hook claude", &start);
        assert_eq!(said.code, 0, "{limit}: no store yet\n{said}");
        assert!(said.stdout.contains("tenure: "), "{limit}\n{said}");
        claude(&env, &a, "SessionStart.startup", "a1");
        // Where the log of the store is short, a change may still fit below the larger limits.
        let prompt = captured(&env, "claude-2.1.325/UserPromptSubmit", "a1").to_string();
        let said = limited(&a, limit, "hook claude", &prompt);
        assert_eq!(said.code, 0, "{limit}\n{said}");
        claude(&env, &a, "PreToolUse.Bash", "a1");
        let me = only(&env);
        assert_eq!(
            (&me["state"], &me["activity"]),
            (&json!("live"), &json!("busy"))
        );
    }
}

/// Our own words for the store, the system's for other files.
#[track_caller]
fn names_the_limit(said: &Output) {
    let error = said.json()["error"]["message"].to_string();
    let words = ["file size is limited", "File too large"];
    assert!(words.iter().any(|words| error.contains(words)), "{said}");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_of_the_store_that_names_it() {
    let env = env();
    let a = env.agent("claude");
    for limit in LIMITS {
        let said = limited(&a, limit, "register --json", "").fails(8);
        names_the_limit(&said);
    }
    register(&a, &[]);
    let said = limited(&a, "ulimit -f 0", "claim wp:1 --json", "").fails(8);
    names_the_limit(&said);
    let held = ask(&a, &["claims"]);
    assert_eq!(held["claims"], json!([]), "nothing was granted");
    ask(&a, &["claim", "wp:1"]);
}

/// Whether the store is what a sound store is.
#[track_caller]
fn is_sound(env: &Env) {
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there");
    let check: String = store
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("it can be read");
    assert_eq!(check, "ok");
}

#[test]
fn standard_streams_that_are_closed_are_never_the_store() {
    let env = env();
    let a = env.agent("claude");
    register(&a, &[]);
    for closed in ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-", "1>&- 2>&-"] {
        for verb in [
            "claim wp:1",
            "ps",
            "claim wp:1 --json",
            "release wp:1",
            "nonsense",
        ] {
            let _said = a.tenure_shell(&format!("tenure {verb} {closed}"));
        }
        let event = captured(&env, "claude-2.1.325/PreToolUse.Bash", "a1").to_string();
        let line = format!("tenure hook claude {closed}; exit $?");
        a.run(Cmd::shell(&line).stdin(event.as_str())).ok();
        is_sound(&env);
    }
    assert_eq!(ask(&a, &["claims"])["claims"], json!([]));
}

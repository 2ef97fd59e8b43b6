//! The files of the state directory: their modes, a log that was removed, a copy of all of them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tenure_testkit::{Cmd, Env};

use crate::env;
use crate::support::line::{crew, register, run};

fn mode(path: &Path) -> u32 {
    let found =
        std::fs::symlink_metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    found.permissions().mode() & 0o7777
}

/// Everything below a directory.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            found.extend(below(&path));
        }
        found.push(path);
    }
    found
}

/// Whatever the umask takes away, the owner can use what tenure made: directories, too.
#[test]
fn no_umask_makes_the_state_unusable() {
    for umask in ["0177", "0777", "0000"] {
        let env = env();
        let worker = env.agent("claude");
        let state = env.dir().join("new/deep/state");
        let line = format!(
            "umask {umask}; export TENURE_HOME={state}; \
             tenure register --agent claude --pid {pid} && tenure claim wp:1 && \
             tenure lock build -- true && tenure lock build -- true && tenure claims",
            state = state.display(),
            pid = worker.pid(),
        );
        worker.run(Cmd::shell(&line)).ok();
        assert!(state.join("locks").is_dir());
        for path in below(&env.dir().join("new")) {
            let wanted = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path), wanted, "umask {umask}: {}", path.display());
        }
    }
}

fn log_of(env: &Env) -> PathBuf {
    env.state().join("tenure.db-wal")
}

#[test]
fn f_c23_a_removed_log_is_refused_with_the_way_back() {
    let (env, [claude]) = crew(["claude"]);
    run(&claude, 0, "claim wp:1");
    let away = env.dir().join("away");
    std::fs::rename(log_of(&env), &away).expect("it is ours");
    for line in ["claims", "claim wp:1", "ps", "whoami", "guard wp:1"] {
        let answer = run(&claude, 8, line);
        assert_eq!(
            answer["error"]["kind"], "store_log_lost",
            "{line}: {answer}"
        );
        let hints = answer["error"]["hints"].to_string();
        assert!(hints.contains("tenure.db-wal back"), "{hints}");
        assert!(hints.contains("tenure.db-shm"), "{hints}");
    }
    // An agent goes on without us.
    let event = serde_json::json!({"session_id": "c1", "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": "true"}, "cwd": env.work()});
    let heard = claude.tenure_stdin(&["hook", "claude"], &event.to_string());
    assert_eq!(heard.code, 0, "{heard}");
    std::fs::rename(&away, log_of(&env)).expect("it is ours");
    assert_eq!(run(&claude, 0, "guard wp:1")["claim"]["epoch"], 1);
}

#[test]
fn f_c23_going_on_without_the_log_grants_no_old_epoch() {
    let (env, [claude]) = crew(["claude"]);
    for _ in 0..3 {
        run(&claude, 0, "claim wp:1");
        run(&claude, 0, "release wp:1");
    }
    for gone in ["tenure.db-wal", "tenure.db-shm"] {
        std::fs::remove_file(env.state().join(gone)).expect("it is ours");
    }
    let said = env.tenure(&["claims"]).ok();
    assert!(said.stderr.contains("lost its newest changes"), "{said}");
    let quiet = env.tenure(&["claims"]).ok();
    assert_eq!(quiet.stderr, "", "it is said once");
    register(&claude, "claude", "");
    let granted = run(&claude, 0, "claim wp:1");
    assert_eq!(granted["claim"]["epoch"], (1_u64 << 32) + 1);
    let status = run(&claude, 0, "status");
    let warnings = status["status"]["warnings"].to_string();
    assert!(warnings.contains("newest changes"), "{warnings}");
}

#[test]
fn a_copied_state_directory_says_so_and_goes_on() {
    let (env, [claude]) = crew(["claude"]);
    run(&claude, 0, "claim wp:1");
    let copy = env.dir().join("copy");
    let cp = Cmd::new("cp")
        .args(["-a"])
        .arg(env.state().to_str().unwrap());
    claude.run(cp.arg(copy.to_str().unwrap())).ok();
    let there = [("TENURE_HOME", Some(copy.to_str().unwrap()))];
    let said = claude.tenure_env(&there, &["guard", "wp:1", "--json"]).ok();
    assert!(said.stderr.contains("copied, moved or restored"), "{said}");
    assert_eq!(said.json()["claim"]["epoch"], (1_u64 << 32) + 1);
    let quiet = claude.tenure_env(&there, &["guard", "wp:1"]).ok();
    assert_eq!(quiet.stderr, "", "it is said once");
    let log = claude.tenure_env(&there, &["log", "--json"]).ok().stdout;
    assert!(log.contains("store.moved"), "{log}");
    // An epoch of the original does not pass the guard in the copy.
    let pinned = claude.tenure_env(&there, &["guard", "wp:1", "--epoch", "1"]);
    assert_eq!(pinned.code, 5, "{pinned}");
    let original = claude.tenure(&["guard", "wp:1", "--epoch", "1"]).ok();
    assert_eq!(original.stderr, "");
}

/// Changes rows behind tenure's back.
fn spoil(env: &Env, sql: &str) {
    let plain = Connection::open(env.state().join("tenure.db")).expect("it is a database");
    plain.execute_batch(sql).expect("it can be changed");
}

/// One row that cannot be read is named, and the others are listed.
#[test]
fn one_damaged_row_does_not_hide_the_others() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    run(&ann, 0, "claim wp:1");
    run(&ann, 0, "claim wp:2");
    run(&bob, 0, "claim wp:3");
    spoil(&env, "UPDATE holds SET means = 'magic' WHERE key = 'wp:1'");
    let listed = env.tenure(&["claims", "--json"]).fails(8).json();
    let keys: Vec<&str> = listed["claims"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|claim| claim["key"].as_str())
        .collect();
    assert_eq!(keys, ["wp:2", "wp:3"]);
    assert_eq!(listed["error"]["kind"], "store_damaged");
    let message = listed["error"]["message"].to_string();
    assert!(
        message.contains("wp:1, ") && message.contains("magic"),
        "{message}"
    );
    let text = env.tenure(&["claims"]).fails(8);
    assert!(
        text.stdout.contains("wp:2") && text.stdout.contains("wp:3"),
        "{text}"
    );
    assert!(
        text.stderr.contains("error: ") && text.stderr.contains("magic"),
        "{text}"
    );
    // It is never taken for free.
    assert_eq!(run(&bob, 8, "claim wp:1")["error"]["kind"], "store_damaged");
    // A session whose hold cannot be read is named; the other is listed.
    let people = env.tenure(&["ps", "--json"]).fails(8).json();
    let listed = people["sessions"].to_string();
    assert!(
        listed.contains("bob-") && !listed.contains("ann-"),
        "{listed}"
    );
    assert!(people["error"]["message"].to_string().contains("ann-"));
}

#[test]
fn one_damaged_session_or_event_does_not_hide_the_others() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    run(&ann, 0, "claim wp:1");
    run(&bob, 0, "claim wp:2");
    spoil(
        &env,
        "UPDATE sessions SET hosted = 7 WHERE agent = 'ann'; \
         UPDATE events SET session = 'nonsense' WHERE id = 1",
    );
    let people = env.tenure(&["ps", "--json"]).fails(8).json();
    assert!(people["sessions"].to_string().contains("bob-"), "{people}");
    let message = people["error"]["message"].to_string();
    assert!(message.contains("column hosted"), "{message}");
    let claims = env.tenure(&["claims", "--json"]).fails(8).json();
    assert_eq!(claims["claims"][0]["key"], "wp:2", "{claims}");
    assert!(
        claims["error"]["message"].to_string().contains("wp:1, "),
        "{claims}"
    );
    let log = env.tenure(&["log", "--json"]).fails(8).json();
    assert!(
        log["events"].as_array().expect("a list").len() >= 2,
        "{log}"
    );
    assert!(
        log["error"]["message"]
            .to_string()
            .contains("column session"),
        "{log}"
    );
}

/// Who calls is decided by the nearest session: one further up that cannot be read stands in nobody's way.
#[test]
fn a_damaged_session_further_up_does_not_hide_the_nearest() {
    let (env, [ann]) = crew(["ann"]);
    let inner = ann.nest("bob");
    register(&inner, "bob", "");
    let spoilt = "UPDATE sessions SET hosted = 7 WHERE agent = 'ann'";
    spoil(&env, spoilt);
    run(&inner, 0, "claim wp:1");
    assert_eq!(run(&ann, 8, "claim wp:2")["error"]["kind"], "store_damaged");
}

/// A reader that does not end is named, and the log is cut off once it did.
#[test]
fn a_reader_that_keeps_the_log_is_named() {
    let (env, [ann]) = crew(["ann"]);
    let reader = Connection::open(env.state().join("tenure.db")).expect("it is a database");
    let begin = "BEGIN; SELECT count(*) FROM sessions;";
    reader.execute_batch(begin).expect("it can be read");
    let filler = "x".repeat(8000);
    let length = || std::fs::metadata(log_of(&env)).expect("it is there").len();
    for n in 0..20 {
        for key in 0..20 {
            let value = format!("{n}{filler}");
            ann.tenure_stdin(&["meta", "set", &format!("k{key}"), &value], "")
                .ok();
        }
        if length() > 3 * 1024 * 1024 {
            break;
        }
    }
    let status = run(&ann, 0, "status");
    let warnings = status["status"]["warnings"].to_string();
    let me = format!("pid {} (", std::process::id());
    assert!(warnings.contains(&me), "{warnings}");
    reader.execute_batch("COMMIT").expect("it ends");
    run(&ann, 0, "meta set k1 short");
    assert!(length() < 1024 * 1024, "{} bytes", length());
    let status = run(&ann, 0, "status");
    let warnings = status["status"]["warnings"].to_string();
    assert!(!warnings.contains("has grown"), "{warnings}");
}

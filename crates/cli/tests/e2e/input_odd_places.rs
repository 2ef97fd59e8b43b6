//! Odd places and odd bytes: a directory that is gone, a name that is not UTF-8.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use tenure_testkit::{Agent, Cmd, Env, Output, scratch_git};

use crate::env;
use crate::support::line::{crew, take};

/// Runs a line of shell in a directory that is removed before the line runs.
#[track_caller]
fn gone(env: &Env, agent: &Agent, line: &str) -> Output {
    let dir = env.dir().join("gone");
    std::fs::create_dir_all(&dir).expect("a scratch directory is writable");
    let line = format!("rmdir \"$PWD\" && {line}");
    agent.run(Cmd::shell(&line).dir(&dir))
}

#[test]
fn in_a_deleted_directory_what_needs_no_directory_works() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    for line in [
        "tenure guard wp:1",
        "tenure whoami",
        "tenure alive $(tenure whoami --json | sed 's/.*\"handle\":\"\\([^\"]*\\)\".*/\\1/')",
        "tenure why wp:1",
        "tenure claims",
        "tenure ps",
        "tenure status",
        "tenure config",
        "tenure log",
        "tenure locks",
        "tenure renew --for 1m --reason test",
        "tenure meta set team blue",
        "tenure mission join m --role dev",
        "tenure mission leave --mission m",
        "tenure claim issue:acme/web#42",
        "tenure claim path:acme/web:src/**",
        "tenure guard path:acme/web:src/a.rs",
        "tenure lock build -- true",
        "tenure claim wp:2 -- true",
        "tenure release wp:1",
        "tenure end",
    ] {
        gone(&env, &ann, line).ok();
    }
    // A session can begin there, too.
    gone(
        &env,
        &bob,
        "tenure register --agent bob --pid $PPID --dir /",
    )
    .ok();
    let payload = r#"{"hook_event_name":"UserPromptSubmit","session_id":"s1"}"#;
    let heard = gone(
        &env,
        &bob,
        &format!("echo '{payload}' | tenure hook claude"),
    );
    assert_eq!((heard.code, heard.stderr.as_str()), (0, ""), "{heard}");
}

#[test]
fn in_a_deleted_directory_a_short_key_is_refused_with_what_is_missing() {
    let (env, [ann]) = crew(["ann"]);
    for typed in ["'#42'", "path:src/**"] {
        let said = gone(&env, &ann, &format!("tenure claim {typed}")).fails(2);
        assert!(said.stderr.contains("directory"), "{said}");
        assert!(said.stderr.contains("OWNER/NAME"), "{said}");
    }
    let said = gone(&env, &ann, "TENURE_STORE=x.db tenure ps");
    assert!(said.code != 0 && said.stderr.contains("x.db"), "{said}");
}

#[test]
fn a_store_that_is_named_by_a_relative_path_is_below_the_current_directory() {
    let env = env();
    let agent = env.agent("ann");
    let pid = agent.pid();
    let store = [("TENURE_STORE", Some("private/x.db"))];
    let register = format!("register --agent ann --pid {pid}");
    let args: Vec<&str> = register.split(' ').collect();
    agent.tenure_env(&store, &args).ok();
    assert!(env.work().join("private/x.db").is_file());
}

#[test]
fn a_directory_whose_name_is_no_text_is_worked_in() {
    let (env, [ann]) = crew(["ann"]);
    let dir = env.dir().join(OsStr::from_bytes(b"caf\xe9"));
    scratch_git(&dir, Some("git@github.com:acme/web.git"));
    let tenure = env.tenure_path().to_str().unwrap();
    for args in [
        vec!["claim", "#42"],
        vec!["claim", "path:src/**"],
        vec!["guard", "path:src/a"],
        vec!["who"],
        vec!["status"],
    ] {
        // A worker is told its directory as text, so a shell finds it.
        let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
        let line = format!(
            "cd {}/caf* && {tenure} {}",
            env.dir().display(),
            words.join(" ")
        );
        ann.tenure_shell(&line).ok();
    }
}

/// What follows `--` belongs to the command, whatever its bytes are.
#[test]
fn words_of_a_command_need_not_be_text() {
    let (_env, [ann]) = crew(["ann"]);
    for verb in ["lock build", "claim wp:1"] {
        let line = format!("tenure {verb} -- printf %s \"$(printf 'caf\\351')\" | od -An -tx1");
        let said = ann.tenure_shell(&line).ok();
        assert_eq!(said.stdout.trim(), "63 61 66 e9", "{verb}: {said}");
    }
    // Its session has a title that can be read.
    let line = "tenure claim wp:2 -- sh -c 'tenure whoami --json' \"$(printf 'caf\\351')\"";
    let title = ann.tenure_shell(line).ok().json()["session"]["title"].clone();
    assert!(title.as_str().unwrap().contains("caf\u{fffd}"), "{title}");
    // A program whose name is not UTF-8 can be run, and reported as missing.
    let line = "p=\"$TMPDIR/$(printf 'p\\351')\"; printf '#!/bin/sh\\necho ran\\n' > \"$p\"; \
                chmod +x \"$p\"; tenure lock build -- \"$p\"; tenure claim wp:3 -- \"$p\"; \
                tenure lock build -- \"$p.missing\"";
    let said = ann.tenure_shell(line).fails(127);
    assert_eq!(said.stdout, "ran\nran\n", "{said}");
}

#[test]
fn variables_that_are_no_text_break_nothing() {
    let (_env, [ann]) = crew(["ann"]);
    let odd = "$(printf 'caf\\351')";
    for name in [
        "TENURE_SESSION",
        "CLAUDE_CODE_SESSION_ID",
        "PWD",
        "TERM",
        "LANG",
        "OTHER",
    ] {
        let line = format!("{name}=\"{odd}\" tenure whoami");
        ann.tenure_shell(&line).ok();
    }
    // A store's path of such a name is refused with its name, not opened under another.
    let said = ann.tenure_shell(&format!("TENURE_STORE=\"$TMPDIR/{odd}\" tenure ps"));
    assert!(
        said.code == 2 && said.stderr.contains("TENURE_STORE"),
        "{said}"
    );
}

//! Completion: shells offer sessions, held keys and missions, and asking for them changes nothing.

use std::fs;

use tenure_testkit::{Agent, Cmd, Env};

use crate::env;
use crate::support::line::{crew, handle, run, take};
use crate::support::skip::skipped;

/// What a shell that splits words itself is offered for the last of these.
#[track_caller]
fn offered(env: &Env, words: &[&str]) -> Vec<String> {
    let said = env
        .tenure(&[&["__complete", "fish", "--"], words].concat())
        .ok();
    assert_eq!(said.stderr, "", "{said}");
    let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    said.stdout.lines().map(word).collect()
}

/// What real bash would put behind the cursor at the end of a line.
#[track_caller]
fn bash(agent: &Agent, line: &str) -> Vec<String> {
    let script = "eval \"$(tenure completions bash)\" || exit 1
        COMP_LINE=$1 COMP_POINT=${#1}
        complete -p tenure >&2 || exit 1
        _tenure && true
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let cmd = Cmd::new("bash").args(["--norc", "--noprofile", "-c", script, "bash", line]);
    let said = agent.run(cmd).ok();
    assert!(said.stderr.contains("-F _tenure tenure"), "{said}");
    let lines = said.stdout.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[test]
fn sessions_keys_and_missions_are_offered_where_they_fit() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    take(&bob, "issue:acme/web#42");
    run(&ann, 0, "mission join 041-login --role developer");
    let (a, b) = (handle(&ann), handle(&bob));
    let both = [b, a.clone()];
    for words in [
        &["show", ""][..],
        &["alive", ""],
        &["wait", ""],
        &["tell", ""],
        &["resume", ""],
        &["transcript", "show", ""],
        &["ps", "--session", ""],
        &["--session", ""],
        &["handoff", "wp:1", "--to", ""],
        &["takeover", "wp:1", "--from", ""],
        &["register", "--parent", ""],
    ] {
        assert_eq!(offered(&env, words), both, "{words:?}");
    }
    assert_eq!(offered(&env, &["show", "an"]), [a.as_str()]);
    assert_eq!(
        offered(&env, &["log", "--session=an"]),
        [format!("--session={a}")]
    );
    for words in [
        &["release", ""][..],
        &["why", ""],
        &["guard", ""],
        &["claim", "wp:9", ""],
        &["claims", ""],
    ] {
        assert_eq!(
            offered(&env, words),
            ["issue:acme/web#42", "wp:1"],
            "{words:?}"
        );
    }
    assert_eq!(offered(&env, &["why", "wp"]), ["wp:1"]);
    // A log is of a key or of a session.
    for word in ["wp", "an"] {
        assert_eq!(offered(&env, &["log", word]).len(), 1, "{word}");
    }
    for words in [
        &["mission", "leave", ""][..],
        &["mission", "status", "--mission", ""],
    ] {
        assert_eq!(offered(&env, words), ["041-login"], "{words:?}");
    }
    run(&ann, 0, "conversation set codex issue:acme/web#6 ses-1");
    for words in [
        &["conversation", "get", "codex", ""][..],
        &["conversation", "drop", ""],
        &["conversation", "link", ""],
        &["conversation", "link", "wp:1", ""],
        &["conversation", "list", "--item", ""],
    ] {
        let items = ["issue:acme/web#6", "issue:acme/web#42", "wp:1"];
        assert_eq!(offered(&env, words), items, "{words:?}");
    }
    // A metadata value is not a claim.
    assert_eq!(offered(&env, &["meta", "get", ""]), [""; 0]);
    for words in [
        &["who", ""][..],
        &["lock", "x", "--", ""],
        &["man", "--dir", ""],
    ] {
        assert_eq!(offered(&env, words), [":files"], "{words:?}");
    }
    assert_eq!(offered(&env, &["mission", "le"]), ["leave"]);
    assert_eq!(offered(&env, &["ps", "--wat"]), ["--watch"]);
    assert!(offered(&env, &["help", ""]).contains(&"takeover".to_owned()));
    assert!(
        !offered(&env, &[""])
            .iter()
            .any(|verb| verb.starts_with("__"))
    );
}

#[test]
fn open_sessions_are_offered_before_those_that_ended() {
    let (env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    let [a, b, e] = [&ann, &bob, &eve].map(handle);
    run(&bob, 0, "end");
    run(&eve, 0, "end");
    let found = offered(&env, &["show", ""]);
    assert_eq!(found[0], a);
    let mut ended = found[1..].to_vec();
    ended.sort();
    assert_eq!(ended, [b, e]);
}

#[test]
fn dismiss_is_offered_what_was_cut_off_and_goto_what_is_open() {
    let (env, [ann, bob, eve]) = crew(["ann", "bob", "eve"]);
    let [a, b, _] = [&ann, &bob, &eve].map(handle);
    run(&eve, 0, "end");
    ann.kill9();
    // Its death is recorded by a look.
    run(&bob, 0, "ps");
    assert_eq!(offered(&env, &["dismiss", ""]), [a.as_str()]);
    assert_eq!(offered(&env, &["goto", ""]), [b]);
    env.tenure(&["dismiss", &a, "--reason", "it is over"]).ok();
    assert_eq!(offered(&env, &["dismiss", ""]), [""; 0]);
    assert_eq!(offered(&env, &["help", "mission", "jo"]), ["join"]);
}

#[test]
fn asking_makes_no_store_and_is_silent_where_something_is_wrong() {
    let fresh = env();
    for words in [&["show", ""][..], &["why", ""], &["mission", "leave", ""]] {
        assert_eq!(offered(&fresh, words), [""; 0], "{words:?}");
    }
    assert!(!fresh.state().exists());
    let spoilt = env();
    fs::create_dir(spoilt.state()).expect("a scratch directory is ours");
    fs::write(spoilt.state().join("tenure.db"), "no database").expect("it is ours");
    assert_eq!(offered(&spoilt, &["show", ""]), [""; 0]);
    assert_eq!(offered(&spoilt, &["mission", "le"]), ["leave"]);
}

/// A look by ps records a death that it sees; asking what can be typed does not.
#[test]
fn asking_records_nothing() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let (gone, here) = (handle(&ann), handle(&bob));
    ann.kill9();
    let before = run(&bob, 0, "log --limit 1")["events"][0]["cursor"].clone();
    assert_eq!(offered(&env, &["show", ""]), [here, gone]);
    let after = run(&bob, 0, "log --limit 1")["events"][0]["cursor"].clone();
    assert_eq!(before, after);
}

#[test]
fn real_bash_is_offered_what_can_follow() {
    let (_env, [ann]) = crew(["ann"]);
    if ann.run(Cmd::shell("command -v bash")).code != 0 {
        return skipped("bash is missing");
    }
    take(&ann, "issue:acme/web#42");
    take(&ann, "path:acme/web:src/**");
    let own = handle(&ann);
    assert_eq!(bash(&ann, "tenure show "), [own.as_str()]);
    assert_eq!(bash(&ann, "tenure log --session an"), [own]);
    assert_eq!(bash(&ann, "tenure mission le"), ["leave"]);
    assert_eq!(
        bash(&ann, "tenure why "),
        ["issue:acme/web#42", "path:acme/web:src/\\*\\*"]
    );
    // Bash ends a word at a colon, so only what follows it is put in.
    assert_eq!(bash(&ann, "tenure why issue:ac"), ["acme/web#42"]);
    assert_eq!(bash(&ann, "tenure why 'issue:ac"), ["issue:acme/web#42"]);
    assert_eq!(bash(&ann, "tenure who "), [""; 0]);
}

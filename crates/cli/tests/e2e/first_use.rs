//! The first commands on a machine: no store, no directory, no session; and a command that fails makes no store.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;
use tenure_testkit::{Cmd, poll};

use crate::env;
use crate::support::hook::event;
use crate::support::line::{SOON, register, session, text};

/// Verbs that list: empty, and no failure.
const LISTS: &[(&str, &str)] = &[
    ("ps", "sessions"),
    ("ps -a", "sessions"),
    ("ps --tree", "sessions"),
    ("who", "sessions"),
    ("claims", "claims"),
    ("claims --all", "claims"),
    ("log", "events"),
    ("locks", "locks"),
    ("mission list", "missions"),
    ("resume --all --print", "resume"),
];

/// Verbs about one thing: it is not found.
const SINGLES: &[&str] = &[
    "show ann",
    "alive ann",
    "wait ann",
    "whoami",
    "verify",
    "guard wp:1",
    "claims --mine",
    "meta get",
    "transcript show ann",
    "transcript verify ann",
    "mission status",
    "mission status --mission m",
    "mission check",
    "resume ann --print",
    "log --session ann",
];

/// Verbs that answer whatever there is.
const OTHERS: &[&str] = &[
    "status",
    "why wp:1",
    "config",
    "help --all",
    "man ps",
    "completions bash",
    "schema",
    "uninstall --all --dry-run",
];

#[test]
fn a_verb_that_reads_makes_no_store_and_answers_as_for_an_empty_one() {
    let env = env();
    let ask = |line: &str| {
        let mut words: Vec<&str> = line.split(' ').collect();
        let plain = env.tenure(&words);
        words.push("--json");
        let json = env.tenure(&words);
        assert!(!env.state().exists(), "{line} made the state directory");
        assert_eq!(plain.code, json.code, "{line}\n{plain}\n{json}");
        assert_eq!(json.stderr, "", "{line}\n{json}");
        (json.code, json.json())
    };
    for (line, part) in LISTS {
        let (code, answer) = ask(line);
        assert_eq!(code, 0, "{line}: {answer}");
        assert_eq!(answer[part], Value::Array(Vec::new()), "{line}: {answer}");
    }
    for line in SINGLES {
        let (code, answer) = ask(line);
        assert_eq!(code, 4, "{line}: {answer}");
    }
    for line in OTHERS {
        let (code, answer) = ask(line);
        assert_eq!(code, 0, "{line}: {answer}");
    }
    let said = env.tenure(&["whoami"]).fails(4).stderr;
    let file = env.state().join("tenure.db");
    assert!(said.contains(&file.display().to_string()), "{said}");
}

#[test]
fn status_does_not_advise_an_install_that_is_there() {
    let env = env();
    fs::create_dir_all(env.home().join(".claude")).expect("a scratch directory is ours");
    let before = env.tenure(&["status"]).ok().stdout;
    assert!(before.contains("`tenure install`"), "{before}");
    env.tenure(&["install", "claude"]).ok();
    let after = env.tenure(&["status"]).ok().stdout;
    assert!(!after.contains("tenure install"), "{after}");
    assert!(after.contains("claude will register by itself"), "{after}");
}

#[test]
fn a_verb_that_reads_adds_nothing_to_a_directory_without_a_store() {
    let env = env();
    fs::create_dir(env.state()).expect("a scratch directory is ours");
    for line in ["ps", "log", "locks", "status", "show ann"] {
        let words: Vec<&str> = line.split(' ').collect();
        let said = env.tenure(&words);
        assert!(matches!(said.code, 0 | 4), "{said}");
        let inside = fs::read_dir(env.state()).expect("it is ours").count();
        assert_eq!(inside, 0, "{line} made something");
    }
}

/// An empty answer would hide what the log still holds.
#[test]
fn a_database_that_is_gone_while_its_log_is_there_is_not_an_empty_store() {
    let env = env();
    fs::create_dir(env.state()).expect("a scratch directory is ours");
    fs::write(env.state().join("tenure.db-wal"), "changes").expect("a scratch directory is ours");
    let said = env.tenure(&["ps"]).fails(8).stderr;
    assert!(said.contains("log"), "{said}");
}

#[test]
fn a_directory_that_may_not_be_used_is_refused_to_readers_too() {
    let env = env();
    fs::write(env.state(), "").expect("a scratch directory is ours");
    let said = env.tenure(&["ps"]).fails(8).stderr;
    assert!(said.contains("is not a directory"), "{said}");
}

#[test]
fn a_verb_that_writes_says_once_that_it_made_the_state_directory() {
    let dir = |env: &tenure_testkit::Env| {
        format!(
            "note: created the state directory {}",
            env.state().display()
        )
    };
    for line in [
        "register --agent ann --pid $PPID",
        "lock build -- true",
        "install claude",
    ] {
        let env = env();
        let agent = env.agent("ann");
        let first = agent.tenure_shell(&format!("tenure {line}")).ok();
        assert_eq!(first.stderr.matches(&dir(&env)).count(), 1, "{first}");
        assert!(env.state().is_dir());
        let again = agent.tenure_shell(&format!("tenure {line}")).ok();
        assert!(!again.stderr.contains("created"), "{again}");
    }
    // Programs asked for one object, and quiet is quiet.
    for flag in ["--json", "--quiet"] {
        let env = env();
        let agent = env.agent("ann");
        let pid = agent.pid().to_string();
        let said = agent.tenure(&["register", "--agent", "ann", "--pid", &pid, flag]);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said}");
    }
}

#[test]
fn a_hook_makes_the_store_and_says_nothing_about_it() {
    let env = env();
    let claude = env.agent("claude");
    event(
        &claude,
        "SessionStart",
        &serde_json::json!({"source": "startup"}),
    );
    let answer = env.tenure(&["ps", "--json"]).ok().json();
    assert_eq!(answer["sessions"][0]["agent"], "claude", "{answer}");
}

#[test]
fn the_first_ps_names_the_next_step() {
    let env = env();
    fs::create_dir(env.home().join(".claude")).expect("a scratch directory is ours");
    let before = env.tenure(&["ps"]).ok().stdout;
    assert!(
        before.starts_with("no sessions\nnext: run `tenure install`"),
        "{before}"
    );
    assert!(before.contains("claude"), "{before}");
    env.tenure(&["install", "claude"]).ok();
    let after = env.tenure(&["ps"]).ok().stdout;
    assert!(
        after.starts_with("no sessions\nnext: start claude"),
        "{after}"
    );
    assert!(!after.contains("tenure install"), "{after}");
    let json = env.tenure(&["ps", "--json"]).ok();
    assert_eq!(json.stdout.lines().count(), 1, "{json}");
    let _ann = session(&env, "ann");
    let shown = env.tenure(&["ps"]).ok().stdout;
    assert!(!shown.contains("next:"), "{shown}");
}

#[test]
fn hooks_in_a_project_count_as_installed() {
    let env = env();
    fs::create_dir(env.home().join(".gemini")).expect("a scratch directory is ours");
    let project = env.work().display().to_string();
    env.tenure(&["install", "gemini", "--project", &project])
        .ok();
    let shown = env.tenure(&["ps"]).ok().stdout;
    assert!(shown.contains("next: start gemini"), "{shown}");
}

#[test]
fn status_outside_a_session_says_what_to_do() {
    let env = env();
    let said = env.tenure(&["status"]).ok().stdout;
    assert!(said.starts_with("no session here\n"), "{said}");
    for command in ["`tenure register`", "`tenure install`"] {
        assert!(said.contains(command), "{said}");
    }
    let json = env.tenure(&["status", "--json"]).ok().json();
    assert!(json["status"]["no_session"].is_string(), "{json}");
}

#[test]
fn who_watches_sees_a_store_that_is_made_later() {
    let env = env();
    let watcher = env.agent("watcher");
    let start = |words: &[&str]| watcher.start(Cmd::new("tenure").args(words.iter().copied()));
    let (ps, log) = (
        start(&["ps", "--watch", "--json"]),
        start(&["log", "-f", "--json"]),
    );
    poll(SOON, "the empty list", || {
        ps.stdout().contains("\"sessions\":[]").then_some(())
    });
    assert!(!env.state().exists(), "a watcher made the state directory");
    let ann = env.agent("ann");
    let handle = text(&register(&ann, "ann", "")["session"]["handle"]);
    poll(SOON, "the new session", || {
        let seen = ps.stdout().contains(&handle) && log.stdout().contains("session.registered");
        seen.then_some(())
    });
    ps.kill9();
    log.kill9();
}

/// Commands that change a session that is already known. Without a store there is none.
const FAILING: &[&str] = &[
    "dismiss x",
    "dismiss --all --reason because",
    "end x --reason because",
    "goto x",
    "rename x Title",
    "tell x hello",
    "meta set a b",
    "claim wp:1",
    "release wp:1",
    "renew",
    "handoff wp:1 --to x",
    "takeover wp:1 --reason because",
    "mission join m --role developer",
    "mission leave m",
    "mission focus wp:1",
    "mission drive active",
    "register --agent ann --pid 4194303",
    "adopt 4194303",
    "runs show r-1",
    "runs tail r-1",
    "runs stop r-1",
    "runs resume r-1",
    "queue show j-1",
    "queue explain j-1",
    "queue cancel j-1",
    "queue retry j-1",
];

#[test]
fn a_command_that_fails_without_a_store_makes_none() {
    let env = env();
    for line in FAILING {
        let words: Vec<&str> = line.split(' ').collect();
        let said = env.tenure(&words);
        assert_ne!(said.code, 0, "{line}\n{said}");
        assert_ne!(said.code, 2, "{line} is not a command\n{said}");
        assert!(!said.stderr.contains("created"), "{line}\n{said}");
        assert!(!env.state().exists(), "{line} made the state directory");
    }
    let append = ["transcript", "append", "x"];
    let said = env.agent("ann").tenure_stdin(&append, "{}\n").fails(4);
    assert!(!env.state().exists(), "{said}");
}

#[test]
fn a_command_that_claims_for_a_command_makes_the_store() {
    let env = env();
    env.tenure(&["claim", "wp:1", "--", "true"]).ok();
    assert!(env.state().is_dir());
}

#[test]
fn locks_that_cannot_be_looked_at_are_not_missing_ones() {
    let env = env();
    std::fs::create_dir(env.state()).expect("a scratch directory is ours");
    let locks = env.state().join("locks");
    symlink(&locks, &locks).expect("a scratch directory is ours");
    let said = env.tenure(&["locks"]).fails(8);
    assert!(said.stderr.contains("locks"), "{said}");
}

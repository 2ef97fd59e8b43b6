//! An answer that could not be written is a failure, a reader that left is not.

use tenure_testkit::{Agent, Cmd, Output};

use crate::env;
use crate::support::line::{crew, register, run, take};

/// Runs a shell line whose stdout is full.
fn full(agent: &Agent, line: &str) -> Output {
    agent.run(Cmd::shell(&format!("tenure {line} >/dev/full")))
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let (_env, [ann]) = crew(["ann"]);
    take(&ann, "wp:1");
    for line in [
        "ps",
        "ps --json",
        "ps --watch",
        "ps --watch --json",
        "claims --json",
        "status",
        "whoami",
        "who",
        "why wp:1",
        "log",
        "log --json",
        "log -f",
        "log -f --json",
        "locks",
        "mission list",
        "config",
        "schema",
        "completions bash",
        "man ps",
        "help",
        "help --all",
        "help ps",
        "--help",
        "ps --help",
        "--version",
        "--version --json",
        "demo",
        "resume --all --print",
    ] {
        let said = full(&ann, line);
        assert_eq!(said.code, 70, "{line}: {said}");
        assert!(said.stderr.contains("No space left"), "{line}: {said}");
        assert!(said.stderr.starts_with("error: "), "{line}: {said}");
        assert!(!said.stderr.contains("was made"), "{line}: {said}");
    }
}

#[test]
fn a_change_that_cannot_be_reported_says_that_it_was_made() {
    let env = env();
    let ann = env.agent("ann");
    for (line, made) in [
        (
            format!("register --agent ann --pid {}", ann.pid()),
            "whoami",
        ),
        ("claim wp:1".into(), "guard wp:1"),
        ("claim wp:2 --json".into(), "guard wp:2"),
        ("meta set a b".into(), "meta get a"),
        ("release wp:1 --done".into(), "ps"),
    ] {
        let said = full(&ann, &line);
        assert_eq!(said.code, 70, "{line}: {said}");
        assert!(
            said.stderr.contains("the change was made"),
            "{line}: {said}"
        );
        run(&ann, 0, made);
    }
    run(&ann, 0, "guard wp:2");
    let said = ann.run(Cmd::shell(
        "tenure claim wp:3 --json >/dev/full 2>/dev/full",
    ));
    assert_eq!(said.code, 70, "{said}");
    let said = ann.run(Cmd::shell("tenure nonsense 2>/dev/full"));
    assert_eq!(said.code, 2, "an error keeps its own code: {said}");
    let said = ann.run(Cmd::shell("tenure whoami -q 2>/dev/full"));
    assert_eq!(said.code, 0, "nothing was to be written: {said}");
}

#[test]
fn a_reader_that_left_is_no_failure() {
    let env = env();
    let ann = env.agent("ann");
    register(&ann, "ann", "");
    for line in [
        "ps",
        "ps --json",
        "log",
        "help --all",
        "--help",
        "schema",
        "log -f",
        "ps --watch",
        "completions bash",
        "man",
    ] {
        let code = env.dir().join("code");
        let line = format!("{{ tenure {line}; echo $? >{}; }} | true", code.display());
        let said = ann.run(Cmd::shell(&format!("{line}; cat {}", code.display())));
        assert_eq!(said.stdout.trim(), "0", "{line}: {said}");
    }
}

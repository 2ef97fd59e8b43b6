//! With --json a call says one thing, once: its answer, or why there is none.

use serde_json::Value;

use crate::support::line::{crew, handle};
use crate::support::person::seeing;

#[test]
fn a_command_that_does_not_start_is_one_json_object() {
    let (env, [ann]) = crew(["ann"]);
    let plain = env.dir().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let plain = plain.to_str().unwrap();
    for (code, program) in [(127, "./missing-program"), (126, plain)] {
        let call = ["claim", "wp:1", "--json", "--", program];
        let said = ann.tenure(&call).fails(code);
        assert_eq!(said.stdout, "", "{said}");
        let lines: Vec<&str> = said.stderr.lines().collect();
        let [line] = lines[..] else {
            panic!("not one line: {said}")
        };
        let object: Value = serde_json::from_str(line).expect(line);
        assert_eq!(object["error"]["kind"], "command", "{said}");
        let message = object["error"]["message"].as_str().expect("text");
        assert!(message.contains(program), "{said}");
        // The same for people, once.
        let said = ann.tenure(&["claim", "wp:1", "--", program]).fails(code);
        assert_eq!(said.stderr.matches(program).count(), 1, "{said}");
        assert_eq!(ann.tenure(&["guard", "wp:1"]).code, 1, "it is free again");
    }
}

/// A code of the command's own is a success of ours.
#[test]
fn a_command_that_ends_with_the_code_of_a_missing_one_did_run() {
    let (_env, [ann]) = crew(["ann"]);
    for code in [126, 127] {
        let exit = format!("exit {code}");
        let call = ["claim", "wp:1", "--json", "--", "sh", "-c", &exit];
        let said = ann.tenure(&call).fails(code);
        let object: Value = serde_json::from_str(said.stderr.trim()).expect("one object");
        assert_eq!(object["command"]["exit"], code, "{said}");
    }
}

/// Where agents without hooks are not listed, nothing was looked for.
#[test]
fn who_tells_that_it_did_not_look_for_agents_without_hooks() {
    const UNSEEN: &str = "agents without hooks were not checked (ps.unmanaged is false)";
    let env = seeing();
    let stranger = env.agent("claude");
    let ask = |value: &str| {
        let off = [("TENURE_PS_UNMANAGED", Some(value))];
        stranger.tenure_env(&off, &["who"]).ok().stdout
    };
    assert!(ask("false").contains(UNSEEN), "{}", ask("false"));
    assert!(!ask("true").contains(UNSEEN), "{}", ask("true"));
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let said = ann.tenure(&["who"]).ok().stdout;
    assert!(said.contains(&handle(&bob)), "{said}");
    drop(env);
}

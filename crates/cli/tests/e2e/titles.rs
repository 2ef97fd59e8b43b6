//! What people see a session called.

use serde_json::{Value, json};

use crate::env;
use crate::support::hook::{claude, event, only};
use crate::support::line::{crew, handle, refused, run, text};

#[test]
fn ps_tells_two_agents_apart_by_what_they_were_asked() {
    let env = env();
    let (one, two) = (env.agent("claude"), env.agent("claude"));
    for (agent, prompt) in [
        (&one, "Fix the login\nof the admin page"),
        (&two, "Write the docs"),
    ] {
        event(agent, "SessionStart", &json!({"source": "startup"}));
        event(agent, "UserPromptSubmit", &json!({"prompt": prompt}));
    }
    let table = env.tenure(&["ps"]).ok().stdout;
    let row = |agent| {
        let name = handle(agent);
        let mut rows = table.lines().filter(|line| line.starts_with(&name));
        rows.next().expect("a row").to_owned()
    };
    assert!(
        row(&one).contains("Fix the login of the admin page"),
        "{table}"
    );
    assert!(row(&two).contains("Write the docs"), "{table}");
}

#[test]
fn a_captured_prompt_names_the_session() {
    let env = env();
    let agent = env.agent("claude");
    claude(
        &env,
        &agent,
        "SessionStart.startup",
        "b2d6a746-0000-4000-8000-000000000001",
    );
    claude(
        &env,
        &agent,
        "UserPromptSubmit",
        "b2d6a746-0000-4000-8000-000000000001",
    );
    let session = only(&env);
    assert!(session["title"].is_string(), "{session}");
    assert_eq!(session["title_by"], "prompt");
}

#[test]
fn prompts_stay_out_of_the_store_where_the_user_says_so() {
    let prompt = json!({"prompt": "the secret plan"});
    for by_project in [false, true] {
        let mut env = env();
        if by_project {
            tenure_testkit::scratch_git(&env.work(), None);
            let file = env.work().join(".tenure.toml");
            std::fs::write(file, "[privacy]\ntitles = false\n").expect("the directory is ours");
        } else {
            env.set("TENURE_PRIVACY_TITLES", "false");
        }
        let agent = env.agent("claude");
        let mut whole = prompt.clone();
        whole["cwd"] = Value::from(env.work().display().to_string());
        event(&agent, "SessionStart", &json!({"source": "startup"}));
        event(&agent, "UserPromptSubmit", &whole);
        assert_eq!(
            only(&env)["title"],
            Value::Null,
            "by the project: {by_project}"
        );
        for entry in std::fs::read_dir(env.state()).expect("it is there") {
            let path = entry.expect("it is there").path();
            if path.is_file() {
                let bytes = std::fs::read(&path).expect("it is ours");
                let secret = b"secret plan";
                let is_kept = bytes.windows(secret.len()).any(|part| part == secret);
                assert!(!is_kept, "{}", path.display());
            }
        }
        // What a person calls it is the person's to keep.
        let name = handle(&agent);
        run(&agent, 0, &format!("rename {name} Mine"));
        assert_eq!(only(&env)["title"], "Mine");
    }
}

#[test]
fn a_title_that_a_person_gave_stays_and_is_logged() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let name = handle(&ann);
    let renamed = run(&ann, 0, &format!("rename {name} Login"));
    assert_eq!(renamed["session"]["title"], "Login");
    refused(&bob, 2, "reason_needed", &format!("rename {name} Other"));
    run(&bob, 0, &format!("rename {name} Other --reason typo"));
    let log = env.tenure(&["log"]).ok().stdout;
    assert!(
        log.contains("title \"Other\"") && log.contains("typo"),
        "{log}"
    );
    let said = ann.tenure(&["rename", &name, ""]).ok().stdout;
    assert!(said.contains("removed the title"), "{said}");
    assert_eq!(
        run(&ann, 0, &format!("show {name}"))["session"]["title"],
        Value::Null
    );
}

#[test]
fn the_agents_own_title_is_read_when_somebody_looks() {
    let env = env();
    let id = "b2d6a746-0000-4000-8000-000000000001";
    let agent = crate::support::transcript::claude(&env, id);
    let file = crate::support::transcript::file_of(&env, id);
    let record = json!({"type": "ai-title", "aiTitle": "Login repair", "sessionId": id});
    let mut lines = std::fs::read_to_string(&file).expect("it is ours");
    lines.push_str(&format!("{record}\n"));
    std::fs::write(&file, lines).expect("it is ours");
    let shown = run(&agent, 0, &format!("show {}", handle(&agent)))["session"].clone();
    assert_eq!(
        (text(&shown["title"]), text(&shown["title_by"])),
        ("Login repair".into(), "agent".into())
    );
}

#[test]
fn ps_quiet_prints_the_handles_alone() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let said = env.tenure(&["ps", "-q"]).ok();
    assert_eq!(said.stdout, format!("{}\n{}\n", handle(&bob), handle(&ann)));
}

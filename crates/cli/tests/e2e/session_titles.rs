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

/// `/rename` has no event, so the name is stored at the next one; it is in no event's payload.
#[test]
fn a_name_given_in_the_agent_outlives_it_and_goes_with_its_conversation() {
    let env = env();
    let name = |id: &str, title: &str| {
        let file = crate::support::transcript::file_of(&env, id);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let record = json!({"type": "custom-title", "customTitle": title, "sessionId": id});
        std::fs::write(&file, format!("{record}\n")).unwrap();
        file
    };
    let (one, other) = (
        "b2d6a746-0000-4000-8000-000000000001",
        "b2d6a746-0000-4000-8000-000000000002",
    );
    let (first, second) = (name(one, "Login repair"), name(other, "Search"));
    let agent = env.agent("claude");
    let send = |id: &str, file: &std::path::Path, event: &str, more: Value| {
        let mut whole = json!({"hook_event_name": event, "session_id": id, "cwd": env.work(),
            "transcript_path": file});
        whole
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        agent
            .tenure_stdin(&["hook", "claude"], &whole.to_string())
            .ok();
    };
    send(one, &first, "SessionStart", json!({"source": "startup"}));
    send(one, &first, "UserPromptSubmit", json!({"prompt": "hello"}));
    let shown = || env.tenure(&["ps", "-a", "--json"]).ok().json()["sessions"][0].clone();
    assert_eq!(shown()["title"], "Login repair");
    send(one, &first, "SessionEnd", json!({"reason": "resume"}));
    send(other, &second, "SessionStart", json!({"source": "resume"}));
    assert_eq!(shown()["title"], Value::Null);
    send(
        other,
        &second,
        "UserPromptSubmit",
        json!({"prompt": "go on"}),
    );
    assert_eq!(shown()["title"], "Search");
    name(other, "Search again");
    send(other, &second, "Stop", json!({}));
    std::fs::remove_file(&second).unwrap();
    agent.kill9();
    let gone = shown();
    assert_eq!(
        (&gone["state"], &gone["title"]),
        (&"dead".into(), &"Search again".into())
    );
}

/// `/rename`, and then kill -9 without an event: the name is in the transcript.
#[test]
fn a_name_given_just_before_the_death_is_not_lost() {
    let env = env();
    let id = "b2d6a746-0000-4000-8000-000000000004";
    let agent = crate::support::transcript::claude(&env, id);
    let name = handle(&agent);
    let file = crate::support::transcript::file_of(&env, id);
    let record = json!({"type": "custom-title", "customTitle": "Last name", "sessionId": id});
    let lines = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{lines}{record}\n")).unwrap();
    agent.kill9();
    for line in [
        &["ps", "--json"][..],
        &["resume", "--json"],
        &["ps", "--json"],
    ] {
        let shown = env.tenure(line).ok().json();
        let listed = [&shown["sessions"][0], &shown["resume"][0]["session"]];
        let own = listed.iter().find(|one| one["handle"] == name.as_str());
        assert_eq!(own.unwrap()["title"], "Last name", "{line:?}: {shown:#}");
    }
    let shown = env.tenure(&["show", &name, "--json"]).ok().json();
    assert_eq!(shown["session"]["title"], "Last name", "{shown:#}");
}

#[test]
fn titles_that_are_private_are_not_read_from_the_agents_files() {
    let mut env = env();
    env.set("TENURE_PRIVACY_TITLES", "false");
    let id = "b2d6a746-0000-4000-8000-000000000003";
    let file = crate::support::transcript::file_of(&env, id);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let record = json!({"type": "custom-title", "customTitle": "Secret", "sessionId": id});
    std::fs::write(&file, format!("{record}\n")).unwrap();
    let agent = env.agent("claude");
    let start = json!({"hook_event_name": "SessionStart", "session_id": id, "cwd": env.work(),
        "source": "startup", "transcript_path": file});
    agent
        .tenure_stdin(&["hook", "claude"], &start.to_string())
        .ok();
    std::fs::remove_file(&file).unwrap();
    let shown = env.tenure(&["ps", "-a", "--json"]).ok().json();
    assert_eq!(shown["sessions"][0]["title"], Value::Null, "{shown}");
}

#[test]
fn ps_quiet_prints_the_handles_alone() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let said = env.tenure(&["ps", "-q"]).ok();
    assert_eq!(said.stdout, format!("{}\n{}\n", handle(&bob), handle(&ann)));
}

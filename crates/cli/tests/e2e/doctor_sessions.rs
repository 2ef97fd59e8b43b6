//! What `tenure doctor` finds about sessions: deaths, holders, transcripts, conversations and mirrors.

use std::fs;

use serde_json::json;
use tenure_testkit::{Cmd, poll};

use crate::support::doctor::{codes, config, doctor, finding, finds, healthy, is_fixed, plant};
use crate::support::lease::impatient;
use crate::support::line::{SOON, crew, handle, register, run, session, take, text};
use crate::support::transcript::{claude, file_of, line_of};

#[test]
fn sessions_that_are_dead_and_open() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let eve = session(&env, "eve");
    take(&ann, "wp:1");
    let name = handle(&eve);
    eve.kill9();
    ann.kill9();
    for _ in 0..2 {
        let report = doctor(&env, 6, &[]);
        let found = finding(&report, "session_dead_open");
        assert!(found["evidence"].to_string().contains(&name), "{found}");
    }
    let report = is_fixed(&env, "session_dead_open");
    assert!(report["doctor"]["backup"].is_string(), "{report}");
    take(&bob, "wp:1");
}

#[test]
fn two_sessions_in_one_conversation() {
    let env = crate::env();
    let (ann, bob) = (env.agent("claude"), env.agent("claude"));
    register(&ann, "claude", "--native-id c-1");
    healthy(&env);
    register(&bob, "claude", "--native-id c-1");
    finds(&env, "session_twin");
    finds(&env, "sessions_collide");
    bob.tenure(&["end"]).ok();
    healthy(&env);
}

#[test]
fn what_the_dead_left_running() {
    let (env, [ann]) = crew(["ann"]);
    let orphan = ann.orphan(Cmd::new("sleep").arg("1000"));
    ann.kill9();
    env.tenure(&["ps"]).ok();
    let found = finds(&env, "session_survivors");
    assert!(found.to_string().contains(&orphan.to_string()), "{found}");
    let end = Cmd::new("kill").args(["-9".to_owned(), orphan.to_string()]);
    env.agent("sh").run(end).ok();
    poll(SOON, "it is gone", || {
        (env.tenure(&["doctor", "--json"]).code == 0).then_some(())
    });
}

#[test]
fn a_holder_that_is_silent() {
    let mut env = crate::env();
    env.set("TENURE_STALLED_AFTER", "1ms");
    let ann = claude(&env, "aaa");
    take(&ann, "wp:1");
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": "aaa", "cwd": env.work(), "prompt": "go"});
    ann.tenure_stdin(&["hook", "claude"], &prompt.to_string())
        .ok();
    let found = finds(&env, "holder_silent");
    assert!(found.to_string().contains("wp:1"), "{found}");
    ann.tenure(&["release", "wp:1"]).ok();
    let codes = codes(&env.tenure(&["doctor", "--json"]).json());
    assert!(!codes.contains("holder_silent"), "{codes:?}");
}

#[test]
fn a_holder_of_whom_nobody_can_tell() {
    let env = impatient();
    let ann = session(&env, "ann");
    take(&ann, "wp:1");
    healthy(&env);
    plant(
        &env,
        "UPDATE sessions SET pid_ns = pid_ns + 1; UPDATE lives SET pid_ns = pid_ns + 1",
    );
    let found = finds(&env, "holder_unknown");
    assert!(found.to_string().contains("wp:1"), "{found}");
    plant(
        &env,
        "UPDATE sessions SET pid_ns = pid_ns - 1; UPDATE lives SET pid_ns = pid_ns - 1",
    );
    healthy(&env);
}

#[test]
fn a_claim_that_was_lost_and_nobody_told_it() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    run(&bob, 0, "takeover wp:1 --reason stuck");
    finds(&env, "claim_lost_untold");
    ann.tenure(&["whoami"]).ok();
    healthy(&env);
}

#[test]
fn a_transcript_that_is_torn_or_of_another_session() {
    let env = crate::env();
    let (_ann, _bob) = (claude(&env, "aaa"), claude(&env, "bbb"));
    env.tenure(&["install", "claude"]).ok();
    healthy(&env);
    let file = file_of(&env, "aaa");
    fs::write(
        &file,
        format!("{}{}{{\"sess", line_of("aaa"), line_of("bbb")),
    )
    .expect("it is ours");
    let found = finds(&env, "transcript_damaged");
    assert!(found.to_string().contains("line 2"), "{found}");
    fs::write(&file, line_of("aaa")).expect("it is ours");
    healthy(&env);
    let theirs = file_of(&env, "bbb");
    plant(
        &env,
        &format!(
            "DELETE FROM transcripts WHERE native_id = 'bbb'; \
             UPDATE transcripts SET path = '{}' WHERE native_id = 'aaa'",
            theirs.display()
        ),
    );
    finds(&env, "transcript_foreign");
}

#[test]
fn a_conversation_that_its_agent_no_longer_has() {
    let env = crate::env();
    let ann = claude(&env, "0c4c2c6e-8a4b-4b8e-9d8e-1f2a3b4c5d6e");
    run(
        &ann,
        0,
        "conversation set claude wp:1 11111111-8a4b-4b8e-9d8e-1f2a3b4c5d6e",
    );
    let found = finds(&env, "conversation_gone");
    assert!(found.to_string().contains("11111111"), "{found}");
}

#[test]
fn a_mirror_that_cannot_be_written() {
    let (env, [ann]) = crew(["ann"]);
    let session = text(&run(&ann, 0, "whoami")["session"]["id"]);
    plant(
        &env,
        &format!(
            "INSERT INTO mirror_failures VALUES ('/none/file', '{session}', 'no such directory', 1)"
        ),
    );
    finds(&env, "mirror_failed");
    plant(&env, "DELETE FROM mirror_failures");
    healthy(&env);
}

#[test]
fn a_session_that_is_not_whom_its_environment_names() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let other = text(&run(&bob, 0, "whoami")["session"]["id"]);
    let wrong = [("TENURE_SESSION", Some(other.as_str()))];
    let report = ann
        .tenure_env(&wrong, &["doctor", "--json"])
        .fails(6)
        .json();
    assert!(codes(&report).contains("identity_wrong"), "{report}");
    ann.tenure(&["doctor"]).ok();
    healthy(&env);
}

#[test]
fn a_mirror_that_shows_a_session_that_is_over() {
    for end in ["remove", "mark"] {
        let env = crate::env();
        let file = env.home().join("mirror.json");
        let path = file.display();
        let mirror = format!("[[mirror]]\nformat = \"pact\"\npath = \"{path}\"\nend = \"{end}\"\n");
        config(&env, "config.toml", &mirror);
        let ann = session(&env, "ann");
        let open = fs::read(&file).expect("it is written at the start");
        ann.tenure(&["end"]).ok();
        healthy(&env);
        // Another program writes back what it had read.
        fs::write(&file, &open).expect("it is ours");
        let found = finding(&doctor(&env, 6, &[]), "mirror_left");
        assert!(found.to_string().contains("mirror.json"), "{found}");
        is_fixed(&env, "mirror_left");
        let after = fs::read_to_string(&file).ok();
        assert_eq!(after.is_some(), end == "mark");
        assert!(after.is_none_or(|text| text.contains("ended_at")));
    }
}

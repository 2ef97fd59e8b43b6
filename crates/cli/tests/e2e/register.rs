//! Every way in which a process becomes a session, with real processes.

use serde_json::Value;

use crate::env;
use crate::support::answer::{ask, assert_is, count, events, held, refused, register, text};
use crate::support::lease::{await_expiry, impatient};
use crate::support::namespace::{Inside, pid_namespace, sandboxed};

#[test]
fn a_process_that_nobody_knows_is_new() {
    let env = env();
    let a = env.agent("claude");
    let answer = register(&a, &["--native-id", "a1", "--title", "fix login"]);
    assert_eq!(answer["session"]["registered"], "new");
    assert_eq!(answer["session"]["agent"], "claude");
    assert_eq!(answer["session"]["native_id"], "a1");
    assert_eq!(answer["session"]["state"], "live");
    assert_eq!(answer["session"]["process"]["life"], 1);
    assert_is(&answer, a.pid());
    assert_eq!(
        text(&answer, "/token"),
        format!("{}.1", text(&answer, "/session/id"))
    );
}

#[test]
fn f_i20_a_process_that_hosts_has_one_session_for_each_conversation() {
    let env = env();
    let a = env.agent("gateway");
    let pid = a.pid().to_string();
    let host = |id: &str| register(&a, &["--hosted", "--pid", &pid, "--native-id", id]);
    let (one, two) = (host("c1"), host("c2"));
    assert_eq!(one["session"]["registered"], "hosted");
    assert_eq!(two["session"]["registered"], "hosted");
    assert_ne!(one["session"]["id"], two["session"]["id"]);
    assert_is(&one, a.pid());
    assert_is(&two, a.pid());
    assert_eq!(host("c1")["session"]["registered"], "same");

    let error = refused(&a, 6, &["claim", "wp:1"]);
    assert_eq!(error["kind"], "ambiguous");
    assert_eq!(count(&error, "/candidates"), 2);
    let pick = |answer: &Value, args: &[&str]| {
        let token = text(answer, "/token").to_owned();
        a.tenure_env(&[("TENURE_SESSION", Some(&token))], args)
    };
    pick(&one, &["claim", "wp:1", "--json"]).ok();
    pick(&two, &["claim", "wp:1", "--json"]).fails(3);
    let me = pick(&two, &["whoami", "--json"]).ok().json();
    assert_eq!(me["session"]["id"], two["session"]["id"]);
    assert_eq!(me["resolved"]["by"], "ancestry");

    // Both die with the process.
    a.kill9();
    for answer in [&one, &two] {
        env.tenure(&["alive", text(answer, "/session/id")]).fails(1);
    }
}

#[test]
fn f_h12_a_fork_that_names_its_parents_conversation_is_not_the_parent() {
    let env = env();
    let a = env.agent("claude");
    let parent = register(&a, &["--native-id", "a1"]);
    ask(&a, &["claim", "wp:1"]);
    a.kill9();
    let b = env.agent_with("claude", &["--resume", "a1", "--fork-session"]);
    let fork = register(&b, &["--native-id", "a1"]);
    assert_eq!(fork["session"]["registered"], "forked");
    assert_ne!(fork["session"]["id"], parent["session"]["id"]);
    assert_eq!(fork["session"]["native_id"], Value::Null);
    assert_eq!(count(&fork, "/session/claims"), 0);
    // The parent's id from this process is ignored permanently; its own one is its first.
    let again = register(&b, &["--source", "event", "--native-id", "a1"]);
    assert_eq!(again["session"]["native_id"], Value::Null);
    let own = register(&b, &["--source", "event", "--native-id", "f1"]);
    assert_eq!(own["session"]["id"], fork["session"]["id"]);
    assert_eq!(own["session"]["native_id"], "f1");
    let late = register(&b, &["--source", "event", "--native-id", "a1"]);
    assert_eq!(late["session"]["native_id"], "f1");
    // The parent can still be resumed, with what it held.
    let c = env.agent_with("claude", &["--resume", "a1"]);
    let back = register(&c, &["--native-id", "a1"]);
    assert_eq!(back["session"]["id"], parent["session"]["id"]);
    assert_eq!(held(&back, "/session/claims"), ["wp:1@2"]);
}

#[test]
fn a_killed_session_resumes_with_what_it_held_and_nobody_took() {
    let env = env();
    let (a, c) = (env.agent("claude"), env.agent("codex"));
    let first = register(&a, &["--native-id", "a1"]);
    let other = register(&c, &[]);
    for key in ["wp:kept", "wp:released", "wp:done", "wp:taken"] {
        ask(&a, &["claim", key]);
    }
    ask(&a, &["release", "wp:released"]);
    ask(&a, &["release", "wp:done", "--done"]);
    a.kill9();
    let taken = ask(&c, &["claim", "wp:taken"]);
    assert_eq!(
        taken["claim"]["taken_from"]["session"],
        first["session"]["id"]
    );

    let b = env.agent("claude");
    let back = register(&b, &["--native-id", "a1"]);
    assert_eq!(back["session"]["registered"], "resumed");
    assert_eq!(back["session"]["id"], first["session"]["id"]);
    assert_eq!(back["session"]["handle"], first["session"]["handle"]);
    assert_eq!(back["session"]["process"]["life"], 2);
    assert_is(&back, b.pid());
    assert_eq!(
        text(&back, "/token"),
        format!("{}.2", text(&first, "/session/id"))
    );
    assert_eq!(held(&back, "/regranted"), ["wp:kept@2"]);
    assert_eq!(held(&back, "/session/claims"), ["wp:kept@2"]);
    assert_eq!(count(&back, "/taken"), 1);
    assert!(text(&back, "/taken/0").starts_with("wp:taken: "));
    assert!(text(&back, "/taken/0").contains(text(&other, "/session/handle")));
    assert_eq!(refused(&b, 5, &["guard", "wp:taken"])["kind"], "lost");
    assert_eq!(ask(&c, &["why", "wp:done"])["claim"]["state"], "done");
    assert_eq!(ask(&c, &["why", "wp:released"])["claim"]["state"], "free");
}

#[test]
fn f_i08_a_second_live_process_in_a_conversation_is_a_twin_and_both_are_told_once() {
    let env = env();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    let first = register(&a, &["--native-id", "a1"]);
    ask(&a, &["claim", "wp:1"]);
    let twin = register(&b, &["--native-id", "a1"]);
    assert_eq!(twin["session"]["registered"], "twin");
    assert_ne!(twin["session"]["id"], first["session"]["id"]);
    assert_eq!(twin["session"]["twin_of"], first["session"]["id"]);
    assert_is(&twin, b.pid());
    assert_eq!(count(&twin, "/notices"), 1);
    assert_eq!(count(&ask(&b, &["whoami"]), "/notices"), 0);
    let told = ask(&a, &["whoami"]);
    assert_eq!(count(&told, "/notices"), 1);
    assert_eq!(told["notices"][0]["kind"], "twin");
    assert!(text(&told, "/notices/0/message").contains(&b.pid().to_string()));
    assert_eq!(count(&ask(&a, &["whoami"]), "/notices"), 0);
    assert_eq!(count(&ask(&b, &["whoami"]), "/notices"), 0);
    refused(&b, 3, &["claim", "wp:1"]);
    refused(&b, 3, &["guard", "wp:1"]);
    ask(&a, &["guard", "wp:1", "--epoch", "1"]);
    assert_eq!(
        register(&b, &["--native-id", "a1"])["session"]["registered"],
        "same"
    );
}

#[test]
fn a_process_that_was_superseded_while_nobody_saw_it_answers_5_and_becomes_a_twin() {
    let env = impatient();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    let inside = Inside::open(&env, flags, "inside");
    let first = inside.ask("register --agent claude --pid 1 --native-id n1");
    assert_eq!(first["session"]["registered"], "new");
    inside.ask("claim wp:1");
    let b = env.agent("claude");
    await_expiry(&b, "wp:1");

    let back = register(&b, &["--native-id", "n1"]);
    assert_eq!(back["session"]["registered"], "resumed");
    assert_eq!(back["session"]["id"], first["session"]["id"]);
    assert_eq!(back["session"]["process"]["life"], 2);
    assert_eq!(held(&back, "/regranted"), ["wp:1@2"]);

    // The variable of that earlier life finds nobody, from a sandbox of another agent either.
    let other = env.agent("codex");
    let old = [("TENURE_SESSION", text(&first, "/token"))];
    sandboxed(&other, flags, &old, &["whoami"]).fails(4);
    let new = [("TENURE_SESSION", text(&back, "/token"))];
    sandboxed(&other, flags, &new, &["whoami"]).ok();

    for call in ["whoami", "claim wp:2", "release wp:1", "end", "guard wp:1"] {
        let answer = inside.line(&format!("tenure {call} --json")).fails(5);
        assert_eq!(answer.json()["error"]["kind"], "superseded", "{call}");
    }
    let twin = inside.ask("register --source event --native-id n1");
    assert_eq!(twin["session"]["registered"], "twin");
    assert_eq!(twin["session"]["twin_of"], first["session"]["id"]);
    assert_ne!(twin["session"]["id"], first["session"]["id"]);
    assert_eq!(count(&twin, "/notices"), 1);
    let told = ask(&b, &["whoami"]);
    assert_eq!(told["notices"][0]["kind"], "twin");
    assert_eq!(held(&told, "/session/claims"), ["wp:1@2"]);
    assert_eq!(inside.ask("whoami")["session"]["id"], twin["session"]["id"]);
}

/// What they mean is tested with the service.
#[test]
fn every_flag_of_a_registration_reaches_the_service() {
    let env = env();
    let [a, b, c] = ["claude", "claude", "codex"].map(|name| env.agent(name));
    let parent = register(&a, &["--meta", "team=red", "--meta", "role=lead"]);
    let meta = serde_json::json!({"role": "lead", "team": "red"});
    assert_eq!(ask(&a, &["whoami"])["meta"], meta);
    let dir = env.dir().display().to_string();
    let above = text(&parent, "/session/handle");
    let mut args = vec!["--source", "fork", "--native-id", "f1", "--title", "t"];
    args.extend(["--dir", &dir, "--parent", above, "--reason", "over ssh"]);
    let fork = register(&b, &args);
    for (part, is) in [
        ("registered", "forked"),
        ("native_id", "f1"),
        ("title", "t"),
        ("dir", &dir),
        ("parent", text(&parent, "/session/id")),
    ] {
        assert_eq!(fork["session"][part], is, "{part}");
    }
    let born = events(&env, "session.registered");
    assert_eq!(born.last().unwrap()["reason"], "over ssh");
    let late = register(&c, &["--source", "event", "--native-id", "c1"]);
    assert_eq!(late["session"]["registered"], "healed");
}

#[test]
fn registering_another_session_does_not_rename_it() {
    let env = env();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    register(&a, &["--title", "first"]);
    register(&b, &[]);
    let pid = a.pid().to_string();
    let args = [
        "register", "--pid", &pid, "--title", "second", "--reason", "test", "--json",
    ];
    let said = b.tenure(&args).fails(6).json();
    assert_eq!(said["error"]["hints"][0]["verb"], "rename", "{said}");
    let title = |agent| ask(agent, &["whoami"])["session"]["title"].clone();
    assert_eq!(title(&a), "first");
    register(&a, &["--title", "second"]);
    assert_eq!(title(&a), "second", "its own");
}

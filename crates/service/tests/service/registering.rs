//! Every way in which a process becomes a session.

use serde_json::{Value, json};

use crate::words::answer::{
    ask, asked_by_nobody, count, events, held, me, refused, register, sessions, text,
};
use crate::words::house;

#[test]
fn f_i09_registering_again_is_the_same_session_and_merges_what_it_names() {
    let env = house();
    let a = env.agent("claude");
    let meta = ["--meta", "role=coordinator", "--meta", "team=red"];
    let first = register(
        &a,
        &[&["--native-id", "a1", "--title", "lead"], &meta[..]].concat(),
    );
    let again = register(&a, &["--native-id", "a1", "--meta", "team=blue"]);
    assert_eq!(again["session"]["registered"], "same");
    assert_eq!(again["session"]["id"], first["session"]["id"]);
    assert_eq!(again["session"]["title"], "lead");
    let me = ask(&a, &["whoami"]);
    assert_eq!(me["meta"], json!({"role": "coordinator", "team": "blue"}));
    assert_eq!(me["session"]["dir"], first["session"]["dir"]);

    // A coordinator that reconnects as a new process is still one.
    a.kill9();
    let b = env.agent("claude");
    let back = register(&b, &["--native-id", "a1"]);
    assert_eq!(back["session"]["registered"], "resumed");
    assert_eq!(back["session"]["title"], "lead");
    assert_eq!(ask(&b, &["whoami"])["meta"], me["meta"]);
}

#[test]
fn a_session_without_a_conversation_gets_its_first_one() {
    let env = house();
    let a = env.agent("claude");
    let first = register(&a, &[]);
    assert_eq!(first["session"]["native_id"], Value::Null);
    ask(&a, &["claim", "wp:1"]);
    let named = register(&a, &["--native-id", "a1"]);
    assert_eq!(named["session"]["id"], first["session"]["id"]);
    assert_eq!(named["session"]["registered"], "same");
    assert_eq!(named["session"]["native_id"], "a1");
    assert_eq!(held(&named, "/session/claims"), ["wp:1@1"]);
}

#[test]
fn f_i06_a_live_process_whose_conversation_changes_keeps_session_and_claims() {
    let env = house();
    let a = env.agent("claude");
    let first = register(&a, &["--native-id", "a1"]);
    ask(&a, &["claim", "wp:1"]);
    let rotated = register(&a, &["--native-id", "a2"]);
    assert_eq!(rotated["session"]["registered"], "rotated");
    assert_eq!(rotated["session"]["id"], first["session"]["id"]);
    assert_eq!(rotated["token"], first["token"]);
    assert_eq!(held(&rotated, "/session/claims"), ["wp:1@1"]);
    let lineage = rotated["session"]["native_ids"].as_array().unwrap();
    let ids: Vec<&str> = lineage.iter().map(|one| text(one, "/native_id")).collect();
    assert_eq!(ids, ["a1", "a2"]);
    assert!(lineage.iter().all(|one| one["owned"] == true));
    ask(&a, &["guard", "wp:1", "--epoch", "1"]);
    // And back: the old conversation is still its own.
    let back = register(&a, &["--native-id", "a1"]);
    assert_eq!(back["session"]["registered"], "same");
    assert_eq!(back["session"]["native_id"], "a1");
    assert_eq!(count(&asked_by_nobody(&env, &["ps", "-a"]), "/sessions"), 1);
}

#[test]
fn f_i06_rotating_into_a_dead_sessions_conversation_takes_its_claims_along() {
    let env = house();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    let dead = register(&a, &["--native-id", "a1"]);
    let heir = register(&b, &["--native-id", "b1"]);
    ask(&a, &["claim", "wp:1"]);
    ask(&b, &["claim", "wp:2"]);
    a.kill9();
    let rotated = register(&b, &["--native-id", "a1"]);
    assert_eq!(rotated["session"]["registered"], "rotated");
    assert_eq!(rotated["session"]["id"], heir["session"]["id"]);
    assert_eq!(held(&rotated, "/regranted"), ["wp:1@2"]);
    assert_eq!(held(&rotated, "/session/claims"), ["wp:1@2", "wp:2@1"]);
    let old = ask(&b, &["show", text(&dead, "/session/id")]);
    assert_eq!(old["session"]["state"], "ended");
    assert!(text(&old, "/session/end_reason").contains(text(&heir, "/session/handle")));
    assert_eq!(count(&old, "/session/claims"), 0);
    assert_eq!(events(&env, "session.moved").len(), 1);
    // The conversation is the heir's now: its next process is the heir, not the closed one.
    b.kill9();
    let c = env.agent("claude");
    let next = register(&c, &["--native-id", "a1"]);
    assert_eq!(next["session"]["id"], heir["session"]["id"]);
}

#[test]
fn rotating_into_a_living_sessions_conversation_visits_it_and_both_are_told_once() {
    let env = house();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    let owner = register(&a, &["--native-id", "a1"]);
    let visitor = register(&b, &["--native-id", "b1"]);
    ask(&a, &["claim", "wp:1"]);
    let rotated = register(&b, &["--native-id", "a1"]);
    assert_eq!(rotated["session"]["registered"], "rotated");
    assert_eq!(rotated["session"]["id"], visitor["session"]["id"]);
    let visit = &rotated["session"]["native_ids"][1];
    assert_eq!(
        (&visit["native_id"], &visit["owned"]),
        (&"a1".into(), &false.into())
    );
    assert_eq!(count(&rotated, "/regranted"), 0);
    assert_eq!(count(&rotated, "/notices"), 1);
    assert_eq!(rotated["notices"][0]["kind"], "twin");
    let told = ask(&a, &["whoami"]);
    assert_eq!(count(&told, "/notices"), 1);
    assert_eq!(told["notices"][0]["from"], visitor["session"]["id"]);
    assert_eq!(held(&told, "/session/claims"), ["wp:1@1"]);
    assert_eq!(told["session"]["id"], owner["session"]["id"]);
    assert_eq!(count(&ask(&a, &["whoami"]), "/notices"), 0);
    assert_eq!(count(&ask(&b, &["whoami"]), "/notices"), 0);
}

#[test]
fn a_variable_picks_only_among_the_sessions_that_the_process_hosts() {
    let env = house();
    let (a, other) = (env.agent("openclaw"), env.agent("claude"));
    let stranger = register(&other, &["--native-id", "x1"]);
    let one = register(&a, &["--native-id", "c1"]);
    let two = register(&a, &["--native-id", "c2"]);
    assert_eq!(
        two["session"]["registered"], "hosted",
        "openclaw hosts without being told"
    );
    let token = text(&stranger, "/token");
    a.tenure_env(&[("TENURE_SESSION", Some(token))], &["whoami"])
        .fails(6);
    for parent in [&one, &two] {
        let child = a.nest("codex");
        let token = Some(text(parent, "/token"));
        let born = child.tenure_env(&[("TENURE_SESSION", token)], &["register", "--json"]);
        assert_eq!(
            born.ok().json()["session"]["parent"],
            parent["session"]["id"]
        );
    }
}

#[test]
fn what_the_agent_calls_a_fork_is_a_session_of_its_own() {
    let env = house();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    let parent = register(&a, &["--native-id", "a1"]);
    ask(&a, &["claim", "wp:1"]);
    let fork = register(&b, &["--source", "fork", "--native-id", "f1"]);
    assert_eq!(fork["session"]["registered"], "forked");
    assert_ne!(fork["session"]["id"], parent["session"]["id"]);
    assert_eq!(fork["session"]["native_id"], "f1");
    assert_eq!(fork["session"]["twin_of"], Value::Null);
    refused(&b, 3, &["claim", "wp:1"]);
}

#[test]
fn a_lost_start_heals_itself_at_the_next_event() {
    let env = house();
    let a = env.agent("claude");
    let healed = register(&a, &["--source", "event", "--native-id", "a1"]);
    assert_eq!(healed["session"]["registered"], "healed");
    let late = register(&a, &["--native-id", "a1"]);
    assert_eq!(late["session"]["registered"], "same");
    assert_eq!(late["session"]["id"], healed["session"]["id"]);
}

#[test]
fn a_session_that_ended_while_its_process_went_on_is_resumed_however_often() {
    let env = house();
    let a = env.agent("claude");
    let first = register(&a, &["--native-id", "a1"]);
    ask(&a, &["claim", "wp:1"]);
    for life in 2..5 {
        ask(&a, &["end"]);
        assert_eq!(refused(&a, 4, &["whoami"])["kind"], "no_session");
        let back = register(&a, &["--native-id", "a1"]);
        assert_eq!(back["session"]["registered"], "resumed", "life {life}");
        assert_eq!(back["session"]["id"], first["session"]["id"]);
        assert_eq!(back["session"]["process"]["life"], life);
        assert_eq!(held(&back, "/session/claims"), [format!("wp:1@{life}")]);
    }
}

#[test]
fn an_end_frees_and_never_registers_or_ends_another() {
    let env = house();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    register(&a, &["--native-id", "a1"]);
    ask(&a, &["claim", "wp:1"]);
    refused(&b, 4, &["end"]);
    assert_eq!(count(&asked_by_nobody(&env, &["ps", "-a"]), "/sessions"), 1);
    assert_eq!(held(&ask(&a, &["whoami"]), "/session/claims"), ["wp:1@1"]);
}

#[test]
fn f_i13_a_name_is_exact_or_a_unique_part_or_ambiguous_with_the_list() {
    let env = house();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    let first = register(&a, &[]);
    let second = register(&b, &[]);
    let handle = text(&first, "/session/handle");
    let code = handle.strip_prefix("claude-").unwrap();
    let named = |name: &str| asked_by_nobody(&env, &["show", name])["session"]["id"].clone();
    for name in [
        handle,
        code,
        text(&first, "/session/id"),
        text(&first, "/token"),
    ] {
        assert_eq!(named(name), first["session"]["id"], "{name}");
    }
    let answer = env.tenure(&["show", "claude-", "--json"]).fails(6).json();
    assert_eq!(answer["error"]["kind"], "ambiguous");
    let listed = answer["error"]["candidates"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    for one in [&first, &second] {
        assert!(listed.contains(&one["session"]["handle"]));
    }
    for wrong in [
        handle.to_uppercase(),
        handle.replace("claude", "Claude"),
        format!("{handle}x"),
    ] {
        env.tenure(&["show", &wrong]).fails(4);
        refused(&b, 4, &["end", "--session", &wrong, "--reason", "a test"]);
    }
    assert_eq!(me(&a), text(&first, "/session/id"));
}

#[test]
fn f_i16_an_unregistered_agent_inside_another_is_nobody() {
    let env = house();
    let outer = env.agent("claude");
    register(&outer, &[]);
    ask(&outer, &["claim", "wp:1"]);
    let inner = outer.nest("codex");
    for call in [
        &["whoami"][..],
        &["claim", "wp:2"],
        &["guard", "wp:1"],
        &["end"],
    ] {
        let error = refused(&inner, 4, call);
        assert!(
            text(&error, "/message").contains(&inner.pid().to_string()),
            "{error:#}"
        );
    }
    assert_eq!(
        held(&ask(&outer, &["whoami"]), "/session/claims"),
        ["wp:1@1"]
    );
    assert_eq!(register(&inner, &[])["session"]["registered"], "new");
}

#[test]
fn f_i22_an_event_with_another_id_from_a_live_agent_is_a_rotation() {
    let env = house();
    let a = env.agent("claude");
    let born = register(&a, &["--native-id", "a1"]);
    ask(&a, &["claim", "wp:1"]);
    let late = register(&a, &["--source", "event", "--native-id", "a2"]);
    assert_eq!(late["session"]["registered"], "rotated");
    assert_eq!(late["session"]["id"], born["session"]["id"]);
    assert_eq!(held(&late, "/session/claims"), ["wp:1@1"]);
    ask(&a, &["guard", "wp:1"]);
    assert_eq!(sessions(&env), 1);
}

#[test]
fn a_session_registered_inside_another_is_its_child() {
    let env = house();
    let a = env.agent("claude");
    let parent = register(&a, &[]);
    ask(&a, &["claim", "wp:1"]);
    let child = a.nest("codex");
    let born = register(&child, &[]);
    assert_eq!(born["session"]["parent"], parent["session"]["id"]);
    let covered = ask(&child, &["guard", "wp:1"]);
    assert_eq!(covered["claim"]["via"], parent["session"]["handle"]);
    refused(&child, 3, &["claim", "wp:1"]);
    assert_eq!(
        register(&child, &[])["session"]["parent"],
        parent["session"]["id"]
    );
    // The cover ends with that life of the parent.
    a.kill9();
    refused(&child, 1, &["guard", "wp:1"]);
    assert_eq!(me(&child), text(&born, "/session/id"));
}

#[test]
fn any_other_parent_takes_a_reason() {
    let env = house();
    let (a, b, c) = (env.agent("claude"), env.agent("claude"), env.agent("codex"));
    let first = register(&a, &[]);
    register(&b, &[]);
    let handle = text(&first, "/session/handle");
    refused(&c, 2, &["register", "--parent", handle]);
    assert_eq!(sessions(&env), 2);
    let born = register(&c, &["--parent", handle, "--reason", "started over ssh"]);
    assert_eq!(born["session"]["parent"], first["session"]["id"]);
    let recorded = events(&env, "session.registered");
    let own = recorded
        .iter()
        .find(|one| one["session"]["id"] == born["session"]["id"])
        .unwrap();
    assert_eq!(own["reason"], "started over ssh");
    let child = a.nest("codex");
    let born = register(&child, &["--parent", handle]);
    assert_eq!(
        born["session"]["parent"], first["session"]["id"],
        "its own parent takes none"
    );
}

#[test]
fn a_registered_session_gets_the_parent_that_it_names() {
    let env = house();
    let (a, b) = (env.agent("claude"), env.agent("codex"));
    let (first, second) = (register(&a, &[]), register(&b, &[]));
    let handle = text(&first, "/session/handle");
    refused(&b, 2, &["register", "--parent", handle]);
    assert_eq!(second["session"]["parent"], Value::Null);
    let over_ssh = ["--parent", handle, "--reason", "started over ssh"];
    let again = register(&b, &over_ssh);
    assert_eq!(again["session"]["id"], second["session"]["id"]);
    assert_eq!(again["session"]["parent"], first["session"]["id"]);
    assert_eq!(
        register(&b, &[])["session"]["parent"],
        first["session"]["id"]
    );
}

/// A claim of a parent covers its children, so a circle would cover everybody in it.
#[test]
fn a_session_is_not_its_own_ancestor() {
    let env = house();
    let (a, b) = (env.agent("claude"), env.agent("codex"));
    let (first, second) = (register(&a, &[]), register(&b, &[]));
    let handle_of = |session| text(session, "/session/handle");
    register(&b, &["--parent", handle_of(&first), "--reason", "ssh"]);
    for above in [&first, &second] {
        let parent = ["register", "--parent", handle_of(above), "--reason", "ssh"];
        refused(&a, 2, &parent);
    }
}

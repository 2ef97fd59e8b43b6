//! What the dispatcher writes in a forge, also while an agent waits for its provider, and what it does while the forge
//! does not answer. The forge is a fake that was written from documentation.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use tenure_testkit::fake_forge::{Dialect, InjectedFault};
use tenure_testkit::{Scripted, poll};

use crate::env;
use crate::support::dispatch::fill_in;
use crate::support::forge_api::{deliveries, jobs, says, set_token, set_up_forge};
use crate::support::line::{SOON, text};
use crate::support::run::fake_claude;
use crate::support::webhook::{Dispatcher, comment, issue};

const HOLDS: &str = "init; ready $dir/on; hold $dir/flag; done_ 'Fixed. Thanks, @alice'";
const COMMENTS: &str = "POST /repos/acme/web/issues/6/comments";

#[test]
fn one_comment_follows_a_run_and_ends_with_its_last_text() {
    let env = env();
    let mine = Scripted::new(&env, "mine", HOLDS);
    mine.keep("flag");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", "reply = \"comment\"");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issue_comment", "d-1", &comment(6, 41, "alice", "do it"));
    let running = says(&forge, "**mine** is working on this");
    let job = text(&jobs(&env)[0]["id"]);
    let begins = format!("<!-- tenure -->\n<!-- tenure status {job} -->\n");
    assert!(running.body.starts_with(&begins), "{}", running.body);
    assert_eq!(forge.state().eyes, ["comment 41"]);
    std::fs::remove_file(mine.file("flag")).unwrap();
    let done = says(&forge, "**mine** is done");
    assert_eq!((done.id, done.edits), (running.id, 1));
    let run = text(&jobs(&env)[0]["run"]);
    let expected =
        format!("**mine** is done (run `{run}`).\n\n```\nFixed. Thanks, @\u{200b}alice\n```\n");
    assert!(done.body.ends_with(&expected), "{}", done.body);
    assert_eq!(forge.state().tokens.len(), 1);
}

#[test]
fn a_reaction_alone_writes_no_comment_and_none_writes_nothing() {
    for (reply, eyes) in [("reaction", vec!["item 6"]), ("none", vec![])] {
        let env = env();
        Scripted::new(&env, "mine", "init; done_");
        let rule = format!("reply = \"{reply}\"");
        let forge = set_up_forge(&env, Dialect::Forgejo, "", &rule);
        let ann = env.agent("ann");
        let door = Dispatcher::start(&ann);
        door.deliver("issues", "d-1", &issue(6, "opened"));
        poll(SOON, "it ran, and was seen", || {
            let over = jobs(&env)[0]["state"] == "ended";
            (over && forge.state().eyes == eyes).then_some(())
        });
        assert_eq!(forge.asked("POST /repos/acme/web/issues/6/comments"), 0);
    }
}

#[test]
fn a_failed_run_is_told_with_its_id_and_nothing_that_it_or_this_machine_printed() {
    let env = env();
    Scripted::new(&env, "mine", "init; echo broken in $PWD >&2; exit 3");
    let forge = set_up_forge(&env, Dialect::GitLab, "", "reply = \"comment\"");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver_gitlab("d-1", &json!({
        "object_kind": "issue", "user": {"username": "alice", "id": 3},
        "project": {"id": 17, "path_with_namespace": "acme/web"},
        "object_attributes": {
            "id": 106, "iid": 6, "action": "open", "state": "opened", "title": "Login fails",
            "description": "It answers 500.", "author_id": 3, "updated_at": "2026-11-16 06:00:00 UTC",
        },
    }));
    let failed = says(&forge, "**mine** failed");
    let run = text(&jobs(&env)[0]["run"]);
    assert!(
        failed.body.contains(&format!("(run `{run}`, failed)")),
        "{}",
        failed.body
    );
    let here = env.dir().display().to_string();
    for private in ["broken", &here] {
        assert!(!failed.body.contains(private), "{}", failed.body);
    }
}

/// The forge has the comment, and nobody knows its id.
#[test]
fn a_dispatcher_killed_between_a_comment_and_its_record_writes_no_second_one() {
    let env = env();
    let mine = Scripted::new(&env, "mine", HOLDS);
    mine.keep("flag");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", "reply = \"comment\"");
    forge.state().fail(COMMENTS, 1, InjectedFault::DoneHang);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    let first = says(&forge, "**mine** is working on this");
    door.process.kill9();
    let _next = Dispatcher::start(&ann);
    std::fs::remove_file(mine.file("flag")).unwrap();
    let done = says(&forge, "**mine** is done");
    assert_eq!(done.id, first.id);
    assert_eq!(forge.asked(COMMENTS), 1);
}

#[test]
fn a_comment_whose_answer_was_lost_is_found_again() {
    let env = env();
    let mine = Scripted::new(&env, "mine", HOLDS);
    mine.keep("flag");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", "reply = \"comment\"");
    forge
        .state()
        .fail(COMMENTS, 1, InjectedFault::DoneUnanswered);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    says(&forge, "**mine** is working on this");
    std::fs::remove_file(mine.file("flag")).unwrap();
    says(&forge, "**mine** is done");
    assert_eq!(forge.asked(COMMENTS), 1);
}

#[test]
fn what_a_forge_did_not_take_is_written_later() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", "reply = \"comment\"");
    let limit = InjectedFault::Status(429, vec![("Retry-After", "1".into())], "slow down");
    forge.state().fail(COMMENTS, 1, limit);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    says(&forge, "**mine** is done");
    assert_eq!(forge.asked(COMMENTS), 2, "once refused, once taken");
}

#[test]
fn two_dispatchers_on_one_store_write_one_comment() {
    let env = env();
    let mine = Scripted::new(&env, "mine", HOLDS);
    mine.keep("flag");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", "reply = \"comment\"");
    let ann = env.agent("ann");
    let (one, two) = (Dispatcher::start(&ann), Dispatcher::start(&ann));
    one.deliver("issues", "d-1", &issue(6, "opened"));
    says(&forge, "**mine** is working on this");
    // The one that does not write has the duty next.
    one.process.kill9();
    std::fs::remove_file(mine.file("flag")).unwrap();
    says(&forge, "**mine** is done");
    assert_eq!(forge.asked(COMMENTS), 1);
    drop(two);
}

#[test]
fn a_new_token_is_used_without_a_restart() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", "reply = \"reaction\"");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "eyes", || {
        (!forge.state().eyes.is_empty()).then_some(())
    });
    set_token(&env, "t-2");
    door.deliver("issues", "d-2", &issue(7, "opened"));
    poll(SOON, "eyes again", || {
        (forge.state().eyes.len() == 2).then_some(())
    });
    let tokens: Vec<String> = forge.state().tokens.iter().cloned().collect();
    assert_eq!(tokens, ["token t-1", "token t-2"]);
}

/// A loop that no person stops: one comment, however often it is asked.
#[test]
fn f_r15_a_parked_loop_is_told_once_and_a_person_lifts_it() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "echo ran >>$dir/calls; init; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, "breaker = 1", "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let pong = |number: u64| {
        let mut pong = comment(6, 1_000 + number, "bob", "ping");
        pong["sender"]["type"] = json!("Bot");
        let (status, _) = door.deliver("issue_comment", &format!("pong-{number}"), &pong);
        assert_eq!(status, 202);
    };
    pong(0);
    poll(SOON, "it ran", || {
        (jobs(&env)[0]["state"] == "ended").then_some(())
    });
    pong(1);
    let told = says(
        &forge,
        "Parked: `1 run of issue:acme/web#6 since a person last asked`",
    );
    assert!(
        told.body.contains("will continue when someone"),
        "{}",
        told.body
    );
    for number in 2..5 {
        pong(number);
    }
    door.deliver(
        "issue_comment",
        "alice",
        &comment(6, 2_000, "alice", "@bot go on"),
    );
    poll(SOON, "it runs again", || {
        (mine.wrote("calls")? == "ran\nran\n").then_some(())
    });
    poll(SOON, "it is over", || {
        jobs(&env)
            .iter()
            .all(|job| job["state"] == "ended")
            .then_some(())
    });
    assert_eq!(forge.own_comments().len(), 1);
}

const BY_PERMISSION: &str = "associations = [\"collaborator\"]";

#[test]
fn a_delivery_waits_while_its_forge_limits_questions() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "echo ran >>$dir/calls; init; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", BY_PERMISSION);
    forge
        .state()
        .permissions
        .insert("carol".to_owned(), "write");
    let limit = InjectedFault::Status(429, vec![("Retry-After", "1".into())], "slow down");
    forge
        .state()
        .fail("GET /repos/acme/web/collaborators", 1, limit);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    for (id, login) in [(1, "carol"), (2, "mallory")] {
        let said = comment(6, id, login, "do it");
        let (status, answer) = door.deliver("issue_comment", &format!("d-{id}"), &said);
        if id == 1 {
            assert_eq!(
                (status, &answer["verdict"]),
                (202, &json!("waits")),
                "{answer}"
            );
            assert!(text(&answer["why"]).contains("limits requests"), "{answer}");
        }
    }
    let verdicts = poll(SOON, "both are decided", || {
        let all = deliveries(&env);
        let all: Vec<String> = all.iter().map(|one| text(&one["verdict"])).collect();
        (!all.contains(&"waits".to_owned())).then_some(all)
    });
    assert_eq!(verdicts, ["refused", "queued"]);
    poll(SOON, "it ran", || mine.line("calls"));
    // The same again is known.
    let (status, answer) = door.deliver("issue_comment", "d-1", &comment(6, 1, "carol", "do it"));
    assert_eq!(
        (status, &answer["duplicate"]),
        (200, &json!(true)),
        "{answer}"
    );
    assert_eq!(mine.wrote("calls").unwrap(), "ran\n");
}

#[test]
fn a_forge_that_never_answers_does_not_hold_the_door() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", BY_PERMISSION);
    let question = "GET /repos/acme/web/collaborators";
    forge.state().fail(question, 1_000, InjectedFault::Hang);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    std::thread::scope(|scope| {
        let asks =
            scope.spawn(|| door.deliver("issue_comment", "d-1", &comment(6, 1, "carol", "do it")));
        poll(SOON, "it is asked", || {
            (forge.asked(question) > 0).then_some(())
        });
        let (status, answer) = door.deliver("issues", "d-2", &issue(7, "opened"));
        assert_eq!(
            (status, &answer["verdict"]),
            (202, &json!("waits")),
            "{answer}"
        );
        assert!(forge.state().hanging > 0, "the question is still open");
        let (status, answer) = asks.join().unwrap();
        assert_eq!(
            (status, &answer["verdict"]),
            (202, &json!("waits")),
            "{answer}"
        );
    });
    forge.state().faults.clear();
    forge
        .state()
        .permissions
        .insert("carol".to_owned(), "write");
    // A question that hangs ends after 10 s.
    poll(SOON * 2, "it is decided when the forge answers", || {
        let waits = |one: &serde_json::Value| one["verdict"] == "waits";
        (!deliveries(&env).iter().any(waits)).then_some(())
    });
    assert_eq!(jobs(&env).len(), 2);
}

const RETRY: &str = r#"say '{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":501,"error_status":529,"error":"overloaded"}'"#;

#[test]
fn one_comment_says_that_an_agent_waits_for_its_provider_and_then_that_it_is_done() {
    let env = env();
    let script = format!("keeps; init; {RETRY}; hold $dir/flag; ok hi");
    let claude = fake_claude(&env, &script);
    std::fs::write(claude.join("flag"), "").unwrap();
    let forge = set_up_forge(&env, Dialect::Forgejo, "", "reply = \"comment\"");
    fill_in(&env, "agent = \"mine\"", "agent = \"claude\"");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issue_comment", "d-1", &comment(6, 41, "alice", "do it"));
    let waits = says(&forge, "**claude** is waiting for its provider");
    assert!(!waits.body.contains("overloaded"), "{}", waits.body);
    std::fs::remove_file(claude.join("flag")).unwrap();
    let done = says(&forge, "**claude** is done");
    assert_eq!(done.id, waits.id, "the same comment");
}

#[test]
fn one_comment_says_until_when_a_job_waits_for_a_usage_limit() {
    let env = env();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let reset = now.as_secs() + 7_200;
    fake_claude(&env, &format!("keeps; init; limited {reset}"));
    let forge = set_up_forge(&env, Dialect::Forgejo, "", "reply = \"comment\"");
    fill_in(&env, "agent = \"mine\"", "agent = \"claude\"");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issue_comment", "d-1", &comment(6, 41, "alice", "do it"));
    poll(SOON, "it is parked", || {
        (jobs(&env).first()?["parked"]["reason"] == "limit").then_some(())
    });
    let told = says(&forge, "Parked until");
    // What joins it meanwhile is told in the same comment.
    door.deliver("issue_comment", "d-2", &comment(6, 42, "alice", "and this"));
    poll(SOON, "it was seen", || {
        (forge.state().eyes.len() == 2).then_some(())
    });
    let own = forge.own_comments();
    assert_eq!(own.len(), 1, "{own:#?}");
    assert_eq!(own[0].id, told.id);
}

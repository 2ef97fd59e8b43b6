//! The person who asked is told what became of it: runs that are not permitted any more, and resets.

use serde_json::{Value, json};
use tenure_testkit::fake_forge::{Dialect, FakeForge, InjectedFault, PullHead, Thread};
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::forge::forge as change_store;
use crate::support::forge_api::{deliveries, jobs, says, set_up_forge, settings};
use crate::support::git_host::git;
use crate::support::line::{SOON, text};
use crate::support::run::all;
use crate::support::webhook::{Dispatcher, comment, issue, set_up};

/// A forge with pull request 9, and a rule for comments on it.
fn with_pull(env: &Env, rule: &str) -> FakeForge {
    let forge = set_up_forge(env, Dialect::Forgejo, "", rule);
    let file = settings(env);
    let text = std::fs::read_to_string(&file).expect("it was just written");
    let text = text.replace("\"issue.comment\"]", "\"issue.comment\", \"pr.comment\"]");
    std::fs::write(&file, text).expect("the environment is ours");
    let mut state = forge.state();
    let author = "alice".to_owned();
    state.threads.insert(
        9,
        Thread {
            is_pull: true,
            state: "open",
            author,
        },
    );
    state.heads.insert(
        9,
        PullHead {
            commit: "1".repeat(40),
            repo: "acme/web".to_owned(),
        },
    );
    drop(state);
    forge
}

fn on_pull(id: u64) -> Value {
    let mut said = comment(9, id, "alice", "do it");
    said["is_pull"] = true.into();
    said
}

#[test]
fn a_comment_on_a_pull_request_whose_forge_answers_too_late_is_answered() {
    for rule in ["reply = \"comment\"", "reply = \"none\""] {
        let mut env = env();
        env.set("TENURE_RETRY_EVERY", "50ms");
        Scripted::new(&env, "mine", "init; done_");
        let forge = with_pull(&env, rule);
        let question = "GET /repos/acme/web/collaborators";
        forge
            .state()
            .fail(question, 1_000_000, InjectedFault::Dropped);
        let ann = env.agent("ann");
        let door = Dispatcher::start(&ann);
        let (status, answer) = door.deliver("issue_comment", "d-1", &on_pull(41));
        assert_eq!(
            (status, &answer["verdict"]),
            (202, &json!("waits")),
            "{answer}"
        );
        // The same as an outage of 20 s.
        change_store(
            &env,
            "UPDATE deliveries SET received_at = received_at - 20000",
        );
        forge.state().faults.clear();
        let told = says(&forge, "the commit that was permitted is unknown");
        assert!(told.body.contains("Ask again"), "{}", told.body);
        assert_eq!(told.number, 9);
        assert_eq!(deliveries(&env)[0]["verdict"], "refused");
        assert_eq!(jobs(&env)[0]["state"], "cancelled");
        assert_eq!(all(&env).len(), 0, "nothing ran");
    }
}

#[test]
fn a_head_that_moved_after_the_permission_is_told() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let forge = with_pull(&env, "reply = \"comment\"");
    // What git has is not what the forge told when the comment came.
    let repo = env.dir().join("web");
    git(&repo, &["update-ref", "refs/pull/9/head", "HEAD"]);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issue_comment", "d-1", &on_pull(41));
    let told = says(&forge, "the head moved from 111111111111");
    assert!(told.body.contains("Ask again"), "{}", told.body);
    assert_eq!(jobs(&env)[0]["state"], "cancelled");
    assert_eq!(all(&env).len(), 0, "nothing ran");
}

/// Each run says whether it resumed, where it was and what it was told; it holds while there is a flag.
const TALKS: &str = "echo $mode >>$dir/calls; git rev-parse HEAD >>$dir/heads; cat >>$dir/prompts; \
    test $mode = fresh && id=c-$TENURE_RUN; echo x >>file; git add file; \
    git -c user.name=a -c user.email=a@example.invalid commit -qm mine; \
    init; ready $dir/on; hold $dir/flag; done_";

/// A comment of ours about a reset, if there is one.
fn confirmed(forge: &FakeForge) -> Option<()> {
    let own = forge.own_comments();
    let is_reset = own.iter().any(|one| one.body.contains("was reset"));
    is_reset.then_some(())
}

#[test]
fn a_reset_during_a_run_is_confirmed_when_it_happened_and_keeps_the_comments_that_wait() {
    let env = env();
    let mine = Scripted::new(&env, "mine", TALKS);
    mine.keep("flag");
    let forge = set_up_forge(&env, Dialect::Forgejo, "", "reply = \"comment\"");
    let base = git(&env.dir().join("web"), &["rev-parse", "HEAD"]);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    let waits = comment(6, 1, "alice", "mind the docs");
    door.deliver("issue_comment", "d-2", &waits);
    let reset = comment(6, 2, "alice", "/tenure reset");
    let (status, told) = door.deliver("issue_comment", "d-3", &reset);
    assert_eq!((status, &told["verdict"]), (202, &json!("acted")), "{told}");
    // Writers have the next comment of the same item to do, and do not confirm.
    poll(SOON, "the run is commented", || {
        let own = forge.own_comments();
        own.iter()
            .any(|one| one.body.contains("is working on this"))
            .then_some(())
    });
    assert_eq!(confirmed(&forge), None, "the run is on");
    std::fs::remove_file(mine.file("flag")).expect("it was kept");
    poll(SOON, "it is confirmed", || confirmed(&forge));
    poll(SOON, "both are over", || {
        let jobs = jobs(&env);
        let over = jobs.iter().filter(|job| job["state"] == "ended").count();
        (over == 2).then_some(())
    });
    assert_eq!(mine.wrote("calls").expect("it ran"), "fresh\nfresh\n");
    let prompts = mine.wrote("prompts").expect("it was asked");
    assert!(prompts.contains("mind the docs"), "{prompts}");
    // A new conversation has no result to go on from.
    let heads = mine.wrote("heads").expect("it looked");
    let heads: Vec<&str> = heads.lines().collect();
    assert_eq!(heads, [&base, &base]);
}

#[test]
fn a_reset_stops_the_run_of_a_rule_that_stops_at_a_close() {
    let env = env();
    let mine = Scripted::new(&env, "mine", TALKS);
    mine.keep("flag");
    let rule = "reply = \"comment\"\non_close = \"stop\"";
    let forge = set_up_forge(&env, Dialect::Forgejo, "", rule);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    door.deliver("issue_comment", "d-2", &comment(6, 1, "alice", "/reset"));
    poll(SOON, "it is confirmed", || confirmed(&forge));
    let run = all(&env).remove(0);
    assert_eq!(text(&run["outcome"]), "stopped", "{run:#}");
    std::fs::remove_file(mine.file("flag")).expect("it was kept");
    door.deliver("issue_comment", "d-3", &comment(6, 2, "alice", "again"));
    poll(SOON, "a new conversation begins", || {
        (mine.wrote("calls")? == "fresh\nfresh\n").then_some(())
    });
}

/// A place of another trust has another directory. What was said there is never continued.
#[test]
fn a_conversation_in_another_place_of_the_dispatcher_is_not_continued() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "echo $mode >>$dir/calls; cat >>$dir/prompts; init; done_",
    );
    set_up_forge(&env, Dialect::Forgejo, "", "");
    let ann = env.agent("ann");
    let other = env.state().join("places/issue-acme-web-6-of-a-stranger");
    std::fs::create_dir_all(&other).expect("the environment is ours");
    let dir = other.to_str().expect("it is text");
    let item = "issue:acme/web#6";
    let words = ["conversation", "set", "mine", item, "c-1", "--dir", dir];
    ann.tenure(&words).ok();
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "it runs", || {
        (jobs(&env)[0]["outcome"] == "done").then_some(())
    });
    assert_eq!(mine.wrote("calls").expect("it ran"), "fresh\n");
    let prompt = mine.wrote("prompts").expect("it was asked");
    assert!(
        prompt.contains("belongs to another working copy"),
        "{prompt}"
    );
}

/// This forge has no token: the secret of its webhooks is all that there is to read.
#[test]
fn a_wrap_that_shows_the_secret_of_the_webhooks_starts_nothing() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "echo ran >>$dir/calls; init; done_");
    set_up(&env, "wrap = [\"env\"]");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    let why = poll(SOON, "it does not start", || {
        jobs(&env)[0]["failure"].as_str().map(str::to_owned)
    });
    assert!(why.contains("can read"), "{why}");
    assert!(why.contains(".config/tenure/"), "{why}");
    assert_eq!(mine.wrote("calls"), None);
}

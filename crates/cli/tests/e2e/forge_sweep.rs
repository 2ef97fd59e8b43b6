//! What webhooks did not tell, and the sweep finds. The forge is a fake that was written from documentation.

use std::sync::Arc;

use serde_json::Value;
use tenure_testkit::fake_forge::{Dialect, InjectedFault, Sent};
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::forge_api::{conversations, deliveries, jobs, set_up_forge};
use crate::support::line::{SOON, text};
use crate::support::webhook::{Dispatcher, issue, send_github};

const OFTEN: &str = "sweep = \"200ms\"";

fn items(env: &Env) -> Vec<String> {
    let all = conversations(env);
    all.iter().map(|one| text(&one["item"])).collect()
}

#[track_caller]
fn all_end(env: &Env, count: usize) {
    poll(SOON, "all jobs end", || {
        let jobs = jobs(env);
        let over = |job: &Value| job["state"] == "ended";
        (jobs.len() == count && jobs.iter().all(over)).then_some(())
    });
}

#[test]
fn an_issue_that_was_closed_unheard_is_closed_by_the_sweep() {
    for (dialect, _) in [(Dialect::Forgejo, ""), (Dialect::GitHub, "")] {
        let env = env();
        Scripted::new(&env, "mine", "init c-$TENURE_RUN; done_");
        let forge = set_up_forge(&env, dialect, OFTEN, "");
        let ann = env.agent("ann");
        let door = Dispatcher::start(&ann);
        let deliver = |id: &str, number: u64| match dialect {
            Dialect::GitHub => {
                send_github(&door.address, "issues", id, &issue(number, "opened"));
            }
            _ => {
                door.deliver("issues", id, &issue(number, "opened"));
            }
        };
        deliver("d-1", 6);
        deliver("d-2", 7);
        all_end(&env, 2);
        assert_eq!(items(&env).len(), 2);
        forge.state().threads.get_mut(&6).unwrap().state = "closed";
        poll(SOON, "it is closed", || {
            (items(&env) == ["issue:acme/web#7"]).then_some(())
        });
        let said = poll(SOON, "it is told", || {
            let out = door.process.stdout();
            let mut lines = out
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines.find(|line| line["event"] == "forge.swept")
        });
        assert_eq!(said["closed"], serde_json::json!(["issue:acme/web#6"]));
        // An issue that was deleted is over, too.
        forge.state().threads.remove(&7);
        poll(SOON, "it is closed", || {
            items(&env).is_empty().then_some(())
        });
    }
}

#[test]
fn a_job_that_waits_for_a_closed_issue_is_cancelled_by_the_sweep() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag; done_");
    mine.keep("flag");
    let forge = set_up_forge(&env, Dialect::Forgejo, OFTEN, "");
    let file = crate::support::forge_api::settings(&env);
    let rules = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("concurrency = 1\n{rules}")).unwrap();
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    door.deliver("issues", "d-2", &issue(7, "opened"));
    forge.state().threads.get_mut(&7).unwrap().state = "closed";
    let cancelled = poll(SOON, "it is cancelled", || {
        jobs(&env)
            .into_iter()
            .find(|job| job["state"] == "cancelled")
    });
    assert_eq!(cancelled["why"], "issue:acme/web#7 was closed");
    std::fs::remove_file(mine.file("flag")).unwrap();
    poll(SOON, "the run ends by itself", || {
        let done = |job: &Value| job["outcome"] == "done";
        jobs(&env).iter().any(done).then_some(())
    });
}

#[test]
fn an_item_without_a_number_does_not_keep_the_sweep_from_the_others() {
    let env = env();
    Scripted::new(&env, "mine", "init c-$TENURE_RUN; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, OFTEN, "");
    let ann = env.agent("ann");
    let words = ["run", "mine", "branch:acme/web:six", "--prompt", "do it"];
    ann.tenure(&words).ok();
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(7, "opened"));
    all_end(&env, 1);
    forge.state().threads.get_mut(&7).unwrap().state = "closed";
    poll(SOON, "it is closed", || {
        (items(&env) == ["branch:acme/web:six"]).then_some(())
    });
}

/// A token that lost its rights sees no repository, which looks as if all were deleted.
#[test]
fn a_repository_that_cannot_be_seen_closes_nothing() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, OFTEN, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    all_end(&env, 1);
    let hidden = InjectedFault::Status(404, Vec::new(), "Not Found");
    forge
        .state()
        .fail("GET /repos/acme/web", usize::MAX, hidden);
    let before = forge.asked("GET /repos/acme/web/issues");
    poll(SOON, "it was swept", || {
        (forge.asked("GET /repos/acme/web/issues") > before + 1).then_some(())
    });
    assert_eq!(items(&env), ["issue:acme/web#6"]);
    // The dispatcher tells what it heard when it next has work.
    door.deliver("issues", "d-2", &issue(7, "opened"));
    poll(SOON, "it is told", || {
        door.process.stdout().contains("forge.failed").then_some(())
    });
}

/// The proxy in front of the dispatcher dropped one delivery; GitHub does not send it again by itself.
#[test]
fn f_r27_a_delivery_that_never_arrived_is_found_by_the_sweep() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "echo ran >>$dir/calls; init; done_");
    let forge = set_up_forge(&env, Dialect::GitHub, OFTEN, "");
    let sent = |id: u64, guid: &str, status: u16| Sent {
        id,
        guid: guid.to_owned(),
        status,
        event: "issues".to_owned(),
        at: "2099-01-01T00:00:00Z".to_owned(),
    };
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let address = door.address;
    {
        let mut state = forge.state();
        state.deliveries = vec![sent(1, "g-heard", 200), sent(2, "g-lost", 0)];
        state.redeliver = Some(Arc::new(move |guid| {
            send_github(&address, "issues", guid, &issue(6, "opened")).0
        }));
    }
    all_end(&env, 1);
    let stored = deliveries(&env);
    assert_eq!(stored[0]["delivery_id"], "g-lost");
    let sweeps = forge.asked("GET /repos/acme/web/hooks/2/deliveries");
    poll(SOON, "it is swept again", || {
        (forge.asked("GET /repos/acme/web/hooks/2/deliveries") > sweeps + 2).then_some(())
    });
    assert_eq!(forge.asked("POST /repos/acme/web/hooks/2/deliveries"), 1);
    assert_eq!(mine.wrote("calls").unwrap(), "ran\n");
}

/// Dropped each time: it is asked for a few times, not for ever.
#[test]
fn f_r27_a_delivery_that_never_gets_through_is_given_up() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    let forge = set_up_forge(&env, Dialect::GitHub, OFTEN, "");
    forge.state().deliveries = vec![Sent {
        id: 1,
        guid: "g-lost".to_owned(),
        status: 0,
        event: "issues".to_owned(),
        at: "2099-01-01T00:00:00Z".to_owned(),
    }];
    let ann = env.agent("ann");
    let _door = Dispatcher::start(&ann);
    poll(SOON, "all attempts are made", || {
        (forge.state().deliveries.len() == 4).then_some(())
    });
    let sweeps = forge.asked("GET /repos/acme/web/hooks/2/deliveries");
    poll(SOON, "it is swept again", || {
        (forge.asked("GET /repos/acme/web/hooks/2/deliveries") > sweeps + 2).then_some(())
    });
    assert_eq!(forge.asked("POST /repos/acme/web/hooks/2/deliveries"), 3);
}

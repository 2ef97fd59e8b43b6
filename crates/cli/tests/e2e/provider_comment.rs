//! What a forge is told while an agent waits for its provider.

use std::time::{SystemTime, UNIX_EPOCH};

use tenure_testkit::fake_forge::Dialect;
use tenure_testkit::poll;

use crate::env;
use crate::support::dispatch::fill_in;
use crate::support::forge_api::{jobs, says, set_up_forge};
use crate::support::line::SOON;
use crate::support::run::fake_claude;
use crate::support::webhook::{Dispatcher, comment};

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

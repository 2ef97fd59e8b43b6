//! A dispatcher is killed with -9 at random moments among deliveries; none is lost, none is run twice, and what is
//! said about one item is heard in its order. Other items are closed, reopened and reset meanwhile: what waits there may
//! be cancelled, and is still heard at most once and in its order. Pull requests are pushed to with force, and the
//! remote is away now and then: each run is at the commit that was permitted.
//!
//! `TENURE_DISPATCH_MOMENTS` is how often (the long tier asks for two hundred), `TENURE_STORM_SEED` repeats the choices
//! of a run: it is printed, and named by every failure.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::dispatch::fill_in;
use crate::support::line::SOON;
use crate::support::remote::{Remote, each_was_permitted, ledger, opened};
use crate::support::storm::{Dice, number, seed, tell};
use crate::support::webhook::{Dispatcher, comment, issue, set_up};

/// It keeps each prompt under the name of its run, and the order of the runs.
const SCRIPT: &str = r#"
cat >$dir/prompt-$TENURE_RUN
echo $TENURE_RUN >>$dir/order
echo $TENURE_RUN $(git rev-parse HEAD) >>$dir/heads
init ${2:-c-$TENURE_RUN}
sleep 0.02
done_
"#;
const ITEMS: u64 = 4;
/// Items that are closed, reopened and reset.
const RESTLESS: [u64; 2] = [5, 6];
/// Pull requests that are pushed to with force.
const PULLS: [u64; 2] = [8, 9];
/// More runs of an item than there are.
const ENDLESS: u32 = 1_000_000;

#[test]
fn f_r02_f_r06_a_dispatcher_that_is_killed_at_any_moment_loses_and_doubles_nothing() {
    let moments = number("TENURE_DISPATCH_MOMENTS").unwrap_or(8);
    let seed = seed();
    tell(format_args!(
        "TENURE_STORM_SEED={seed} TENURE_DISPATCH_MOMENTS={moments}"
    ));
    let mut dice = Dice(seed);
    let mut env = env();
    env.set("TENURE_RETRY_EVERY", "500ms");
    let mine = Scripted::new(&env, "mine", SCRIPT);
    set_up(&env, &format!("caps = {{ runs_per_hour = {ENDLESS} }}"));
    fill_in(&env, "listen", &format!("breaker = {ENDLESS}\nlisten"));
    fill_in(
        &env,
        "\"issue.comment\"]",
        "\"issue.comment\", \"pr.opened\"]",
    );
    let mut remote = Remote::of(&env);
    let ann = env.agent("ann");
    let (mut said, mut moves) = (0, 0);
    for _ in 0..moments {
        let door = Dispatcher::start(&ann);
        let until = Instant::now() + Duration::from_millis(dice.below(400));
        loop {
            // What was not answered is delivered again, as a person does who sees it fail in the forge.
            if deliver(&door, said).is_some() {
                said += 1;
            }
            if dice.below(3) == 0 {
                moves += 1;
                unsettle(&door, &mut remote, &mut dice, moves);
            }
            if Instant::now() >= until {
                break;
            }
        }
        door.process.kill9();
    }
    remote.set_away(false);
    let last = Dispatcher::start(&ann);
    poll(SOON, "the last one is accepted", || deliver(&last, said));
    poll(SOON * 4, "all jobs end", || {
        let jobs = jobs(&env);
        let is_over = |job: &Value| {
            let issues = RESTLESS.map(|item| format!("issue:acme/web#{item}"));
            let pulls = PULLS.map(|item| format!("pr:acme/web#{item}"));
            let is_restless = issues.iter().chain(&pulls).any(|item| job["item"] == *item);
            job["state"] == "ended" || is_restless && job["state"] == "cancelled"
        };
        jobs.iter().all(is_over).then_some(())
    });
    let (jobs, runs) = (jobs(&env).len(), mine.wrote("order").unwrap_or_default());
    tell(format_args!(
        "{} deliveries and {moves} others, {jobs} jobs, {} runs",
        said + 1,
        runs.lines().count()
    ));
    let heads = mine.wrote("heads").unwrap_or_default();
    each_was_permitted(&ledger(&env), &heads, &remote.main(), seed);
    let received = received(&mine);
    let calm = received.iter().filter(|(item, _)| **item <= ITEMS);
    let mut all: Vec<u64> = calm.flat_map(|(_, numbers)| numbers).copied().collect();
    all.sort_unstable();
    let expected: Vec<u64> = (0..=said).collect();
    assert_eq!(all, expected, "each arrives once (seed {seed})");
    for (item, numbers) in &received {
        let item = format!("issue:acme/web#{item}");
        let log = || env.tenure(&["log", &item, "--limit", "0"]).stdout;
        assert!(
            numbers.is_sorted_by(|one, next| one < next),
            "{item}: {numbers:?} (seed {seed})\n{}",
            log()
        );
    }
}

/// Says something about a restless item, or closes, reopens or resets it; pushes to a pull request with force; or lets
/// the remote go away or come back. It may not be answered.
fn unsettle(door: &Dispatcher, remote: &mut Remote, dice: &mut Dice, number: u64) {
    let which = usize::from(dice.below(2) == 0);
    let (item, pull) = (RESTLESS[which], PULLS[which]);
    let id = 1_000_000 + number;
    let (event, payload) = match dice.below(11) {
        7 | 8 => {
            let head = remote.force_push(pull);
            ("pull_request", opened(pull, &head, number))
        }
        9 => {
            // Pushed, and nobody asks for it: what was permitted before is not run any more.
            remote.force_push(pull);
            return;
        }
        10 => {
            remote.set_away(dice.below(2) == 0);
            return;
        }
        0 => ("issues", issue(item, "closed")),
        1 => ("issues", issue(item, "reopened")),
        2 => ("issue_comment", comment(item, id, "alice", "/tenure reset")),
        _ => {
            let text = format!("said-{item}-{number}-");
            ("issue_comment", comment(item, id, "alice", &text))
        }
    };
    door.try_deliver(event, &format!("m-{number}"), &payload);
}

/// Delivers what is said as number N; none if it was not answered.
fn deliver(door: &Dispatcher, number: u64) -> Option<()> {
    let item = 1 + number % ITEMS;
    let text = format!("said-{item}-{number}-");
    let payload = comment(item, 10_000 + number, "alice", &text);
    let (status, answer) = door.try_deliver("issue_comment", &format!("d-{number}"), &payload)?;
    match status {
        200 | 202 => Some(()),
        0 => None,
        other => panic!("{other}: {answer}"),
    }
}

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

/// What the agent was told about each item, in the order of its runs.
fn received(mine: &Scripted) -> BTreeMap<u64, Vec<u64>> {
    let mut received: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let order = mine.wrote("order").expect("it ran");
    for run in order.lines() {
        let prompt = mine
            .wrote(&format!("prompt-{run}"))
            .expect("it had a prompt");
        for told in prompt.split("said-").skip(1) {
            let mut parts = told.split('-').map(|part| part.parse::<u64>());
            if let (Some(Ok(item)), Some(Ok(number))) = (parts.next(), parts.next()) {
                received.entry(item).or_default().push(number);
            }
        }
    }
    received
}

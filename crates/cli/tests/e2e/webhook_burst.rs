//! Deliveries that arrive faster than they are decided: stored first, decided afterwards, each once and in its order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Env, Scripted, Signal, poll};

use crate::env;
use crate::support::line::SOON;
use crate::support::small_disk::SmallDisk;
use crate::support::webhook::{Dispatcher, comment, deliver_to, set_up};

/// It keeps each prompt under the name of its run, and the order of the runs.
const SCRIPT: &str =
    "cat >$dir/prompt-$TENURE_RUN; echo $TENURE_RUN >>$dir/order; init ${2:-c-$TENURE_RUN}; done_";
const SENDERS: u64 = 8;
const EACH: u64 = 20;

/// An answer to a delivery: its item, its number there, the status and the text.
type Answer = (u64, u64, u16, Value);

/// Says something about an item.
fn say(address: &str, item: u64, number: u64) -> Answer {
    let text = format!("said-{item}-{number}-");
    let payload = comment(item, 1000 * item + number, "alice", &text);
    let id = format!("d-{item}-{number}");
    let (status, answer) = deliver_to(address, "issue_comment", &id, &payload);
    (item, number, status, answer)
}

/// Each sender says things about its own item, one after the other; the later the sender, the more.
fn burst(address: &str, talk: impl Fn(&str, u64) -> Vec<Answer> + Sync) -> Vec<Answer> {
    let talk = &talk;
    std::thread::scope(|scope| {
        let senders: Vec<_> = (1..=SENDERS)
            .map(|item| scope.spawn(move || talk(address, item)))
            .collect();
        let answers = senders
            .into_iter()
            .map(|sender| sender.join().expect("it sends"));
        answers.flatten().collect()
    })
}

fn count(item: u64) -> u64 {
    EACH + 2 * item
}

fn deliveries(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "deliveries", "--json"]).ok().json();
    answer["deliveries"].as_array().expect("a list").clone()
}

fn undecided(env: &Env) -> usize {
    let waits = |one: &&Value| one["verdict"] == "waits";
    deliveries(env).iter().filter(waits).count()
}

/// Waits until every delivery is decided and every job has ended.
#[track_caller]
fn all_is_done(env: &Env) {
    poll(SOON * 4, "all are decided and end", || {
        // Before the jobs are listed: a decision may add one.
        if undecided(env) > 0 {
            return None;
        }
        let jobs = env.tenure(&["queue", "--all", "--json"]).ok().json();
        let jobs = jobs["jobs"].as_array().expect("a list");
        let is_over = |job: &Value| job["state"] == "ended";
        jobs.iter().all(is_over).then_some(())
    });
}

/// What the agent was told about each item, in the order of its runs.
fn received(mine: &Scripted) -> BTreeMap<u64, Vec<u64>> {
    let mut received: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for run in mine.wrote("order").unwrap_or_default().lines() {
        let prompt = mine.wrote(&format!("prompt-{run}")).unwrap_or_default();
        for told in prompt.split("said-").skip(1) {
            let mut parts = told.split('-').map(|part| part.parse::<u64>());
            if let (Some(Ok(item)), Some(Ok(number))) = (parts.next(), parts.next()) {
                received.entry(item).or_default().push(number);
            }
        }
    }
    received
}

fn begin(env: &Env) -> (Scripted, Agent) {
    let mine = Scripted::new(env, "mine", SCRIPT);
    one_at_a_time(env);
    (mine, env.agent("ann"))
}

/// All runs are in one directory: one that finds it in use is left alone for seconds.
fn one_at_a_time(env: &Env) {
    set_up(env, "");
    let file = env.home().join(".config/tenure/dispatch.toml");
    let text = std::fs::read_to_string(&file).expect("it was written");
    std::fs::write(&file, format!("concurrency = 1\n{text}")).expect("the environment is ours");
}

#[test]
fn a_burst_is_stored_first_and_each_delivery_is_decided_once_and_in_its_order() {
    let env = env();
    let (mine, ann) = begin(&env);
    let door = Dispatcher::start(&ann);
    let (_, _, status, answer) = say(&door.address, 1, 0);
    let alone = (status, &answer["verdict"], &answer["duplicate"]);
    assert_eq!(alone, (202, &json!("queued"), &json!(false)), "{answer}");
    let answers = burst(&door.address, |address, item| {
        (1..=count(item))
            .map(|number| say(address, item, number))
            .collect()
    });
    let mut numbers = BTreeSet::new();
    for (_, _, status, answer) in &answers {
        assert_eq!(
            (*status, &answer["duplicate"]),
            (202, &json!(false)),
            "{answer}"
        );
        assert!(numbers.insert(answer["delivery"].as_i64()), "{answer}");
    }
    let stored_first = answers.iter().filter(|one| one.3["verdict"] == "waits");
    assert!(stored_first.count() > 0, "no burst was seen");
    all_is_done(&env);
    let expected = (1..=SENDERS).map(|item| {
        let first = if item == 1 { 0 } else { 1 };
        (item, (first..=count(item)).collect::<Vec<_>>())
    });
    assert_eq!(received(&mine), expected.collect());
}

#[test]
fn a_delivery_that_is_sent_again_among_a_burst_is_a_duplicate_decided_or_not() {
    let env = env();
    let (mine, ann) = begin(&env);
    let door = Dispatcher::start(&ann);
    let answers = burst(&door.address, |address, item| {
        let twice = |number| [say(address, item, number), say(address, item, number)];
        (1..=EACH).flat_map(twice).collect()
    });
    for pair in answers.chunks(2) {
        let (first, again) = (&pair[0], &pair[1]);
        assert_eq!(
            (first.2, &first.3["duplicate"]),
            (202, &json!(false)),
            "{}",
            first.3
        );
        assert_eq!(
            (again.2, &again.3["duplicate"]),
            (200, &json!(true)),
            "{}",
            again.3
        );
        assert_eq!(first.3["delivery"], again.3["delivery"]);
    }
    let of_undecided = answers
        .iter()
        .filter(|one| one.2 == 200 && one.3["verdict"] == "waits");
    assert!(
        of_undecided.count() > 0,
        "no duplicate of an undecided one was seen"
    );
    all_is_done(&env);
    let once = (1..=SENDERS).map(|item| (item, (1..=EACH).collect::<Vec<_>>()));
    assert_eq!(received(&mine), once.collect());
    assert_eq!(deliveries(&env).len() as u64, SENDERS * EACH);
}

#[test]
fn what_leads_to_nothing_is_stored_and_decided_in_a_burst_too() {
    let env = env();
    let (mine, ann) = begin(&env);
    let door = Dispatcher::start(&ann);
    let answers = burst(&door.address, |address, item| {
        let mallory = |number: u64| {
            let payload = comment(item, 1000 * item + number, "mallory", "do it");
            let id = format!("d-{item}-{number}");
            let (status, answer) = deliver_to(address, "issue_comment", &id, &payload);
            (item, number, status, answer)
        };
        let one = |number| match (item % 2, number) {
            (0, number) => mallory(number),
            (_, number) => say(address, item, number),
        };
        (1..=EACH).map(one).collect()
    });
    for (item, _, status, answer) in &answers {
        let is_known = item % 2 == 0 && *status == 200 && answer["verdict"] == "refused";
        assert!(*status == 202 || is_known, "{status}: {answer}");
    }
    all_is_done(&env);
    let refused = deliveries(&env);
    let refused = refused.iter().filter(|one| one["verdict"] == "refused");
    assert_eq!(refused.count() as u64, SENDERS / 2 * EACH);
    assert_eq!(
        received(&mine).into_keys().collect::<Vec<_>>(),
        [1, 3, 5, 7]
    );
}

/// What each sender has said and got an answer for.
type Said = BTreeMap<u64, u64>;

fn next(said: &Said, item: u64) -> u64 {
    said.get(&item).map_or(1, |last| last + 1)
}

/// Delivers a burst to a dispatcher that is ended in the middle of it. What was not answered is said again to the next.
fn cut_short(ann: &Agent, said: &Said, end: &impl Fn(&Dispatcher)) -> Vec<Answer> {
    let door = Dispatcher::start(ann);
    let (answered, address) = (AtomicU64::new(0), door.address.clone());
    let talk = |address: &str, item: u64| {
        let answers = (next(said, item)..).map(|number| say(address, item, number));
        let is_answered = |answer: &Answer| {
            answered.fetch_add(1, Ordering::SeqCst);
            answer.2 != 0
        };
        answers.take_while(is_answered).collect()
    };
    std::thread::scope(|scope| {
        let burst = scope.spawn(|| burst(&address, talk));
        poll(SOON, "some are answered", || {
            (answered.load(Ordering::SeqCst) >= 100).then_some(())
        });
        end(&door);
        burst.join().expect("it sends")
    })
}

/// Delivers bursts until a dispatcher that is ended among one leaves some undecided.
fn ended_among_a_burst(end: impl Fn(&Dispatcher)) {
    let env = env();
    let (mine, ann) = begin(&env);
    let mut said = Said::new();
    poll(SOON * 4, "some are left undecided", || {
        for (item, number, status, answer) in cut_short(&ann, &said, &end) {
            assert!(matches!(status, 200 | 202), "{status}: {answer}");
            said.insert(item, number);
        }
        (undecided(&env) > 0).then_some(())
    });
    let last = Dispatcher::start(&ann);
    poll(SOON, "what was left is decided", || {
        (undecided(&env) == 0).then_some(())
    });
    for item in 1..=SENDERS {
        let number = next(&said, item);
        let (_, _, status, answer) = say(&last.address, item, number);
        assert!(matches!(status, 200 | 202), "{status}: {answer}");
        said.insert(item, number);
    }
    all_is_done(&env);
    let expected = said
        .iter()
        .map(|(item, last)| (*item, (1..=*last).collect::<Vec<_>>()));
    assert_eq!(received(&mine), expected.collect());
}

#[test]
fn f_r02_f_r06_what_a_killed_dispatcher_left_undecided_is_decided_by_the_next_one() {
    ended_among_a_burst(|door| door.process.kill9());
}

#[test]
fn what_a_stopped_dispatcher_left_undecided_is_decided_by_the_next_one() {
    ended_among_a_burst(|door| assert!(door.process.signal(Signal::TERM)));
}

/// Fills the disk in the middle of a burst; what was accepted until each sender was refused.
fn until_refused(door: &Dispatcher, disk: &SmallDisk) -> Vec<Answer> {
    let accepted = AtomicU64::new(0);
    let talk = |address: &str, item: u64| {
        let answers = (1..).map(|number| say(address, item, number));
        let is_accepted = |(_, _, status, answer): &Answer| {
            assert!(matches!(status, 202 | 503), "{status}: {answer}");
            accepted.fetch_add(1, Ordering::SeqCst);
            *status == 202
        };
        answers.take_while(is_accepted).collect()
    };
    std::thread::scope(|scope| {
        let burst = scope.spawn(|| burst(&door.address, talk));
        poll(SOON, "some are accepted", || {
            (accepted.load(Ordering::SeqCst) >= 40).then_some(())
        });
        disk.fill();
        burst.join().expect("it sends")
    })
}

/// The agent works once there is room, so that only deliveries meet the full disk.
#[test]
fn a_full_disk_in_a_burst_loses_nothing_that_was_accepted() {
    let env = env();
    let patient = format!("hold $dir/full; {SCRIPT}");
    let mine = Scripted::new(&env, "mine", &patient);
    let full = mine.keep("full");
    one_at_a_time(&env);
    let ann = env.agent("ann");
    let (disk, door) = SmallDisk::dispatcher(&env, &ann);
    let mut said = Said::new();
    for (item, number, ..) in until_refused(&door, &disk) {
        said.insert(item, number);
    }
    disk.make_room();
    // Each sends again what was refused.
    for item in 1..=SENDERS {
        let number = next(&said, item);
        let (_, _, status, answer) = say(&door.address, item, number);
        let told = (status, &answer["duplicate"]);
        assert_eq!(told, (202, &json!(false)), "{answer}");
        said.insert(item, number);
    }
    std::fs::remove_file(full).expect("it was kept");
    let all = said
        .iter()
        .map(|(item, last)| (*item, (1..=*last).collect::<Vec<_>>()));
    let all: BTreeMap<_, _> = all.collect();
    poll(SOON * 4, "the agent received everything", || {
        (received(&mine) == all).then_some(())
    });
}

//! The timeline: who held what from when to when, and how each hold ended.

use serde_json::Value;

use crate::words::house;
use crate::words::line::{handle, refused, run, session, take};
use crate::{LEASE, LOCK_DELAY, TICK, kind, unseen};
use tenure_service::TimelineRequest;

fn holds(answer: &Value) -> Vec<&Value> {
    answer["holds"].as_array().expect("a list").iter().collect()
}

/// The hold of a key with this epoch.
fn hold<'a>(answer: &'a Value, key: &str, epoch: u64) -> &'a Value {
    let found = holds(answer)
        .into_iter()
        .find(|hold| hold["key"] == key && hold["epoch"] == epoch);
    found.unwrap_or_else(|| panic!("{key} (epoch {epoch}) is not in {answer:#}"))
}

#[test]
fn every_hold_says_who_had_it_until_when_and_how_it_ended() {
    let env = house();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| session(&env, name));
    let (bobs, eves) = (handle(&bob), handle(&eve));
    for key in ["wp:taken", "wp:given", "wp:done", "wp:left", "wp:held"] {
        take(&ann, key);
    }
    take(&eve, "wp:dead");
    run(&bob, 0, "takeover wp:taken --reason stuck");
    run(&ann, 0, &format!("handoff wp:given --to {bobs}"));
    run(&ann, 0, "release wp:done --done");
    run(&ann, 0, "release wp:left");
    eve.kill9();
    take(&bob, "wp:left");
    let answer = run(&bob, 0, "timeline");
    for (key, by, why, to) in [
        ("wp:taken", "taken", Some("stuck"), Some(&bobs)),
        ("wp:given", "handoff", None, Some(&bobs)),
        ("wp:done", "done", None, None),
        ("wp:left", "release", None, None),
    ] {
        let first = hold(&answer, key, 1);
        assert_eq!(first["ended_by"], by, "{first}");
        assert_eq!(first["ended_why"].as_str(), why, "{first}");
        let passed = first["passed_to"]["handle"].as_str();
        assert_eq!(passed, to.map(String::as_str), "{first}");
        assert_eq!(first["session"]["handle"], handle(&ann), "{first}");
        assert!(first["to"].is_string() && first["from"].is_string());
    }
    let died = hold(&answer, "wp:dead", 1);
    assert_eq!(died["ended_by"], "death", "{died}");
    assert!(died["ended_why"].is_string(), "{died}");
    assert_eq!(died["session"]["handle"], eves);
    for (key, epoch, means) in [
        ("wp:held", 1, "claim"),
        ("wp:taken", 2, "takeover"),
        ("wp:given", 2, "handoff"),
        ("wp:left", 2, "claim"),
    ] {
        let held = hold(&answer, key, epoch);
        assert_eq!(
            (&held["to"], &held["ended_by"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(held["means"], means, "{held}");
    }
    let is_held: Vec<bool> = holds(&answer)
        .iter()
        .map(|one| one["to"].is_null())
        .collect();
    assert!(
        is_held.is_sorted_by(|a, b| a >= b),
        "what is held comes first"
    );
}

#[test]
fn a_page_has_the_cursor_of_the_next_and_all_pages_have_each_hold_once() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    for n in 0..6 {
        take(&ann, &format!("wp:{n}"));
        if n % 2 == 0 {
            run(&ann, 0, &format!("release wp:{n}"));
        }
    }
    take(&bob, "wp:0");
    let whole = run(&ann, 0, "timeline");
    assert_eq!(whole["next"], Value::Null);
    let mut line = "timeline --limit 2".to_owned();
    let mut paged = Vec::new();
    loop {
        let page = run(&ann, 0, &line);
        paged.extend(holds(&page).into_iter().cloned());
        match page["next"].as_str() {
            Some(next) => line = format!("timeline --limit 2 --after {next}"),
            None => break,
        }
    }
    let plain: Vec<Value> = holds(&whole).into_iter().cloned().collect();
    assert_eq!(paged, plain);
    assert_eq!(paged.len(), 7);
    let own = run(&ann, 0, &format!("timeline --session {}", handle(&bob)));
    assert_eq!(holds(&own).len(), 1);
    assert_eq!(holds(&run(&ann, 0, "timeline --key wp:0")).len(), 2);
    refused(&ann, 4, "no_such_session", "timeline --session nobody");
}

#[test]
fn what_a_suspect_holder_has_says_since_when_and_when_it_is_free() {
    let (mut rig, _far, near) = unseen();
    let request = TimelineRequest::default();
    rig.clock.advance(LEASE - TICK);
    let page = rig
        .call(&near, |service| service.timeline(&request))
        .unwrap();
    assert_eq!(page.holds[0].suspect_since, None);
    rig.clock.advance(2 * TICK);
    let page = rig
        .call(&near, |service| service.timeline(&request))
        .unwrap();
    let held = &page.holds[0];
    assert_eq!((held.to, held.ended_by), (None, None));
    assert_eq!(held.suspect_since, Some(page.now.minus(TICK)));
    assert_eq!(held.free_at, Some(page.now.plus(LOCK_DELAY - TICK)));
    rig.clock.advance(LOCK_DELAY);
    assert_eq!(kind(rig.claim(&near, "wp:1")), "granted");
    let page = rig
        .call(&near, |service| service.timeline(&request))
        .unwrap();
    let ended = page.holds.iter().find(|hold| hold.epoch == 1).unwrap();
    assert_eq!(ended.ended_by, Some("lease"));
    assert_eq!(ended.suspect_since, None);
}

//! One truth about a claim: every command that shows it shows the same holder and the same epoch.

use serde_json::Value;
use tenure_testkit::Agent;

use crate::support::line::{crew, handle, register, run, session, take};

const KEY: &str = "wp:1";

/// Asks everywhere, and returns who holds the key under which epoch.
#[track_caller]
fn truth(after: &str, asker: &Agent, workers: &[(&Agent, String)]) -> Option<(String, u64)> {
    let why = run(asker, 0, &format!("why {KEY}"))["claim"].clone();
    let holder = why["holder"]["handle"].as_str().map(str::to_owned);
    let said = holder.map(|holder| (holder, why["epoch"].as_u64().expect("an epoch")));
    let list = |answer: &Value| answer.as_array().expect("a list").clone();
    let held: Vec<Value> = list(&run(asker, 0, "claims")["claims"])
        .into_iter()
        .filter(|claim| claim["key"] == KEY && claim["state"] == "held")
        .collect();
    let listed: Vec<(String, u64)> = held
        .iter()
        .map(|claim| {
            let holder = claim["holder"]["handle"].as_str().expect("a handle");
            (
                holder.to_owned(),
                claim["epoch"].as_u64().expect("an epoch"),
            )
        })
        .collect();
    assert_eq!(listed, Vec::from_iter(said.clone()), "claims {after}");
    for (agent, name) in workers {
        let expected = said.as_ref().filter(|(holder, _)| holder == name);
        let of = |session: &Value| {
            let held = list(&session["claims"]);
            let mut held = held.iter().filter(|claim| claim["key"] == KEY);
            held.next().and_then(|claim| claim["epoch"].as_u64())
        };
        let shown = run(asker, 0, &format!("show {name}"))["session"].clone();
        if shown["ended_at"].is_null() && shown["state"] != "dead" {
            assert_eq!(of(&shown), expected.map(|it| it.1), "show {name} {after}");
        } else {
            assert!(expected.is_none(), "{name} holds it {after}");
        }
        if agent.is_alive() {
            let guard = agent.tenure(&["guard", KEY, "--json"]);
            assert_eq!(guard.code == 0, expected.is_some(), "{after}: {guard}");
            let me = run(agent, 0, "whoami")["session"].clone();
            assert_eq!(of(&me), expected.map(|it| it.1), "whoami {name} {after}");
        }
    }
    said
}

#[test]
fn f_c09_every_command_tells_the_same_of_a_claim_after_every_change() {
    let (env, [asker]) = crew(["asker"]);
    let (ann, bob, eve) = (session(&env, "ann"), session(&env, "bob"), env.agent("eve"));
    register(&eve, "eve", "--native-id n1");
    let [one, two, three] = [&ann, &bob, &eve].map(handle);
    let all = [
        (&ann, one.clone()),
        (&bob, two.clone()),
        (&eve, three.clone()),
    ];
    let is = |after: &str, holder: Option<(&str, u64)>| {
        let holder = holder.map(|(name, epoch)| (name.to_owned(), epoch));
        assert_eq!(truth(after, &asker, &all), holder, "{after}");
    };
    assert_eq!(take(&ann, KEY), 1);
    is("after a claim", Some((&one, 1)));
    run(&bob, 0, &format!("takeover {KEY} --reason test"));
    is("after a takeover", Some((&two, 2)));
    run(&bob, 0, &format!("handoff {KEY} --to {three}"));
    is("after a handoff", Some((&three, 3)));
    eve.kill9();
    assert_eq!(take(&ann, KEY), 4);
    is("after the holder's death and a claim", Some((&one, 4)));
    run(&ann, 0, &format!("release {KEY}"));
    is("after a release", None);
    assert_eq!(take(&bob, KEY), 5);
    run(&bob, 0, "end");
    let why = run(&asker, 0, &format!("why {KEY}"))["claim"].clone();
    assert!(why["holder"].is_null(), "after the holder's end: {why}");
}

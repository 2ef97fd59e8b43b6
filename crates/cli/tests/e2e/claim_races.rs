//! Many processes at one moment: one winner, clean answers, one store.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::Value;
use tenure_testkit::{Agent, Cmd, Env, Output, poll};

use crate::env;
use crate::support::crowd::at_once;
use crate::support::line::{SOON, crew, handle, register, run, session, take, text};
use crate::support::storm::number;

const CROWD: usize = 32;

fn crowd(env: &Env) -> Vec<Agent> {
    (0..CROWD).map(|_| env.agent("w")).collect()
}

fn assert_never_locked(output: &Output) {
    let said = format!("{}{}", output.stdout, output.stderr).to_lowercase();
    assert!(
        !said.contains("locked") && !said.contains("busy"),
        "{output}"
    );
}

/// Exactly one of these answers is a grant; all others are exit 3 and name the one who got it.
fn the_one_winner(answers: &[Output], handles: &[String]) -> usize {
    let winners: Vec<usize> = (0..answers.len())
        .filter(|n| answers[*n].code == 0)
        .collect();
    assert_eq!(winners.len(), 1, "winners: {winners:?}");
    let winner = winners[0];
    for (n, answer) in answers.iter().enumerate() {
        assert_never_locked(answer);
        let json = answer.json();
        if n == winner {
            assert_eq!(json["claim"]["holder"]["handle"], handles[n], "{answer}");
            assert_eq!(json["claim"]["epoch"], 1, "{answer}");
            assert_eq!(json["claim"]["already_held"], false, "{answer}");
            continue;
        }
        assert_eq!(answer.code, 3, "{answer}");
        assert_eq!(json["error"]["kind"], "held", "{answer}");
        assert_eq!(
            json["error"]["holder"]["handle"], handles[winner],
            "{answer}"
        );
    }
    winner
}

/// The long tier asks for more rounds.
#[test]
fn f_c01_of_32_processes_on_one_key_exactly_one_wins_every_time() {
    let env = env();
    let rounds = number("TENURE_RACES").unwrap_or(20);
    let crowd = crowd(&env);
    for one in &crowd {
        register(one, "w", "");
    }
    let handles: Vec<String> = crowd.iter().map(handle).collect();
    let mut winners = BTreeSet::new();
    for number in 0..rounds {
        let key = format!("wp:race/{number}");
        let answers = at_once(&crowd, |one| one.tenure(&["claim", &key, "--json"]));
        winners.insert(the_one_winner(&answers, &handles));
    }
    assert!(
        winners.len() > 1,
        "there was no race: the same one won every time"
    );
    let held = env
        .tenure(&["claims", "--json", "--limit", "1000"])
        .ok()
        .json();
    let held = held["claims"].as_array().map_or(0, Vec::len);
    assert_eq!(u64::try_from(held), Ok(rounds));
}

#[test]
fn f_c01_of_32_processes_that_see_a_dead_holder_exactly_one_inherits() {
    let env = env();
    let crowd = crowd(&env);
    for one in &crowd {
        register(one, "w", "");
    }
    for number in 0..5 {
        let key = format!("wp:heir/{number}");
        let victim = session(&env, "victim");
        let gone = handle(&victim);
        victim.tenure(&["claim", &key]).ok();
        victim.kill9();
        let answers = at_once(&crowd, |one| one.tenure(&["claim", &key, "--json"]));
        let heirs: Vec<&Output> = answers.iter().filter(|answer| answer.code == 0).collect();
        assert_eq!(heirs.len(), 1);
        let claim = &heirs[0].json()["claim"];
        assert_eq!(claim["epoch"], 2);
        assert_eq!(claim["taken_from"]["handle"], gone.as_str());
        for answer in answers.iter().filter(|answer| answer.code != 0) {
            assert_never_locked(answer);
            assert_eq!(answer.code, 3, "{answer}");
            let holder = &answer.json()["error"]["holder"]["handle"];
            assert_eq!(*holder, claim["holder"]["handle"], "{answer}");
        }
    }
}

#[test]
fn the_first_32_users_of_a_state_directory_make_one_store_together() {
    let env = env();
    let crowd = crowd(&env);
    for round in 0..2 {
        let home = env.dir().join(format!("fresh-{round}/state"));
        let place = [("TENURE_HOME", home.to_str())];
        let answers = at_once(&crowd, |one| {
            let pid = one.pid().to_string();
            one.tenure_env(
                &place,
                &["register", "--agent", "w", "--pid", &pid, "--json"],
            )
        });
        let ids: BTreeSet<String> = answers.iter().map(registered_id).collect();
        assert_eq!(ids.len(), CROWD);
        let seen = crowd[0].tenure_env(&place, &["ps", "--json"]).ok().json();
        let listed = seen["sessions"].as_array().expect("ps lists sessions");
        assert_eq!(
            listed
                .iter()
                .map(|one| text(&one["id"]))
                .collect::<BTreeSet<_>>(),
            ids
        );
        let hosts: BTreeSet<String> = listed
            .iter()
            .map(|one| text(&one["process"]["host_id"]))
            .collect();
        assert_eq!(hosts.len(), 1, "one host has one id: {hosts:?}");
        assert_no_leftovers(&home);
    }
}

#[test]
fn the_first_32_who_only_look_find_an_empty_store() {
    let env = env();
    let crowd = crowd(&env);
    for answer in at_once(&crowd, |one| one.tenure(&["ps", "--json"])) {
        assert_never_locked(&answer);
        assert_eq!(
            answer.clone().ok().json()["sessions"],
            Value::Array(Vec::new()),
            "{answer}"
        );
    }
    assert!(!env.state().exists(), "a look made the state directory");
}

fn registered_id(answer: &Output) -> String {
    assert_never_locked(answer);
    text(&answer.clone().ok().json()["session"]["id"])
}

/// Nothing half-built stays beside the store.
fn assert_no_leftovers(home: &std::path::Path) {
    let entries = std::fs::read_dir(home).expect("the state directory is there");
    for entry in entries {
        let name = entry
            .expect("it can be read")
            .file_name()
            .into_string()
            .expect("text");
        assert!(
            !name.contains(".new") && !name.ends_with(".tmp"),
            "{name} is left"
        );
    }
}

#[test]
fn f_c15_32_writers_with_keys_of_their_own_all_get_clean_answers() {
    let env = env();
    let crowd = crowd(&env);
    for one in &crowd {
        register(one, "w", "");
    }
    for round in 0..2 {
        let answers = at_once(&crowd, |one| {
            let key = format!("wp:own/{}/{round}", one.pid());
            one.tenure(&["claim", &key, "--json"])
        });
        for answer in answers {
            assert_never_locked(&answer);
            assert_eq!(answer.ok().json()["claim"]["epoch"], 1);
        }
    }
    let held = env
        .tenure(&["claims", "--json", "--limit", "1000"])
        .ok()
        .json();
    assert_eq!(held["claims"].as_array().map(Vec::len), Some(2 * CROWD));
}

#[test]
fn f_d03_no_acknowledged_update_of_many_writers_is_lost() {
    let env = env();
    let crowd = crowd(&env);
    for one in &crowd {
        register(one, "w", "");
    }
    let target = handle(&crowd[0]);
    let act = |one: &Agent| {
        let name = format!("k{}", one.pid());
        let named = [
            "meta",
            "set",
            &name,
            "x",
            "--session",
            &target,
            "--reason",
            "test",
        ];
        one.tenure(&named)
    };
    for answer in at_once(&crowd, act) {
        answer.ok();
    }
    let kept = crowd[0].tenure(&["meta", "get", "--json"]).ok().json();
    assert_eq!(
        kept["meta"].as_object().map(serde_json::Map::len),
        Some(CROWD)
    );
}

/// Kills claiming processes at every stage of their short lives.
#[test]
fn f_c12_whatever_printed_success_before_it_was_killed_is_stored() {
    let (_env, [ann]) = crew(["ann"]);
    let start = Instant::now();
    take(&ann, "wp:calm");
    let whole = start.elapsed();
    let (mut acknowledged, mut silent) = (Vec::new(), 0);
    for round in 0..150_u32 {
        let key = format!("wp:kill/{round}");
        let call = ann.start(Cmd::new("tenure").args(["claim", &key, "--json"]));
        let moment = Instant::now() + whole * (round % 30) / 20;
        let is_due = || Instant::now() >= moment || !call.is_alive();
        poll(SOON, "the moment", || is_due().then_some(()));
        call.kill9();
        match serde_json::from_str::<Value>(&call.wait().stdout) {
            Ok(answer) => acknowledged.push((key, answer["claim"]["epoch"].clone())),
            Err(_) => silent += 1,
        }
    }
    let said_yes = acknowledged.len();
    assert!(
        said_yes > 10 && silent > 10,
        "{said_yes} said yes, {silent} did not"
    );
    let held = run(&ann, 0, "claims --mine --limit 1000");
    let held = held["claims"].as_array().expect("a list");
    for (key, epoch) in acknowledged {
        let found = held.iter().find(|claim| claim["key"] == key.as_str());
        assert_eq!(found.map(|claim| &claim["epoch"]), Some(&epoch), "{key}");
    }
    assert_eq!(take(&ann, "wp:after"), 1);
}

//! Missions: who takes part, what each works on, and which mission is selected.

use serde_json::{Value, json};

use crate::LEASE;
use crate::words::line::{events, handle, refused, register, run, session, text};
use crate::words::{House, Worker, house};

/// Takes part as a developer; the row.
#[track_caller]
fn join(worker: &Worker, mission: &str) -> Value {
    run(
        worker,
        0,
        &format!("mission join {mission} --role developer"),
    )["participant"]
        .clone()
}

/// The rows of a mission, as anyone sees them.
#[track_caller]
fn participants(house: &House, mission: &str) -> Vec<Value> {
    let status = house.tenure(&["mission", "status", "--mission", mission]);
    let rows = status.ok().json()["participants"].clone();
    rows.as_array().expect("a list").clone()
}

fn part(rows: &[Value], worker: &str, name: &str) -> Value {
    let row = rows.iter().find(|row| row["session"]["handle"] == worker);
    row.unwrap_or_else(|| panic!("{worker} is not in {rows:?}"))[name].clone()
}

#[test]
fn joining_again_keeps_when_and_as_whom_it_joined() {
    let env = house();
    let ann = session(&env, "ann");
    let first = join(&ann, "m");
    run(&ann, 0, "mission focus wp:1");
    let again = run(&ann, 0, "mission join m --role reviewer");
    assert_eq!(again["joined"], "same");
    let again = &again["participant"];
    for same in ["joined_at", "participant_id"] {
        assert_eq!(again[same], first[same], "{same}");
    }
    assert_eq!(
        (&again["role"], &again["focus"]),
        (&json!("reviewer"), &json!("wp:1"))
    );
    assert!(text(&again["last_activity_at"]) >= text(&first["last_activity_at"]));
}

#[test]
fn what_a_participant_does_elsewhere_is_activity_too() {
    let env = house();
    let ann = session(&env, "ann");
    join(&ann, "m");
    let shown = || text(&participants(&env, "m")[0]["last_activity_at"]);
    let before = shown();
    // By then a heartbeat is due.
    env.pass(LEASE / 2);
    assert_eq!(shown(), before);
    run(&ann, 0, "ps");
    assert!(shown() > before);
}

#[test]
fn two_sessions_of_one_user_are_two_participants() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let (first, second) = (join(&ann, "m"), join(&bob, "m"));
    assert_ne!(first["participant_id"], second["participant_id"]);
    run(&ann, 0, "mission focus wp:1");
    run(&bob, 0, "mission focus wp:2");
    run(&ann, 0, "mission drive active");
    let rows = participants(&env, "m");
    assert_eq!(part(&rows, &handle(&ann), "focus"), "wp:1");
    assert_eq!(part(&rows, &handle(&bob), "focus"), "wp:2");
    assert_eq!(part(&rows, &handle(&bob), "drive"), "inactive");
    for (agent, focus, drive) in [(&ann, "wp:1", "active"), (&bob, "wp:2", "inactive")] {
        let own = run(agent, 0, "whoami")["participant"].clone();
        assert_eq!(
            (&own["focus"], &own["drive"]),
            (&json!(focus), &json!(drive))
        );
    }
}

#[test]
fn the_dead_are_shown_as_dead_and_never_drive() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    for agent in [&ann, &bob] {
        join(agent, "m");
        run(agent, 0, "mission focus wp:1");
    }
    run(&ann, 0, "mission drive active");
    let gone = handle(&ann);
    ann.kill9();
    let answer = run(&bob, 0, "mission drive active --strict");
    assert_eq!(answer["warnings"], json!([]));
    let rows = participants(&env, "m");
    assert_eq!(part(&rows, &gone, "state"), "dead");
    assert_eq!(part(&rows, &gone, "drive"), "inactive");
    assert_eq!(part(&rows, &handle(&bob), "collides_with"), json!([]));
}

#[test]
fn two_missions_of_one_session_are_apart() {
    let env = house();
    let ann = session(&env, "ann");
    let (one, two) = (join(&ann, "one"), join(&ann, "two"));
    assert_ne!(one["participant_id"], two["participant_id"]);
    run(&ann, 0, "mission focus wp:2");
    run(&ann, 0, "mission focus wp:1 --mission one");
    assert_eq!(participants(&env, "one")[0]["focus"], "wp:1");
    assert_eq!(participants(&env, "two")[0]["focus"], "wp:2");
    run(&ann, 0, "mission leave one");
    let list = run(&ann, 0, "mission list")["missions"].clone();
    let ids: Vec<String> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| text(&one["id"]))
        .collect();
    assert_eq!(ids, ["two"]);
    let all = run(&ann, 0, "mission list --all")["missions"].clone();
    assert_eq!(all.as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&all[0]["joined"], &all[1]["joined"]),
        (&json!(false), &json!(true))
    );
}

#[test]
fn a_named_participant_id_is_one_sessions_until_that_is_gone() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let ask = "mission join m --role developer --participant 01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let one = run(&ann, 0, ask)["participant"].clone();
    assert_eq!(one["participant_id"], "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    let error = refused(&bob, 6, "invalid", ask);
    assert!(text(&error["message"]).contains(&handle(&ann)), "{error}");
    let other = "mission join m --role developer --participant 01ARZ3NDEKTSV4RRFFQ69G5FAX";
    refused(&ann, 6, "invalid", other);
    ann.kill9();
    run(&bob, 0, ask);
    assert_eq!(participants(&env, "m").len(), 1);
}

#[test]
fn pointers_survive_the_session_and_a_restart() {
    let env = house();
    let ann = session(&env, "ann");
    register(&ann, "ann", "--native-id n1");
    join(&ann, "m");
    run(&ann, 0, "mission focus wp:1");
    ann.kill9();
    let again = env.agent("ann");
    let resumed = register(&again, "ann", "--native-id n1");
    assert_eq!(resumed["session"]["registered"], "resumed");
    let own = run(&again, 0, "whoami")["participant"].clone();
    assert_eq!(
        (&own["mission"], &own["focus"]),
        (&json!("m"), &json!("wp:1"))
    );
}

#[test]
fn acting_for_another_participant_takes_a_reason_that_is_recorded() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    join(&ann, "m");
    let other = handle(&ann);
    refused(
        &bob,
        2,
        "reason_needed",
        &format!("mission focus wp:1 --session {other}"),
    );
    run(
        &bob,
        0,
        &format!("mission focus wp:1 --session {other} --reason helping"),
    );
    assert_eq!(participants(&env, "m")[0]["focus"], "wp:1");
    let events = events(&bob, "");
    assert_eq!(events.last().expect("an event")["reason"], "helping");
}

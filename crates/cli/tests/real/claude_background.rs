//! Claude Code's sessions in the background: each is shown once, and its own service is never fought.

use serde_json::Value;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::{Cmd, poll};

use crate::state::{LONG, handle, hooked, kill9, only};

const KIND: Real = Real::Claude;

/// Runs `claude` as a person does at a prompt; what it said.
#[track_caller]
fn claude(world: &RealWorld, args: &[&str]) -> String {
    let line = Cmd::new("claude")
        .args(args.iter().copied())
        .dir(&world.project());
    world.driver().run(line).ok().stdout
}

/// The only session, once it is in this life, known to its service, and at rest after its turn. It is idle and
/// unknown before that too, and then it has nothing to go on with.
#[track_caller]
fn at_rest(world: &RealWorld, life: u64) -> Value {
    poll(LONG, &format!("life {life} is idle"), || {
        let all = crate::state::sessions(world);
        let session = all.first()?.clone();
        let lives = session["state"] == "live" && session["process"]["life"] == life;
        let rests = session["activity"] == "idle" && session["place"] == "no window";
        (lives && rests && has_answered(world, &session)).then_some(session)
    })
}

/// Whether an answer is in the conversation on disk.
fn has_answered(world: &RealWorld, session: &Value) -> bool {
    let name = format!("{}.jsonl", session["native_id"].as_str().unwrap());
    let folders = std::fs::read_dir(world.home().join(".claude/projects"));
    let kept = folders.into_iter().flatten().flatten();
    let texts = kept.filter_map(|dir| std::fs::read_to_string(dir.path().join(&name)).ok());
    let mut answers = texts.filter(|text| text.contains("\"type\":\"assistant\""));
    answers.next().is_some()
}

#[test]
#[ignore = "runs a real agent"]
fn a_background_session_is_shown_once_and_left_to_its_service() {
    let world = hooked(KIND);
    let said = claude(&world, &["--bg", "hello"]);
    let session = at_rest(&world, 1);
    let name = handle(&session).to_owned();
    let job = session["native_id"].as_str().unwrap()[..8].to_owned();
    assert!(said.contains(&format!("claude attach {job}")), "{said}");

    // Its service, the holder of its terminal and the next one in advance are not agents.
    let shown = world
        .driver()
        .tenure_env(&[("TENURE_PS_UNMANAGED", Some("true"))], &["ps", "--json"]);
    let shown = shown.ok().json();
    let here = world.project().display().to_string();
    let unmanaged = shown["unmanaged"].as_array().unwrap().iter();
    let unmanaged: Vec<&Value> = unmanaged
        .filter(|one| one["dir"] == here.as_str())
        .collect();
    assert!(unmanaged.is_empty(), "{unmanaged:#?}");

    let attach = format!("run `claude attach {job}` to open it");
    let refused = |world: &RealWorld| {
        let error = world.tenure(&["resume", &name, "--json"]).fails(3).json();
        assert!(error.to_string().contains(&attach), "{error:#}");
    };
    refused(&world);
    let kill = world.tenure(&["end", &name, "--kill", "--reason", "enough", "--json"]);
    assert!(kill.fails(1).stdout.contains(&format!("claude stop {job}")));

    // Killed, it is started again by its service and by nobody else.
    kill9(u32::try_from(session["process"]["pid"].as_u64().unwrap()).unwrap());
    refused(&world);
    let again = at_rest(&world, 2);
    assert_eq!(again["id"], session["id"]);

    claude(&world, &["stop", &job]);
    let ended = poll(LONG, "it ended", || {
        let shown = only(&world);
        (shown["state"] == "ended").then_some(shown)
    });
    assert_eq!(ended["id"], session["id"]);
    // It says so before its process is gone, and its service strikes it off its list a moment later. Until then it
    // is not resumed.
    let said = poll(LONG, "its process and its service let it go", || {
        let said = world.tenure(&["resume", &name, "--print", "--json"]);
        (said.code != 3).then_some(said)
    });
    let view = said.ok().json();
    assert_eq!(view["resume"][0]["attach"], Value::Null, "{view:#}");
    let stopped = poll(LONG, "it was stopped by a person", || {
        let shown = only(&world);
        (shown["end_kind"] == "left").then_some(shown)
    });
    assert_eq!(stopped["id"], session["id"]);
    let offered = world.tenure(&["resume", "--json"]).ok().json();
    assert_eq!(
        offered["resume"].as_array().map(Vec::len),
        Some(0),
        "{offered:#}"
    );
    // Ends the service as well, with what it started in advance.
    claude(&world, &["daemon", "stop", "--any"]);
}

//! Gemini CLI survives its window: what is said of it then, and how its conversation is taken up again.

use tenure_testkit::pinned::Stat;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::{Cmd, Output, RecordedRequest, poll};

use crate::state::{LONG, handle, hooked, only};

const KIND: Real = Real::Gemini;

/// A command to a tmux server that is this test's own.
fn tmux(world: &RealWorld, args: &[&str]) -> Output {
    let socket = world.scratch().join("tmux");
    let own = ["-S", socket.to_str().unwrap(), "-f", "/dev/null"];
    let words = own.iter().chain(args).copied();
    world
        .driver()
        .run(Cmd::new("tmux").args(words).dir(&world.project()))
}

#[test]
#[ignore = "runs a real agent"]
fn a_closed_window_leaves_a_session_that_is_ended_and_resumed() {
    let world = hooked(KIND);
    let gemini = "exec gemini -m gemini-2.5-flash --yolo -i hello";
    let _opened = tmux(
        &world,
        &[
            "new-session",
            "-d",
            "-x",
            "120",
            "-y",
            "40",
            "-n",
            "other",
            "sleep 1000",
        ],
    )
    .ok();
    let _opened = tmux(&world, &["new-window", "-d", "-n", "gemini", gemini]).ok();
    // A conversation without an answer is not kept.
    world
        .mock()
        .await_asked(LONG, "for an answer", RecordedRequest::offers_tools);
    let session = poll(LONG, "Gemini answered", || {
        let shown = world.tenure(&["ps", "--json"]).ok().json();
        let session = shown["sessions"][0].clone();
        (session["activity"] == "idle" && !session["native_id"].is_null()).then_some(session)
    });
    let pid = u32::try_from(session["process"]["pid"].as_u64().unwrap()).unwrap();
    assert_ne!(session["place"], "its terminal is gone", "{session:#}");

    let _closed = tmux(&world, &["kill-window", "-t", "gemini"]).ok();
    let shown = poll(LONG, "its terminal is gone", || {
        let shown = only(&world);
        (shown["place"] == "its terminal is gone").then_some(shown)
    });
    assert_eq!(shown["state"], "live", "{shown:#}");
    assert_eq!(shown["process"]["pid"], pid);
    let name = handle(&session);
    let _lives = world.tenure(&["resume", name, "--print"]).fails(3);

    let why = "its window was closed";
    let ended = world
        .tenure(&["end", name, "--kill", "--reason", why, "--json"])
        .ok()
        .json();
    assert_eq!(ended["killed"]["pid"], pid, "{ended:#}");
    assert_eq!(ended["session"]["end_kind"], "left", "{ended:#}");
    assert!(!Stat::runs(pid));
    let id = session["native_id"].as_str().unwrap();
    let resume = world
        .tenure(&["resume", name, "--print", "--json"])
        .ok()
        .json();
    assert_eq!(
        resume["resume"][0]["problem"],
        serde_json::Value::Null,
        "{resume:#}"
    );
    world.agent(KIND).resume(id, "hello again").run().ok();
    let again = only(&world);
    assert_eq!(
        (&again["id"], &again["process"]["life"]),
        (&session["id"], &2.into())
    );
}

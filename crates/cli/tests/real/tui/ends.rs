//! How an agent ended: it left, or it was cut off. Only what was cut off is offered again.

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::{Key, Tmux, Tui};
use tenure_testkit::{Signal, poll};

use super::{at_terminals, newest, settles};
use crate::state::{LONG, handle, kill9, sessions};

at_terminals! { [
    who_leaves_by_its_own_command_has_left
    who_leaves_by_ctrl_d_has_left
    a_finished_headless_turn_has_left
    a_closed_window_cuts_off
    sigterm_cuts_off
    kill_9_cuts_off
] }

/// An agent that has had one turn.
#[track_caller]
fn talking(kind: Real) -> (RealWorld, Tmux, Tui) {
    let (world, tmux) = at_terminals(&[kind]);
    let tui = Tui::open(&tmux, &world, kind, &[]);
    tui.hello();
    (world, tmux, tui)
}

/// The sessions that `resume --all` offers, each with a command that names its conversation.
#[track_caller]
pub(super) fn offered(world: &RealWorld) -> Vec<String> {
    let answer = world
        .tenure(&["resume", "--all", "--print", "--json"])
        .ok()
        .json();
    let offers = answer["resume"].as_array().unwrap().iter();
    let names_it = |offer: &&Value| {
        let words = offer["argv"].as_array();
        words.is_some_and(|words| words.contains(&offer["session"]["native_id"]))
    };
    offers
        .filter(|offer| offer["problem"].is_null())
        .filter(names_it)
        .map(|offer| handle(&offer["session"]).to_owned())
        .collect()
}

/// Asserts how the agent's session ended, and whether it is offered again.
#[track_caller]
fn assert_ended(world: &RealWorld, kind: Real, how: &str) {
    let session = settles(
        || newest(world, kind).unwrap(),
        |session| session["end_kind"] == how,
    );
    let all = sessions(world);
    assert_eq!(session["end_kind"], how, "{all:#?}");
    assert!(!session["ended_at"].is_null(), "{all:#?}");
    let expected = match how {
        "cut_off" => vec![handle(&session).to_owned()],
        _ => Vec::new(),
    };
    assert_eq!(offered(world), expected, "{all:#?}");
}

fn who_leaves_by_its_own_command_has_left(kind: Real) {
    let (world, _tmux, tui) = talking(kind);
    tui.command(tui.exit());
    tui.window.wait_gone();
    assert_ended(&world, kind, "left");
}

fn who_leaves_by_ctrl_d_has_left(kind: Real) {
    let (world, _tmux, tui) = talking(kind);
    // Some want to hear it twice, and ask for that.
    tui.window.key(Key::Ctrl('d'));
    let reacts = |screen: &str| screen.contains("again") || !tui.window.is_alive();
    tui.window.wait_for_screen("it leaves or asks", reacts);
    if tui.window.is_alive() {
        tui.window.try_key(Key::Ctrl('d'));
    }
    tui.window.wait_gone();
    assert_ended(&world, kind, "left");
}

fn a_finished_headless_turn_has_left(kind: Real) {
    let (world, _tmux) = at_terminals(&[kind]);
    world.agent(kind).fresh("hello").run().ok();
    assert_ended(&world, kind, "left");
}

fn a_closed_window_cuts_off(kind: Real) {
    let (world, _tmux, tui) = talking(kind);
    let pid = tui.agent_pid();
    tui.window.kill_window();
    // Gemini may go on without a terminal for a while, and that is said.
    if kind == Real::Gemini && Stat::runs(pid) {
        let session = settles(
            || newest(&world, kind).unwrap(),
            |session| session["place"] == "its terminal is gone" || !Stat::runs(pid),
        );
        let lives = session["state"] == "live" && session["place"] == "its terminal is gone";
        assert!(lives || !Stat::runs(pid), "{session:#}");
        if Stat::runs(pid) {
            kill9(pid);
        }
    }
    tui.window.wait_gone();
    assert_ended(&world, kind, "cut_off");
}

/// Three of them say at SIGTERM what they say when a person leaves; that nobody typed tells the two apart.
fn sigterm_cuts_off(kind: Real) {
    let (world, _tmux, tui) = talking(kind);
    if matches!(kind, Real::Gemini | Real::Opencode | Real::Qwen) {
        let pid = tui.agent_pid();
        poll(LONG, "nobody types", || {
            tenure_host::terminal::is_quiet(pid).then_some(())
        });
    }
    tui.signal(Signal::TERM);
    tui.window.wait_gone();
    assert_ended(&world, kind, "cut_off");
}

fn kill_9_cuts_off(kind: Real) {
    let (world, _tmux, tui) = talking(kind);
    tui.signal(Signal::KILL);
    assert_ended(&world, kind, "cut_off");
}

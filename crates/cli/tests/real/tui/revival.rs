//! What was cut off with its terminal comes back, with what it held.

use std::collections::BTreeSet;

use serde_json::Value;
use tenure_testkit::poll;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::{Doing, Tmux, Tui};

use super::ends::offered;
use super::seen::agree;
use super::{at_terminals, newest, settles};
use crate::state::{LONG, handle, sessions};

const KEYS: [&str; 5] = [
    "wp:041/WP01",
    "wp:041/WP02",
    "wp:041/WP03",
    "wp:041/WP04",
    "wp:041/WP05",
];

fn held(session: &Value) -> BTreeSet<String> {
    let claims = session["claims"].as_array().into_iter().flatten();
    claims
        .map(|claim| claim["key"].as_str().unwrap().to_owned())
        .collect()
}

/// Has an agent claim all keys and go on working.
#[track_caller]
fn claims_and_works(world: &RealWorld, tui: &Tui) {
    let claims = format!(
        "for key in {}; do tenure claim $key; done; touch claimed",
        KEYS.join(" ")
    );
    tui.prompt(&format!("{} ;; MOCK:hold here", tui.asking_step(&claims)));
    tui.await_doing(Doing::Waiting);
    tui.yes();
    let done = world.project().join("claimed");
    tui.window
        .wait_for_screen("the claims are made", |_| done.exists());
    agree(world, tui, Doing::Busy, "it holds five claims");
}

/// Runs `tenure resume --all` in a window of this server, as a person does.
#[track_caller]
pub(super) fn resume_all(world: &RealWorld, tmux: &Tmux) {
    let said = world.scratch().join("resumed");
    let line = format!(
        "tenure resume --all > {0}.new 2>&1; mv {0}.new {0}",
        said.display()
    );
    let window = tmux.window(&["sh", "-c", &line], &world.project(), &[]);
    window.wait_gone();
    let text = poll(LONG, "it says what it did", || {
        std::fs::read_to_string(&said).ok()
    });
    assert!(!text.contains("error"), "{text}");
    std::fs::remove_file(&said).unwrap();
}

/// The window of an agent that `resume --all` opened.
#[track_caller]
pub(super) fn revived(tmux: &Tmux, kind: Real, handle: &str) -> Tui {
    let pane = poll(LONG, &format!("a window is opened for {handle}"), || {
        let panes = tmux.run(&["list-panes", "-a", "-F", "#{window_name} #{pane_id}"]);
        let rows = panes.lines().filter_map(|row| row.split_once(' '));
        let mut fitting = rows.filter(|(name, _)| *name == handle);
        fitting.next().map(|(_, pane)| pane.to_owned())
    });
    let tui = Tui::in_pane(tmux, kind, &pane);
    tui.await_ready();
    tui
}

#[track_caller]
fn comes_back_with_its_claims(kind: Real) {
    let (world, tmux) = at_terminals(&[kind, Real::Qwen]);
    let leaves = Tui::open(&tmux, &world, Real::Qwen, &[]);
    leaves.hello();
    let works = Tui::open(&tmux, &world, kind, &[]);
    claims_and_works(&world, &works);
    leaves.command(leaves.exit());
    leaves.window.wait_gone();
    let before = newest(&world, kind).unwrap();
    assert_eq!(held(&before), KEYS.map(str::to_owned).into());

    tmux.kill_server();
    works.window.wait_gone();
    // Some send the prompt that was interrupted along with the next one.
    world.mock().release("here");
    let cut_off = [handle(&before).to_owned()];
    let offers = settles(|| offered(&world), |offers| *offers == cut_off);
    assert_eq!(offers, cut_off, "{:#?}", sessions(&world));

    let tmux = Tmux::start(&world);
    resume_all(&world, &tmux);
    let back = revived(&tmux, kind, handle(&before));
    back.hello();
    agree(&world, &back, Doing::Idle, "it is back");
    let after = newest(&world, kind).unwrap();
    assert_eq!(after["id"], before["id"], "{after:#}");
    assert_eq!(after["process"]["pid"], back.agent_pid(), "{after:#}");
    assert_eq!(held(&after), held(&before), "{after:#}");
    assert_eq!(offered(&world), Vec::<String>::new());
}

#[test]
#[ignore = "runs a real agent"]
fn claude_comes_back_with_its_five_claims_when_the_tmux_server_was_killed() {
    comes_back_with_its_claims(Real::Claude);
}

#[test]
#[ignore = "runs a real agent"]
fn opencode_comes_back_with_its_five_claims_when_the_tmux_server_was_killed() {
    comes_back_with_its_claims(Real::Opencode);
}

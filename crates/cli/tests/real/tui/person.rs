//! What a person at an agent's window reads of what hooks say. Claude Code's windows are in the module of that name
//! above this one.

use std::cell::Cell;

use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::tui::{Doing, Tmux, Tui};

use super::at_terminals;
use crate::person::neighbour;

each! { [
    the_person_reads_what_the_model_is_warned_of
    the_person_reads_why_a_command_was_blocked
] codex Codex gemini Gemini opencode Opencode qwen Qwen }

const WARNING: &str = "`git stash` changes files that gemini-";

/// Whether a screen says this, without what its lines and boxes put in between; some take a backtick for a format.
fn says(screen: &str, words: &str) -> bool {
    let plain = |text: &str| {
        let is_drawn = |one: char| matches!(one, '\u{2500}'..='\u{259f}' | '`');
        let seen = |one: &char| !one.is_whitespace() && !is_drawn(*one);
        text.chars().filter(seen).collect::<String>()
    };
    plain(screen).contains(&plain(words))
}

/// Has the agent run a command beside another session, allows it where that is asked for, and waits until the person
/// has read the warning. The model does not repeat what it was told, and a message may go away by itself.
#[track_caller]
fn await_warning(world: &RealWorld, tmux: &Tmux, kind: Real) -> Tui {
    let _other = neighbour(world);
    let tui = Tui::open(tmux, world, kind, &[]);
    tui.prompt(&format!(
        "{} ;; MOCK:say done.",
        tui.asking_step("git stash")
    ));
    let read = Cell::new(false);
    let reads = |screen: &str| {
        read.set(read.get() || says(screen, WARNING));
        read.get()
    };
    let asks = || tui.doing() == Some(Doing::Waiting);
    tui.window
        .wait_for_screen("it asks, or says why not", |screen| reads(screen) || asks());
    if asks() {
        tui.yes();
    }
    tui.window.wait_for_screen("the person reads it", reads);
    tui
}

fn the_person_reads_what_the_model_is_warned_of(kind: Real) {
    let (world, tmux) = at_terminals(&[kind]);
    let tui = await_warning(&world, &tmux, kind);
    let is_told = || world.mock().was_told("git worktree add");
    let asks = || tui.doing() == Some(Doing::Waiting);
    tui.window
        .wait_for_screen("the model is told too, or it asks", |_| is_told() || asks());
    if asks() {
        tui.yes();
    }
    tui.window
        .wait_for_screen("the model is told too", |_| is_told());
}

fn the_person_reads_why_a_command_was_blocked(kind: Real) {
    let (world, tmux) = at_terminals(&[kind]);
    let _block = world
        .tenure(&["install", kind.name(), "--mode", "block"])
        .ok();
    await_warning(&world, &tmux, kind);
}

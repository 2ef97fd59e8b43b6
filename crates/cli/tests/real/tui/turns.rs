//! A turn that ends, a turn that a person interrupts, and a question that is answered with no.

use tenure_testkit::real::Real;
use tenure_testkit::tui::{Doing, Tui};

use super::at_terminals;
use super::seen::agree;

/// The three in one sitting: an agent's start is what takes long.
fn a_turn_ends_is_interrupted_and_is_refused_a_command(kind: Real) {
    let (world, tmux) = at_terminals(&[kind]);
    let tui = Tui::open(&tmux, &world, kind, &[]);
    tui.hello();
    agree(&world, &tui, Doing::Idle, "the turn is over");

    tui.prompt("MOCK:hold here");
    agree(&world, &tui, Doing::Busy, "the model thinks");
    tui.interrupt();
    agree(&world, &tui, Doing::Idle, "after Esc in a turn");
    // Some send the prompt that was interrupted along with the next one.
    world.mock().release("here");

    tui.prompt(&tui.asking_step("touch refused"));
    agree(&world, &tui, Doing::Waiting, "it asks");
    tui.no();
    agree(&world, &tui, Doing::Idle, "after No");
    assert!(!world.project().join("refused").exists());
}

at_terminals! { [a_turn_ends_is_interrupted_and_is_refused_a_command] }

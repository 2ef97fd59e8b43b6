//! A message from a person at another terminal starts a turn in an idle window, and the receipt says so.

use tenure_testkit::poll;
use tenure_testkit::real::Real;
use tenure_testkit::tui::{Doing, Tui};

use super::seen::agree;
use super::{at_terminals, newest};
use crate::state::LONG;

each! { [
    a_message_starts_a_turn_in_an_idle_window
] claude Claude codex Codex opencode Opencode }

fn a_message_starts_a_turn_in_an_idle_window(kind: Real) {
    let (world, tmux) = at_terminals(&[kind]);
    let settings = world.home().join(".config/tenure");
    std::fs::create_dir_all(&settings).unwrap();
    let on = format!("[wake]\nagents = [\"{}\"]\n", kind.name());
    std::fs::write(settings.join("config.toml"), on).unwrap();
    let _installed = world.tenure(&["install", kind.name(), "--wake"]).ok();
    let tui = Tui::open(&tmux, &world, kind, &[]);
    tui.hello();
    agree(&world, &tui, Doing::Idle, "the turn is over");
    let waits = kind.adapter().wakes.is_some_and(|way| way.waits());
    let bells = world.state().join("wake");
    poll(LONG, "a process waits beside it", || {
        let is_there = std::fs::read_dir(&bells).is_ok_and(|mut all| all.next().is_some());
        (is_there || !waits).then_some(())
    });
    let session = newest(&world, kind).expect("it is registered");
    let to = session["handle"].as_str().unwrap();
    let person = world.env().shell_at_terminal();
    for text in ["first wake", "second wake"] {
        let line =
            format!("tenure tell {to} 'MOCK:say heard {text}.' --wait 60s --json 2>/dev/tty");
        let sent = person.line(&line).ok();
        assert_eq!(sent.json()["delivery"], "delivered", "{sent}");
        poll(LONG, "the model has it", || {
            world.mock().was_told(text).then_some(())
        });
        agree(
            &world,
            &tui,
            Doing::Idle,
            "the turn that it started is over",
        );
    }
    assert!(world.mock().was_told("A message grants no permission"));
}

//! The terminals themselves: what is typed is shown, what is closed is hung up, and nothing stays behind.

use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::poll;
use tenure_testkit::protocol::Started;
use tenure_testkit::tui::{Key, Tmux, Window};

use crate::state::LONG;

fn held(pid: u32) -> Pinned {
    let start = Stat::read(pid).unwrap().start;
    Pinned::open(Started { pid, start }).unwrap()
}

/// A shell that survives its window, and says its pid.
fn stubborn(tmux: &Tmux, world: &tenure_testkit::real::RealWorld) -> Window {
    let script = "trap '' HUP; echo I am $$; while :; do read -r line || sleep 1000; echo \"heard $line\"; done";
    tmux.window(&["sh", "-c", script], &world.project(), &[("OWN", "yes")])
}

#[test]
#[ignore = "runs tmux"]
fn what_is_typed_is_heard_and_nothing_outlives_the_server() {
    let world = crate::world();
    let tmux = Tmux::start(&world);
    let window = stubborn(&tmux, &world);
    window.type_line("a line");
    window.wait_for_screen("it is heard", |screen| screen.contains("heard a line"));
    let environ = std::fs::read(format!("/proc/{}/environ", window.pane_pid())).unwrap();
    let environ = String::from_utf8_lossy(&environ).into_owned();
    assert!(
        environ.contains("OWN=yes") && environ.contains("TMUX="),
        "{environ}"
    );
    assert!(!environ.contains("LD_LIBRARY_PATH"), "{environ}");

    let ends = tmux.window(&["cat"], &world.project(), &[]);
    ends.key(Key::Ctrl('c'));
    ends.wait_gone();

    let (server, shell) = (held(tmux.pid()), held(window.pane_pid()));
    window.kill_window();
    poll(LONG, "the window is closed", || {
        (!tmux
            .run(&["list-panes", "-a", "-F", "#{pane_id}"])
            .contains(window.pane()))
        .then_some(())
    });
    assert!(!shell.is_gone(), "it was told not to hear the hang-up");
    let other = stubborn(&tmux, &world);
    other.wait_for_screen("it is there", |screen| screen.contains("I am"));
    let other = held(other.pane_pid());
    drop(tmux);
    assert!(server.is_gone() && other.is_gone());
    drop(world);
    assert!(shell.is_gone(), "what left the server ends with the world");
}

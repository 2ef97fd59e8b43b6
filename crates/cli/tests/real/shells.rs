//! Completion in the real zsh and fish, which `scripts/tools` brings.

use std::io::Write;

use tenure_testkit::Cmd;
use tenure_testkit::tui::{Key, Tmux, Window};

use crate::state::{handle, of_process, other};

const KEY: &str = "issue:acme/web#42";

/// The shell that this variable names, where one could be had.
fn shell(variable: &str) -> Option<String> {
    let named = std::env::var(variable).ok();
    if named.is_none() {
        writeln!(std::io::stderr(), "skipped: {variable} names no shell").ok();
    }
    named
}

/// Types the beginning of a line and Tab, and waits until the line is this.
#[track_caller]
fn completes(window: &Window, begin: &str, whole: &str) {
    window.key(Key::Ctrl('u'));
    window.key(Key::Ctrl('l'));
    window.wait_for_screen("the screen is clear", |screen| !screen.contains("tenure"));
    window.type_text(begin);
    window.wait_for_screen("it is typed", |screen| screen.contains(begin.trim_end()));
    window.key(Key::Ctrl('i'));
    window.wait_for_screen(whole, |screen| screen.contains(whole));
}

#[test]
#[ignore = "runs zsh"]
fn real_zsh_is_offered_what_can_follow() {
    let Some(zsh) = shell("TENURE_ZSH") else {
        return;
    };
    let world = crate::world();
    let worker = other(&world);
    let _claim = worker.tenure(&["claim", KEY]).ok();
    let session = of_process(&world, worker.pid());
    let own = handle(&session);
    let tmux = Tmux::start(&world);
    let window = tmux.window(&[&zsh, "-i"], &world.project(), &[]);
    window.type_line(
        "PROMPT='> '; autoload -Uz compinit; compinit -u -D; eval \"$(tenure completions zsh)\"",
    );
    completes(&window, "tenure mission le", "tenure mission leave");
    completes(&window, "tenure show ot", &format!("tenure show {own}"));
    completes(
        &window,
        "tenure log --session ot",
        &format!("--session {own}"),
    );
    // What is put in means the key itself, whatever the shell quotes in it.
    completes(&window, "tenure why iss", "tenure why issue:acme/web");
    window.key(Key::Enter);
    window.wait_for_screen("the holder is named", |screen| screen.contains(own));
    // Words without an explanation are offered as they are.
    completes(&window, "tenure completions ", "powershell");
    let screen = window.screen();
    assert!(!screen.contains("--"), "{screen}");
}

#[test]
#[ignore = "runs fish"]
fn real_fish_is_offered_what_can_follow() {
    let Some(fish) = shell("TENURE_FISH") else {
        return;
    };
    let world = crate::world();
    let worker = other(&world);
    let _claim = worker.tenure(&["claim", KEY]).ok();
    let session = of_process(&world, worker.pid());
    let own = handle(&session);
    std::fs::write(world.project().join("a file"), "").unwrap();
    let offered = |line: &str| {
        let script = format!("tenure completions fish | source; complete -C '{line}'");
        let said = world.driver().run(
            Cmd::new(&fish)
                .args(["-c", script.as_str()])
                .dir(&world.project()),
        );
        let words = said.ok().stdout;
        let words = words.lines().map(|line| line.split('\t').next().unwrap());
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(offered("tenure mission le"), ["leave"]);
    assert_eq!(offered("tenure show ot"), [own]);
    assert_eq!(offered("tenure log --session ot"), [own]);
    assert_eq!(offered("tenure why iss"), [KEY]);
    assert_eq!(offered("tenure who a"), ["a file"]);
    assert!(offered("tenure completions ").contains(&"zsh".to_owned()));
}

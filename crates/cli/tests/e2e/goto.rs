//! Where sessions are, going there, and a table that is drawn on a real terminal.

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Cmd, Env, poll};

use crate::env;
use crate::support::line::{SOON, handle, run, session, text};
use crate::support::tmux::{Tmux, with_tmux};

/// Makes the shell of a pane a session, and returns its handle.
#[track_caller]
fn resident(env: &Env, tmux: &Tmux, pane: &str) -> String {
    let known = handles(env);
    tmux.types(pane, "tenure register --agent claude --pid $$ >/dev/null");
    poll(SOON, "it is registered", || {
        handles(env).into_iter().find(|one| !known.contains(one))
    })
}

fn handles(env: &Env) -> Vec<String> {
    let said = env.tenure(&["ps", "-q"]).ok().stdout;
    said.lines().map(str::to_owned).collect()
}

#[track_caller]
fn shown(env: &Env, handle: &str) -> Value {
    env.tenure(&["show", handle, "--json"]).ok().json()["session"].clone()
}

#[test]
fn a_session_in_tmux_is_found_at_its_pane() {
    let env = with_tmux();
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    let name = resident(&env, &tmux, &pane);
    assert_eq!(shown(&env, &name)["place"], "main:1.0");
    tmux.run(&["rename-session", "-t", "main", "other"]);
    assert_eq!(shown(&env, &name)["place"], "other:1.0");
    let table = env.tenure(&["ps"]).ok().stdout;
    assert!(table.contains("other:1.0"), "{table}");
}

/// Without UTF-8 tmux prints nothing but ASCII, and no tab.
#[test]
fn a_pane_is_found_without_a_utf_8_locale() {
    let mut env = with_tmux();
    env.set("LANG", "C");
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    let name = resident(&env, &tmux, &pane);
    assert_eq!(shown(&env, &name)["place"], "main:1.0");
}

#[test]
fn a_pane_that_a_variable_names_by_mistake_does_not_count() {
    let env = with_tmux();
    let tmux = Tmux::start(&env, "s");
    let stale = format!("{},1,0", tmux.socket);
    let mut elsewhere = with_tmux();
    elsewhere.set("TMUX", stale);
    elsewhere.set("TMUX_PANE", "%0");
    let stray = elsewhere.agent_at_terminal("claude");
    let pid = stray.pid();
    run(&stray, 0, &format!("register --agent claude --pid {pid}"));
    let place = run(&stray, 0, &format!("show {}", handle(&stray)))["session"]["place"].clone();
    let place = text(&place);
    assert!(place.starts_with("pts/"), "{place}");
}

#[test]
fn no_tmux_is_started_where_no_session_is_in_one() {
    let mut env = env();
    let called = env.dir().join("called");
    let fake = env.dir().join("fake-tmux");
    let script = format!("#!/bin/sh\necho called >{}\n", called.display());
    std::fs::write(&fake, script).expect("the directory is ours");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&fake, mode).expect("the directory is ours");
    env.set("TENURE_TMUX", fake.display().to_string());
    let ann = session(&env, "ann");
    env.tenure(&["ps"]).ok();
    run(&ann, 0, "status");
    assert!(!called.exists());
}

#[test]
fn a_tmux_that_does_not_answer_is_not_waited_for() {
    let env = with_tmux();
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    let name = resident(&env, &tmux, &pane);
    let fake = env.dir().join("hangs");
    let pid = env.dir().join("pid");
    let script = format!("#!/bin/sh\necho $$ >{}\nexec sleep 600\n", pid.display());
    std::fs::write(&fake, script).expect("the directory is ours");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&fake, mode).expect("the directory is ours");
    let caller = env.agent("caller");
    let cmd = Cmd::new("tenure")
        .args(["show", name.as_str(), "--json"])
        .env("TENURE_TMUX", fake.display().to_string());
    let said = caller.run(cmd).ok();
    let place = text(&said.json()["session"]["place"]);
    assert!(place.starts_with("pts/"), "{place}");
    let pid = std::fs::read_to_string(pid).expect("it was asked");
    let client = std::path::Path::new("/proc").join(pid.trim());
    assert!(!client.exists(), "the client that hung was left behind");
}

#[test]
fn goto_selects_the_pane_where_somebody_looks_at_its_session() {
    let env = with_tmux();
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    let name = resident(&env, &tmux, &pane);
    // Nobody looks.
    let lost = env.tenure(&["goto", &name]);
    assert_eq!(lost.code, 1, "{lost}");
    let attach = format!("tmux -S {} attach -t", tmux.socket);
    assert!(
        lost.stderr.contains(&attach) && lost.stderr.contains("main:1.0"),
        "{lost}"
    );
    assert_ne!(tmux.current(), pane);
    // A terminal shows the session, at another window.
    let outer = Tmux::start(&env, "o");
    outer.types(
        "main:0",
        &format!("TMUX= tmux -S {} attach -t main", tmux.socket),
    );
    poll(SOON, "it is attached", || {
        (!tmux.run(&["list-clients"]).is_empty()).then_some(())
    });
    let said = env.tenure(&["goto", &name, "--json"]).ok();
    assert_eq!(said.json()["session"]["place"], "main:1.0");
    assert_eq!(tmux.current(), pane);
}

#[test]
fn goto_switches_the_client_that_it_is_typed_in() {
    let env = with_tmux();
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    let name = resident(&env, &tmux, &pane);
    let elsewhere = tmux.session("second");
    let outer = Tmux::start(&env, "o");
    outer.types(
        "main:0",
        &format!("TMUX= tmux -S {} attach -t second", tmux.socket),
    );
    let looks_at = || tmux.run(&["list-clients", "-F", "#{pane_id}"]);
    poll(SOON, "it is attached", || {
        (looks_at() == elsewhere).then_some(())
    });
    tmux.types(&elsewhere, &format!("tenure goto {name}"));
    poll(SOON, "the client is switched", || {
        (looks_at() == pane).then_some(())
    });
}

#[test]
fn goto_runs_the_users_command_outside_of_tmux() {
    let mut env = env();
    let said = env.dir().join("said");
    let script = env.dir().join("focus");
    let text = format!("#!/bin/sh\necho \"$@\" >{}\n", said.display());
    std::fs::write(&script, text).expect("the directory is ours");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("the directory is ours");
    let agent = env.agent_at_terminal("claude");
    let pid = agent.pid();
    run(&agent, 0, &format!("register --agent claude --pid {pid}"));
    let name = handle(&agent);
    let refused = env.tenure(&["goto", &name, "--json"]);
    assert_eq!(refused.code, 1, "{refused}");
    assert_eq!(refused.json()["error"]["kind"], "not_shown");
    env.set(
        "TENURE_GOTO_COMMAND",
        format!("{} {{handle}} {{pid}} {{tty}} a;b", script.display()),
    );
    env.tenure(&["goto", &name]).ok();
    let words = std::fs::read_to_string(&said).expect("it was run");
    let start = format!("{name} {pid} /dev/pts/");
    assert!(
        words.starts_with(&start) && words.ends_with(" a;b\n"),
        "{words}"
    );
    env.set("TENURE_GOTO_COMMAND", "false");
    assert_eq!(env.tenure(&["goto", &name]).code, 1);
}

#[test]
fn goto_says_of_a_dead_session_that_it_is_dead() {
    let env = env();
    let ann = session(&env, "ann");
    let name = handle(&ann);
    ann.kill9();
    let said = env.tenure(&["goto", &name, "--json"]);
    assert_eq!(said.json()["error"]["kind"], "not_live", "{said}");
}

/// Starts a watch in a pane, and remembers how its terminal was before.
fn watches(tmux: &Tmux, pane: &str, dir: &std::path::Path) {
    let dir = dir.display();
    tmux.types(pane, "echo this was here");
    tmux.shows(pane, "\nthis was here");
    tmux.types(pane, &format!("stty -a >{dir}/before; sh -c 'echo $$ >{dir}/pid; exec tenure ps --watch'; echo code $? >{dir}/code; stty -a >{dir}/after"));
    tmux.shows(pane, "(q to quit)");
    assert_eq!(tmux.ask(pane, "#{alternate_on} #{cursor_flag}"), "1 0");
}

/// The pid of the watch.
fn watcher(env: &Env) -> String {
    let pid = std::fs::read_to_string(env.dir().join("pid")).expect("it was started");
    pid.trim().to_owned()
}

/// The terminal is as it was; what the watch ended with.
#[track_caller]
fn restored(tmux: &Tmux, pane: &str, dir: &std::path::Path) -> String {
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    poll(SOON, "the watch ends", || {
        (read("after").lines().count() >= read("before").lines().count()
            && !read("after").is_empty())
        .then_some(())
    });
    assert_eq!(read("after"), read("before"));
    assert_eq!(tmux.ask(pane, "#{alternate_on} #{cursor_flag}"), "0 1");
    let screen = tmux.shown(pane);
    assert!(
        screen.contains("this was here") && !screen.contains("(q to quit)"),
        "{screen}"
    );
    read("code").trim().to_owned()
}

#[test]
fn f_v10_a_watch_gives_the_terminal_back() {
    for (way, code) in [
        ("q", "code 0"),
        ("C-c", "code 0"),
        ("TERM", "code 143"),
        ("HUP", "code 129"),
        ("store", "code 8"),
    ] {
        let env = with_tmux();
        let _ann = session(&env, "ann");
        let tmux = Tmux::start(&env, "s");
        let pane = tmux.window();
        watches(&tmux, &pane, env.dir());
        // Keys that mean nothing are not shown.
        tmux.run(&["send-keys", "-t", &pane, "-l", "xyzzy"]);
        match way {
            "q" | "C-c" => tmux.presses(&pane, way),
            "store" => {
                std::fs::remove_file(env.state().join("tenure.db")).expect("it is ours");
            }
            signal => {
                let caller = env.agent("caller");
                let pid = watcher(&env);
                caller
                    .run(Cmd::new("kill").args([format!("-{signal}"), pid]))
                    .ok();
            }
        }
        assert_eq!(restored(&tmux, &pane, env.dir()), code, "{way}");
        assert!(
            !tmux.shown(&pane).contains("xyzzy"),
            "{way}: keys were echoed"
        );
    }
}

#[test]
fn f_v09_a_watch_ends_with_its_terminal() {
    let env = with_tmux();
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    watches(&tmux, &pane, env.dir());
    let process: u32 = watcher(&env).parse().expect("a pid");
    assert!(Stat::runs(process));
    tmux.run(&["kill-pane", "-t", &pane]);
    poll(SOON, "it ends", || (!Stat::runs(process)).then_some(()));
}

#[test]
fn a_watch_shows_the_time_and_the_counts_and_fits_the_screen() {
    let env = with_tmux();
    let agents: Vec<_> = (0..25).map(|_| session(&env, "ann")).collect();
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    watches(&tmux, &pane, env.dir());
    tmux.shows(&pane, "  25 live  (q to quit)");
    let screen = tmux.shown(&pane);
    assert!(screen.lines().count() <= 20, "{screen}");
    assert!(
        screen.contains("HANDLE") && screen.contains("… "),
        "{screen}"
    );
    drop(agents);
}

#[test]
fn a_table_fits_the_terminal_that_it_is_drawn_on() {
    let env = with_tmux();
    let ann = session(&env, "ann");
    let name = handle(&ann);
    let title = "A title that is much longer than any narrow terminal could ever show on one line";
    run_rename(&env, &ann, title);
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    tmux.run(&["resize-window", "-t", &pane, "-x", "60", "-y", "20"]);
    tmux.types(&pane, "clear; tenure ps; echo end");
    tmux.shows(&pane, "\nend");
    let screen = tmux.shown(&pane);
    let row: Vec<&str> = screen.lines().filter(|line| line.contains(&name)).collect();
    assert_eq!(row.len(), 1, "{screen}");
    assert!(
        row[0].contains("A title") && row[0].contains('…'),
        "{screen}"
    );
    assert!(
        screen.contains("HANDLE") && !screen.contains("AGE"),
        "{screen}"
    );
    // Through a pipe, all of it is printed.
    assert!(env.tenure(&["ps"]).ok().stdout.contains(title));
}

fn run_rename(env: &Env, ann: &tenure_testkit::Agent, title: &str) {
    let name = handle(ann);
    ann.tenure(&["rename", &name, title]).ok();
    assert_eq!(shown(env, &name)["title"], title);
}

#[test]
fn a_plain_terminal_gets_no_codes_and_a_narrow_one_no_long_lines() {
    let env = crate::env();
    let ann = session(&env, "ann");
    let key = "issue:acme/a-repository-with-a-long-name#42";
    run(&ann, 0, &format!("claim {key}"));
    let person = env.shell_at_terminal();
    let shows = |line: &str| {
        let before = person.shown().len();
        let _ended = person.line(&format!("{line} >/dev/tty")).ok();
        let shown = person.shown()[before..].to_owned();
        // Without the line that was typed and the next prompt.
        let lines = shown.lines().skip(1).map(str::trim_end);
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let colour = "\u{1b}[32m";
    assert!(shows("TERM=xterm tenure claims").contains(colour));
    assert!(!shows("TERM=dumb tenure claims").contains('\u{1b}'));
    for verb in ["claims", "status", "ps"] {
        let shown = shows(&format!("TERM=dumb LC_ALL=C COLUMNS=40 tenure {verb}"));
        let answer = shown.lines().take_while(|line| !line.contains("$ "));
        for line in answer {
            assert!(line.is_ascii() && line.len() <= 40, "{verb}: {shown}");
        }
    }
    let narrow = shows("TERM=dumb LC_ALL=C COLUMNS=40 tenure claims");
    assert!(narrow.contains("~") && narrow.contains("#42"), "{narrow}");
}

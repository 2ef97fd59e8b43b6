//! `tenure top` on a real terminal: what its first screen answers, how it follows changes, and how it ends.

use serde_json::{Value, json};
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Cmd, Env, Scripted, poll};

use crate::support::hook::event;
use crate::support::line::{SOON, handle, register, run, session, take};
use crate::support::tmux::{Tmux, with_tmux};

/// Shown on the last line as long as no act is asked for.
const READY: &str = "q quit";

fn sized(tmux: &Tmux, pane: &str, columns: u16, rows: u16) {
    let (columns, rows) = (columns.to_string(), rows.to_string());
    tmux.run(&["resize-window", "-t", pane, "-x", &columns, "-y", &rows]);
}

/// Starts it in a pane, and remembers how its terminal was before.
fn starts(tmux: &Tmux, pane: &str, env: &Env) {
    let dir = env.dir().display();
    tmux.types(pane, "echo this was here");
    tmux.shows(pane, "\nthis was here");
    tmux.types(
        pane,
        &format!(
            "stty -a >{dir}/before; sh -c 'echo $$ >{dir}/pid; exec tenure top'; \
             echo code $? >{dir}/code; stty -a >{dir}/after"
        ),
    );
    tmux.shows(pane, READY);
    assert_eq!(tmux.ask(pane, "#{alternate_on} #{cursor_flag}"), "1 0");
}

fn pid(env: &Env) -> u32 {
    let pid = std::fs::read_to_string(env.dir().join("pid")).expect("it was started");
    pid.trim().parse().expect("a pid")
}

/// The terminal is as it was; what it ended with.
#[track_caller]
fn restored(tmux: &Tmux, pane: &str, env: &Env) -> String {
    let read = |name: &str| std::fs::read_to_string(env.dir().join(name)).unwrap_or_default();
    poll(SOON, "it ends", || {
        let is_whole = read("after").lines().count() >= read("before").lines().count();
        (is_whole && !read("after").is_empty()).then_some(())
    });
    assert_eq!(read("after"), read("before"));
    assert_eq!(tmux.ask(pane, "#{alternate_on} #{cursor_flag}"), "0 1");
    let screen = tmux.shown(pane);
    assert!(
        screen.contains("this was here") && !screen.contains(READY),
        "{screen}"
    );
    read("code").trim().to_owned()
}

fn signals(env: &Env, signal: &str, pid: u32) {
    let caller = env.agent("caller");
    let pid = pid.to_string();
    caller
        .run(Cmd::new("kill").args([format!("-{signal}"), pid]))
        .ok();
}

#[test]
fn f_v10_top_gives_the_terminal_back_however_it_ends() {
    for (way, code) in [
        ("q", "code 0"),
        ("C-c", "code 0"),
        ("TERM", "code 143"),
        ("HUP", "code 129"),
    ] {
        let env = with_tmux();
        let _ann = session(&env, "ann");
        let tmux = Tmux::start(&env, "s");
        let pane = tmux.window();
        starts(&tmux, &pane, &env);
        match way {
            "q" | "C-c" => tmux.presses(&pane, way),
            signal => signals(&env, signal, pid(&env)),
        }
        assert_eq!(restored(&tmux, &pane, &env), code, "{way}");
    }
}

#[test]
fn f_v09_top_ends_with_its_terminal() {
    let env = with_tmux();
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    let _ann = session(&env, "ann");
    starts(&tmux, &pane, &env);
    let process = pid(&env);
    assert!(Stat::runs(process));
    tmux.run(&["kill-pane", "-t", &pane]);
    poll(SOON, "it ends", || (!Stat::runs(process)).then_some(()));
}

/// Nobody but a terminal's own end tells: its signal is ignored.
#[test]
fn f_v09_top_ends_with_a_terminal_that_sends_no_signal() {
    let env = with_tmux();
    let _ann = session(&env, "ann");
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    let dir = env.dir().display();
    let line = format!("trap '' HUP; sh -c 'echo $$ >{dir}/pid; exec tenure top'");
    tmux.types(&pane, &line);
    tmux.shows(&pane, READY);
    let process = pid(&env);
    tmux.run(&["kill-pane", "-t", &pane]);
    poll(SOON, "it ends", || (!Stat::runs(process)).then_some(()));
}

#[test]
fn f_v09_q_works_while_the_store_hangs() {
    let env = with_tmux();
    let _ann = session(&env, "ann");
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    // A process that reads the store waits while another holds it.
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is ours");
    let take =
        "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; UPDATE sessions SET seen_at = seen_at";
    store.execute_batch(take).expect("nobody else has it");
    tmux.types(&pane, "tenure top; echo code $?");
    tmux.shows(&pane, "reading the store");
    tmux.presses(&pane, "q");
    let screen = tmux.shows(&pane, "\ncode 0");
    assert!(!screen.contains("reading the store"), "{screen}");
    drop(store);
}

#[test]
fn f_v10_a_stopped_top_comes_back_on_a_whole_screen() {
    let env = with_tmux();
    let ann = session(&env, "ann");
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    let name = handle(&ann);
    let dir = env.dir().display();
    tmux.types(
        &pane,
        &format!("sh -c 'echo $$ >{dir}/pid; exec tenure top'"),
    );
    tmux.shows(&pane, READY);
    // As a person stops it: the shell has its terminal again.
    tmux.presses(&pane, "C-z");
    tmux.shows(&pane, "Stopped");
    assert_eq!(tmux.ask(&pane, "#{alternate_on} #{cursor_flag}"), "0 1");
    tmux.types(&pane, "echo between");
    tmux.shows(&pane, "\nbetween");
    // In the background it stops again, and draws nothing on another job's screen.
    tmux.types(&pane, "bg; echo continued");
    tmux.shows(&pane, "\ncontinued");
    poll(SOON, "it stops again", || {
        (Stat::read(pid(&env))?.state == 'T').then_some(())
    });
    assert_eq!(tmux.ask(&pane, "#{alternate_on} #{cursor_flag}"), "0 1");
    tmux.types(&pane, "fg");
    tmux.shows(&pane, READY);
    tmux.shows(&pane, &name);
    // As another process stops it, and the shell that then has the terminal.
    signals(&env, "STOP", pid(&env));
    tmux.shows(&pane, "Stopped");
    tmux.types(&pane, "fg");
    tmux.shows(&pane, READY);
    let screen = tmux.shows(&pane, &name);
    assert!(
        screen.contains(&name) && !screen.contains("Stopped"),
        "{screen}"
    );
    tmux.presses(&pane, "q");
    tmux.types(&pane, "echo ended $?");
    tmux.shows(&pane, "\nended 0");
}

/// Ten sessions: one waits for a person, one died with work, two are in one conversation, one waits for what another
/// holds.
struct Ten {
    env: Env,
    all: Vec<Agent>,
    dead: String,
    waiter: tenure_testkit::Background,
}

fn ten() -> Ten {
    let env = with_tmux();
    let mut all: Vec<Agent> = Vec::new();
    let mut join = |conversation: &str| {
        let agent = env.agent("claude");
        register(&agent, "claude", &format!("--native-id {conversation}"));
        all.push(agent);
    };
    for number in 0..7 {
        join(&format!("c-{number}"));
    }
    join("c-0");
    let dead = all.pop().map(|twin| {
        all.push(twin);
        let gone = env.agent("codex");
        register(&gone, "codex", "--native-id gone");
        take(&gone, "issue:acme/web#7");
        let name = handle(&gone);
        gone.kill9();
        name
    });
    let asks = env.agent("claude");
    event(&asks, "SessionStart", &json!({"source": "startup"}));
    event(&asks, "UserPromptSubmit", &json!({"prompt": "clean up"}));
    let wanted = json!({"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}});
    event(&asks, "PermissionRequest", &wanted);
    all.push(asks);
    take(&all[1], "issue:acme/web#42");
    let waiter =
        all[2].start(Cmd::new("tenure").args(["claim", "issue:acme/web#42", "--wait", "5m"]));
    poll(SOON, "it waits", || {
        let listed = env.tenure(&["ps", "--json"]).ok().json();
        let sessions = listed["sessions"].as_array().expect("a list").clone();
        let waits = |one: &Value| {
            one["waits_for"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
        };
        (sessions.len() == 10 && sessions.iter().any(waits)).then_some(())
    });
    Ten {
        env,
        all,
        dead: dead.expect("there are some"),
        waiter,
    }
}

#[test]
fn the_first_screen_of_ten_answers_the_four_questions_without_a_key() {
    let Ten {
        env,
        all,
        dead,
        waiter,
    } = ten();
    let names: Vec<String> = all.iter().map(handle).collect();
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    sized(&tmux, &pane, 80, 24);
    tmux.types(&pane, "tenure top");
    let screen = tmux.shows(&pane, "CLAIM");
    let row = |words: &[&str]| {
        let fits = |line: &&str| words.iter().all(|word| line.contains(word));
        assert!(
            screen.lines().any(|line| fits(&line)),
            "{words:?}\n{screen}"
        );
    };
    assert_eq!(screen.lines().count(), 24, "{screen}");
    let first = screen.lines().nth(2).expect("a row");
    assert!(
        first.contains(&names[8]) && first.contains("asks: "),
        "{screen}"
    );
    assert!(first.contains("rm -rf build"), "{screen}");
    row(&[&dead, "cut off"]);
    row(&[&format!("{dead} was cut off; run `tenure resume {dead}`")]);
    row(&["issue:acme/web#42", &names[1], &names[2]]);
    row(&[&names[0], &format!("twin of {}", names[7])]);
    row(&[&names[7], &format!("twin of {}", names[0])]);
    names.iter().for_each(|name| row(&[name]));
    tmux.presses(&pane, "q");
    drop((all, waiter));
}

#[test]
fn it_fits_every_terminal_and_follows_one_that_changes() {
    let env = with_tmux();
    let ann = session(&env, "ann");
    let title = "A title that is much longer than any narrow terminal could ever show on one line";
    let name = handle(&ann);
    ann.tenure(&["rename", &name, title]).ok();
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    sized(&tmux, &pane, 60, 24);
    tmux.types(&pane, "tenure top; echo code $?");
    tmux.shows(&pane, &name);
    let one_row = |screen: &str| {
        let rows = screen.lines().filter(|line| line.contains(&name));
        assert_eq!(rows.count(), 1, "{screen}");
    };
    one_row(&tmux.shown(&pane));
    for (columns, shows) in [(200, title), (80, "A title"), (60, "HANDLE")] {
        sized(&tmux, &pane, columns, 24);
        one_row(&tmux.shows(&pane, shows));
    }
    assert!(!tmux.shown(&pane).contains("AGE"), "{}", tmux.shown(&pane));
    // As small as a terminal can be; then it is as it was.
    sized(&tmux, &pane, 1, 1);
    run(&ann, 0, "claim wp:1");
    sized(&tmux, &pane, 80, 24);
    tmux.shows(&pane, "wp:1");
    one_row(tmux.shown(&pane).split_once("CLAIM").expect("claims").0);
    tmux.presses(&pane, "q");
    tmux.shows(&pane, "\ncode 0");
}

#[test]
fn it_follows_changes_and_acts_on_the_chosen_session() {
    let env = with_tmux();
    let ann = session(&env, "ann");
    let name = handle(&ann);
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    tmux.types(&pane, "tenure top; echo code $?");
    tmux.shows(&pane, READY);
    take(&ann, "wp:1");
    tmux.shows(&pane, "wp:1");
    tmux.presses(&pane, "Enter");
    tmux.shows(&pane, "claim.granted");
    tmux.presses(&pane, "Escape");
    tmux.presses(&pane, "t");
    tmux.shows(&pane, &format!("tell {name}: _"));
    tmux.types(&pane, "rebase first");
    tmux.shows(&pane, &format!("delivered: {name} will see it"));
    let told = run(&ann, 0, "whoami")["notices"][0]["message"].clone();
    assert!(
        told.as_str()
            .is_some_and(|text| text.contains("rebase first")),
        "{told}"
    );
    ann.kill9();
    tmux.shows(&pane, &format!("{name} was cut off"));
    tmux.presses(&pane, "d");
    tmux.shows(&pane, "y/n");
    tmux.presses(&pane, "y");
    poll(SOON, "its row is gone", || {
        (!tmux.shown(&pane).contains("wp:1")).then_some(())
    });
    tmux.presses(&pane, "q");
    tmux.shows(&pane, "\ncode 0");
}

#[test]
fn without_a_terminal_it_names_the_list_and_as_json_it_is_the_list() {
    let env = crate::env();
    let ann = session(&env, "ann");
    let refused = env.tenure(&["top"]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stderr.contains("run `tenure ps`"), "{refused}");
    let listed = run(&ann, 0, "top");
    assert_eq!(listed["sessions"][0]["handle"], handle(&ann).as_str());
}

#[test]
fn a_status_line_counts_what_sessions_do() {
    let env = crate::env();
    let line = |program: &str| env.tenure(&["statusline", program]).ok().stdout;
    assert_eq!(line("plain"), "");
    let asks = env.agent("claude");
    event(&asks, "SessionStart", &json!({"source": "startup"}));
    let _ann = session(&env, "ann");
    assert_eq!(line("plain").trim_end(), "1 live, 1 idle");
    assert_eq!(line("tmux"), line("plain"));
    event(&asks, "UserPromptSubmit", &json!({"prompt": "x"}));
    let wanted = json!({"tool_name": "Bash", "tool_input": {"command": "make"}});
    event(&asks, "PermissionRequest", &wanted);
    assert_eq!(line("starship").trim_end(), "1 asks, 1 live");
    assert_eq!(line("tmux").trim_end(), "#[bold]1 asks, 1 live#[nobold]");
    let object = env.tenure(&["statusline", "plain", "--json"]).ok().json();
    assert_eq!(object["statusline"], "1 asks, 1 live");
}

#[test]
fn a_list_is_filtered_by_state_agent_and_repository() {
    let env = crate::env();
    let (ann, bob) = (session(&env, "claude"), session(&env, "codex"));
    let web = env.dir().join("web");
    tenure_testkit::scratch_git(&web, Some("https://github.com/acme/web"));
    let eve = env.agent("codex");
    register(&eve, "codex", &format!("--dir {}", web.display()));
    event(&ann, "SessionStart", &json!({"source": "startup"}));
    let list = |words: &[&str]| {
        let said = env.tenure(&[&["ps", "-q"], words].concat()).ok().stdout;
        said.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let [ann, bob, eve] = [&ann, &bob, &eve].map(handle);
    assert_eq!(list(&["--state", "idle"]), [ann]);
    assert_eq!(list(&["--agent", "codex"]), [eve.clone(), bob]);
    let in_web = list(&["--repo", "acme/web"]);
    assert_eq!(in_web, std::slice::from_ref(&eve));
    assert_eq!(
        list(&["--state", "idle,live", "--agent", "codex", "--limit", "1"]),
        [eve]
    );
    let none = env.tenure(&["ps", "--state", "asks"]).ok();
    assert_eq!(none.stdout.trim(), "no session matches");
    let object = env
        .tenure(&["ps", "--agent", "codex", "--limit", "1", "--json"])
        .ok()
        .json();
    assert_eq!(object["more"], 1);
    assert_eq!(env.tenure(&["ps", "--state", "tired"]).code, 2);
}

#[test]
fn goto_without_a_name_goes_to_the_one_that_waits() {
    let mut env = crate::env();
    let said = env.dir().join("said");
    let script = env.dir().join("focus");
    std::fs::write(
        &script,
        format!("#!/bin/sh\necho \"$@\" >{}\n", said.display()),
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    env.set(
        "TENURE_GOTO_COMMAND",
        format!("{} {{handle}}", script.display()),
    );
    let none = env.tenure(&["goto", "--json"]);
    assert_eq!(
        (none.code, &none.json()["error"]["kind"]),
        (1, &json!("none_waits"))
    );
    let asks: Vec<Agent> = (0..2).map(|_| env.agent_at_terminal("claude")).collect();
    for agent in &asks {
        event(agent, "SessionStart", &json!({"source": "startup"}));
        event(agent, "UserPromptSubmit", &json!({"prompt": "x"}));
        let wanted = json!({"tool_name": "Bash", "tool_input": {"command": "make"}});
        event(agent, "PermissionRequest", &wanted);
    }
    env.tenure(&["goto"]).ok();
    let shown = std::fs::read_to_string(&said).expect("it was run");
    assert_eq!(shown.trim(), handle(&asks[0]));
}

#[test]
fn it_frees_and_gives_items_and_shows_their_history() {
    let env = with_tmux();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let (name, other) = (handle(&ann), handle(&bob));
    take(&ann, "wp:1");
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    sized(&tmux, &pane, 100, 24);
    tmux.types(&pane, "tenure top; echo code $?");
    tmux.shows(&pane, &name);
    // The row of the holder, by the mouse.
    let screen = tmux.shown(&pane);
    let row = screen.lines().position(|line| line.contains(&name));
    let row = row.expect("a row") + 1;
    let click = format!("\u{1b}[<0;5;{row}M");
    let bytes: Vec<String> = click.bytes().map(|byte| format!("{byte:02x}")).collect();
    let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
    tmux.run(&[&["send-keys", "-t", &pane, "-H"], &bytes[..]].concat());
    tmux.shows(&pane, &format!("> {name}"));
    tmux.presses(&pane, "G");
    tmux.shows(&pane, "wp:1_");
    tmux.presses(&pane, "Enter");
    tmux.shows(&pane, "to whom");
    tmux.presses(&pane, "Down");
    tmux.shows(&pane, &format!("{other}_"));
    tmux.presses(&pane, "Enter");
    tmux.shows(&pane, "a reason");
    tmux.types(&pane, "knows more");
    tmux.shows(&pane, &format!("{other} has wp:1"));
    run(&bob, 0, "guard wp:1");
    tmux.types(&pane, &format!("/{other}"));
    tmux.shows(&pane, &format!("> {other}"));
    tmux.presses(&pane, "h");
    tmux.shows(&pane, "history of wp:1");
    tmux.shows(&pane, &format!("handed to {other}"));
    tmux.presses(&pane, "Escape");
    tmux.presses(&pane, "f");
    tmux.shows(&pane, "wp:1_");
    tmux.presses(&pane, "Enter");
    tmux.types(&pane, "stuck");
    tmux.shows(&pane, "wp:1 is free");
    let log = crate::support::line::events(&ann, "wp:1");
    let released = log.iter().find(|event| event["kind"] == "claim.released");
    assert_eq!(released.expect("an event")["reason"], "stuck");
    tmux.presses(&pane, "q");
    tmux.shows(&pane, "\ncode 0");
}

#[test]
fn it_starts_a_run_that_goes_on_by_itself() {
    let env = with_tmux();
    Scripted::new(&env, "mine", "init; done_");
    let web = env.dir().join("web");
    tenure_testkit::scratch_git(&web, None);
    let ann = env.agent("ann");
    register(&ann, "ann", &format!("--dir {}", web.display()));
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    tmux.types(&pane, "tenure top; echo code $?");
    tmux.shows(&pane, &handle(&ann));
    tmux.presses(&pane, "n");
    tmux.types(&pane, "mine");
    tmux.shows(&pane, "an item");
    tmux.types(&pane, "wp:9");
    tmux.shows(&pane, "in a worktree");
    tmux.types(&pane, "do it");
    let said = poll(SOON, "it says what became of it", || {
        let screen = tmux.shown(&pane);
        let said = screen.trim_end().lines().last()?.to_owned();
        (!said.contains('…') && !said.contains("do it_")).then_some(said)
    });
    assert!(said.contains("mine works on wp:9"), "{said}");
    tmux.presses(&pane, "q");
    tmux.shows(&pane, "\ncode 0");
    poll(SOON, "the run ends", || {
        let runs = env.tenure(&["runs", "--json"]).ok().json();
        (runs["runs"][0]["outcome"] == "done").then_some(())
    });
}

/// A program and what it calls, with the files behind its descriptors.
fn traced(program: &str, out: &std::path::Path) -> String {
    let strace = std::env::var("TENURE_STRACE").unwrap_or_default();
    let strace = if strace.is_empty() { "strace" } else { &strace };
    format!("{strace} -f -y -o {} {program}", out.display())
}

#[test]
#[ignore = "needs strace: scripts/test --stage counts"]
fn nothing_is_read_while_nothing_changes_and_a_change_costs_three_lists_at_most() {
    let env = with_tmux();
    let agents: Vec<Agent> = (0..10).map(|_| session(&env, "ann")).collect();
    take(&agents[0], "wp:1");
    let tmux = Tmux::start(&env, "s");
    let pane = tmux.window();
    sized(&tmux, &pane, 100, 30);
    let (once, live) = (env.dir().join("once"), env.dir().join("live"));
    let calls = |file: &std::path::Path, word: &str| {
        let text = std::fs::read_to_string(file).expect("strace is needed for this test");
        text.lines().filter(|line| line.contains(word)).count()
    };
    tmux.types(
        &pane,
        &format!(
            "{} >/dev/null; echo listed",
            traced("tenure ps --json", &once)
        ),
    );
    tmux.shows(&pane, "\nlisted");
    let list = calls(&once, "");
    tmux.types(&pane, &traced("tenure top", &live));
    tmux.shows(&pane, "wp:1");
    // Ages are drawn again, and the store is left alone.
    let age = || {
        let screen = tmux.shown(&pane);
        let line = screen.lines().find(|line| line.contains("wp:1"));
        line.unwrap_or_default().to_owned()
    };
    let changes = |from: String| {
        poll(SOON, "an age is drawn again", || {
            let now = age();
            (now != from).then_some(now)
        })
    };
    let first = changes(changes(age()));
    let before = calls(&live, "tenure.db");
    assert!(before > 0, "the trace names the store");
    changes(changes(first));
    assert_eq!(calls(&live, "tenure.db"), before, "nothing changed");
    let before = calls(&live, "");
    for (number, agent) in agents.iter().enumerate().take(5).skip(2) {
        let key = format!("wp:{number}");
        take(agent, &key);
        tmux.shows(&pane, &key);
    }
    let cost = (calls(&live, "") - before) / 3;
    assert!(
        cost <= 3 * list,
        "{cost} system calls per change; a list has {list}"
    );
    tmux.presses(&pane, "q");
    tmux.shows(&pane, "ready>");
}

//! Agents side by side: one that conflicts with another is told or stopped, and the model sees why; people see who
//! runs, who waits for them and what can be taken up again.

use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::poll;
use tenure_testkit::real::{BackgroundTurn, Real, RealWorld};
use tenure_testkit::{Cmd, add_worktree};

use crate::state::{
    LONG, Left, assert_process, handle, hooked, in_conversation, of_process, only, other, sessions,
};

const KEY: &str = "issue:team/project#42";
const RESERVED: &str = "path:team/project:src/**";

both! {
    the_second_writer_of_a_file_is_warned
    the_second_writer_of_a_file_is_blocked_where_the_user_asked_for_it
    nothing_is_said_of_a_second_writer_where_the_user_only_observes
    a_stash_under_anothers_feet_is_warned_of
    a_stash_under_anothers_feet_is_blocked_where_the_user_asked_for_it
    a_reserved_path_is_warned_of
    a_reserved_path_is_blocked_where_the_user_asked_for_it
    a_required_claim_is_asked_for_before_a_file_is_written
    a_commit_after_the_claim_was_lost_is_refused
    an_agent_that_was_there_before_tenure_is_seen_and_adopted
    who_asks_for_a_permission_is_shown_as_waiting
    what_died_is_named_with_its_command_and_goes_on
    an_agent_goes_on_when_tenure_is_removed_under_it
}

/// A world in which this agent calls tenure in this mode.
#[track_caller]
fn guarded(kind: Real, mode: &str) -> RealWorld {
    let world = crate::world();
    world.agent(kind);
    let _installed = world.tenure(&["install", kind.name(), "--mode", mode]).ok();
    world
}

/// The step in which Claude writes a file.
fn write(file: &Path, content: &str) -> String {
    let input = json!({"file_path": file, "content": content});
    format!("MOCK:tool Write {input}")
}

/// The step in which Claude reads a file, without which it does not write one that is there.
fn read(file: &Path) -> String {
    format!("MOCK:tool Read {}", json!({"file_path": file}))
}

fn text(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

/// An agent that did this and is still at work, and its session.
#[track_caller]
fn at_work(world: &RealWorld, kind: Real, steps: &str) -> (BackgroundTurn, Value) {
    let done = Left::new(world, "done");
    let prompt = format!("{steps}\nMOCK:bash {}\nMOCK:hold here", done.by("true"));
    let running = world.agent(kind).fresh(&prompt).start();
    done.text();
    let session = of_process(world, running.agent_pid());
    (running, session)
}

/// Lets the first go on, which nothing kept from its end.
#[track_caller]
fn finish(world: &RealWorld, running: BackgroundTurn) {
    world.mock().release("here");
    running.wait().ok();
}

/// One agent writes a file and lives; the next reads it and writes it.
fn second_writer(world: &RealWorld, kind: Real) -> (String, String) {
    let file = world.project().join("notes.txt");
    let (first, session) = at_work(world, kind, &write(&file, "first"));
    assert_eq!(text(&file).as_deref(), Some("first"));
    let told = format!(
        "{} (in {}) wrote {}",
        handle(&session),
        world.project().display(),
        file.display()
    );
    assert!(!world.mock().was_told(&told), "nobody else wrote it yet");
    let steps = format!("{}\n{}", read(&file), write(&file, "second"));
    world.agent(kind).fresh(&steps).run().ok();
    finish(world, first);
    (told, text(&file).unwrap())
}

fn the_second_writer_of_a_file_is_warned(kind: Real) {
    let world = hooked(kind);
    let (told, left) = second_writer(&world, kind);
    assert!(world.mock().was_told(&told), "{told}");
    assert_eq!(left, "second", "nobody asked for a block");
}

fn the_second_writer_of_a_file_is_blocked_where_the_user_asked_for_it(kind: Real) {
    let world = guarded(kind, "block");
    let (told, left) = second_writer(&world, kind);
    assert!(world.mock().was_told(&told), "{told}");
    assert_eq!(left, "first");
}

fn nothing_is_said_of_a_second_writer_where_the_user_only_observes(kind: Real) {
    let world = guarded(kind, "observe");
    let (told, left) = second_writer(&world, kind);
    assert!(!world.mock().was_told(&told), "{told}");
    assert_eq!(left, "second");
    let log = world.tenure(&["log", "--json"]).ok();
    assert!(log.stdout.contains("second_writer"), "{log}");
}

/// One agent lives; the next stashes what lies in the worktree of both. What was said, and whether the file
/// is still there.
fn stash(world: &RealWorld, first: Real, second: Real) -> (String, bool) {
    let file = world.project().join("notes.txt");
    std::fs::write(&file, "of the first").unwrap();
    let (running, session) = at_work(world, first, "");
    let prompt = "MOCK:bash git stash --include-untracked";
    world.agent(second).fresh(prompt).run().ok();
    finish(world, running);
    let told = format!("`git stash` changes files that {}", handle(&session));
    (told, file.exists())
}

fn a_stash_under_anothers_feet_is_warned_of(kind: Real) {
    let world = hooked(kind);
    let (told, is_left) = stash(&world, kind, kind);
    assert!(world.mock().was_told(&told), "{told}");
    assert!(!is_left, "nobody asked for a block");
}

fn a_stash_under_anothers_feet_is_blocked_where_the_user_asked_for_it(kind: Real) {
    let world = guarded(kind, "block");
    let (told, is_left) = stash(&world, kind, kind);
    assert!(world.mock().was_told(&told), "{told}");
    assert!(is_left);
}

/// One agent reserved a folder; the next writes into it. What was said, and the file.
fn reserved(world: &RealWorld, kind: Real) -> (String, Option<String>) {
    let claim = format!("MOCK:bash tenure claim '{RESERVED}'");
    let (first, session) = at_work(world, kind, &claim);
    assert_eq!(session["claims"][0]["key"], RESERVED, "{session:#}");
    let file = world.project().join("src/db.rs");
    world.agent(kind).fresh(&write(&file, "second")).run().ok();
    finish(world, first);
    let told = format!(
        "{} is reserved by {} ({RESERVED})",
        file.display(),
        handle(&session)
    );
    (told, text(&file))
}

fn a_reserved_path_is_warned_of(kind: Real) {
    let world = hooked(kind);
    let (told, left) = reserved(&world, kind);
    assert!(world.mock().was_told(&told), "{told}");
    assert_eq!(left.as_deref(), Some("second"), "nobody asked for a block");
}

fn a_reserved_path_is_blocked_where_the_user_asked_for_it(kind: Real) {
    let world = guarded(kind, "block");
    let (told, left) = reserved(&world, kind);
    assert!(world.mock().was_told(&told), "{told}");
    assert_eq!(left, None);
}

/// The user wants files to be written under a claim only.
fn require_claim(world: &RealWorld) {
    let config = world.home().join(".config/tenure/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[guard]\nrequire_claim = \"issue:*\"\n").unwrap();
}

fn a_required_claim_is_asked_for_before_a_file_is_written(kind: Real) {
    let world = hooked(kind);
    require_claim(&world);
    let (without, with) = (
        world.project().join("without.txt"),
        world.project().join("with.txt"),
    );
    let prompt = format!(
        "{}\nMOCK:bash tenure claim '{KEY}'\n{}",
        write(&without, "x"),
        write(&with, "x")
    );
    world.agent(kind).fresh(&prompt).run().ok();
    let told = "this session holds none that matches issue:*";
    assert!(world.mock().was_told(told));
    assert_eq!(text(&without), None);
    assert_eq!(text(&with).as_deref(), Some("x"));
}

fn a_commit_after_the_claim_was_lost_is_refused(kind: Real) {
    let world = hooked(kind);
    let project = world.project();
    let dir = project.to_str().unwrap();
    let _installed = world.tenure(&["install", "git", "--project", dir]).ok();
    let commit = |name: &str| format!("MOCK:bash git commit --allow-empty -m {name}");
    let (done, log) = (Left::new(&world, "done"), Left::new(&world, "log"));
    let prompt = [
        format!("MOCK:bash tenure claim '{KEY}'"),
        commit("before"),
        format!("MOCK:bash {}", done.by("true")),
        "MOCK:hold here".to_owned(),
        commit("after"),
        format!("MOCK:bash {}", log.by("git log --format=%s")),
    ]
    .join("\n");
    let running = world.agent(kind).fresh(&prompt).start();
    done.text();
    let thief = other(&world);
    let _taken = thief
        .tenure(&["takeover", KEY, "--reason", "it is urgent"])
        .ok();
    finish(&world, running);
    let log = log.text();
    assert!(log.contains("before") && !log.contains("after"), "{log}");
    let told = format!("this session lost {KEY}");
    assert!(world.mock().was_told(&told), "{told}");
}

fn an_agent_that_was_there_before_tenure_is_seen_and_adopted(kind: Real) {
    let world = crate::world();
    let me = Left::new(&world, "me");
    let prompt = format!(
        "MOCK:hold here\nMOCK:bash {}",
        me.by("tenure whoami --json")
    );
    let running = world.agent(kind).fresh(&prompt).start();
    let (pid, id) = (running.agent_pid(), running.await_id());
    let _installed = world.tenure(&["install", kind.name()]).ok();
    let unmanaged = || {
        let seeing = [("TENURE_PS_UNMANAGED", Some("true"))];
        let shown = world.driver().tenure_env(&seeing, &["ps", "--json"]).ok();
        let shown = shown.json()["unmanaged"].as_array().unwrap().clone();
        shown.into_iter().find(|one| one["pid"] == pid)
    };
    let seen = unmanaged().unwrap();
    assert_eq!(seen["agent"], "claude", "{seen:#}");
    assert_eq!(seen["dir"], world.project().to_str().unwrap(), "{seen:#}");
    assert_eq!(seen["native_id"], id, "{seen:#}");
    assert_eq!(sessions(&world), Vec::<Value>::new());
    let _adopted = world.tenure(&["adopt", &pid.to_string()]).ok();
    let session = only(&world);
    assert_process(&session, pid);
    assert_eq!(session["native_id"], id, "{session:#}");
    assert_eq!(session["state"], "live", "{session:#}");
    assert_eq!(unmanaged(), None);
    finish(&world, running);
    assert_eq!(me.json()["session"]["id"], session["id"]);
}

fn who_asks_for_a_permission_is_shown_as_waiting(kind: Real) {
    let world = hooked(kind);
    let ask = json!({"permissions": {"ask": ["Bash"]}}).to_string();
    let screen =
        world
            .agent(kind)
            .at_terminal(&["--permission-mode", "default", "--settings", &ask]);
    let doing = || of_process(&world, screen.pid())["activity"].clone();
    assert_eq!(doing(), "idle");
    screen.type_line("MOCK:bash touch asked");
    screen.until("it waits for a person", || {
        (doing() == "waiting").then_some(())
    });
    let asked = world.project().join("asked");
    assert!(!asked.exists(), "it asked first");
    screen.await_text("Do you want to proceed?");
    screen.press_until("\r", "it was answered", || asked.exists().then_some(()));
    screen.await_text("MOCK-TOOL-DONE");
    screen.until("it is done", || (doing() == "idle").then_some(()));
    assert!(asked.exists());
}

fn what_died_is_named_with_its_command_and_goes_on(kind: Real) {
    let world = hooked(kind);
    let agent = world.agent(kind);
    let project = world.project();
    let aside = world.scratch().join("it's aside");
    add_worktree(&project, &aside, "aside");
    agent.fresh("hello").run().ok();
    let living = agent.fresh("MOCK:hold here").start();
    of_process(&world, living.agent_pid());
    let dirs = [&project, &project, &aside];
    let running = dirs.map(|dir| {
        let prompt = "MOCK:bash echo remember-$((40+2))\nMOCK:hold never";
        agent.fresh(prompt).dir(dir).start()
    });
    let mut expected: Vec<Value> = running
        .iter()
        .zip(dirs)
        .map(|(running, dir)| {
            let id = running.await_id();
            let session = of_process(&world, running.agent_pid());
            json!([session["handle"], dir, ["claude", "--resume", id]])
        })
        .collect();
    // What the model was told is not yet what a resume reads.
    for session in &expected {
        let words = ["transcript", "show", session[0].as_str().unwrap(), "--json"];
        let shown = world.tenure(&words).ok().json();
        let path = shown["transcript"]["path"].as_str().unwrap().to_owned();
        poll(LONG, "its transcript has the answer", || {
            text(Path::new(&path))?
                .contains("remember-42")
                .then_some(())
        });
    }
    for running in &running {
        running.kill9();
    }
    let shown = world.tenure(&["resume", "--all", "--print", "--json"]).ok();
    let shown = shown.json()["resume"].as_array().unwrap().clone();
    let mut named: Vec<Value> = shown
        .iter()
        .map(|one| json!([one["session"]["handle"], one["dir"], one["argv"]]))
        .collect();
    named.sort_by_key(Value::to_string);
    expected.sort_by_key(Value::to_string);
    assert_eq!(named, expected);
    let lines = world.tenure(&["resume", "--all", "--print"]).ok().stdout;
    let one = shown
        .iter()
        .find(|one| one["dir"] == aside.to_str().unwrap())
        .unwrap();
    let command = one["command"].as_str().unwrap();
    assert!(lines.contains(command), "{lines}");
    let session = &one["session"];
    let before = world.mock().asked().len();
    let line = format!("{command} -p 'go on, please'");
    let _said = world.driver().run(Cmd::shell(&line)).ok();
    let asked = world.mock().asked();
    let goes_on = asked[before..]
        .iter()
        .any(|asked| asked.says("go on, please") && asked.says("remember-42"));
    assert!(goes_on, "the conversation is another");
    let again = in_conversation(&world, session["native_id"].as_str().unwrap());
    assert_eq!(again["id"], session["id"]);
    assert_eq!(again["process"]["life"], 2);
    finish(&world, living);
}

fn an_agent_goes_on_when_tenure_is_removed_under_it(kind: Real) {
    let dir = format!("removed-{}", std::process::id());
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(dir);
    std::fs::create_dir_all(&dir).unwrap();
    let tenure = dir.join("tenure");
    std::fs::copy(env!("CARGO_BIN_EXE_tenure"), &tenure).unwrap();
    let world = RealWorld::begin(&tenure);
    let agent = world.agent(kind);
    let _installed = world
        .tenure(&["install", kind.name(), "--mode", "block"])
        .ok();
    let file = world.project().join("notes.txt");
    let (done, later) = (Left::new(&world, "done"), Left::new(&world, "later"));
    let prompt = [
        format!("MOCK:bash {}", done.by("tenure whoami --json")),
        "MOCK:hold here".to_owned(),
        write(&file, "written"),
        format!("MOCK:bash {}", later.by("echo run")),
    ]
    .join("\n");
    let running = agent.fresh(&prompt).start();
    assert_eq!(done.json()["session"]["state"], "live");
    std::fs::remove_dir_all(&dir).unwrap();
    finish(&world, running);
    assert_eq!(text(&file).as_deref(), Some("written"));
    assert_eq!(later.text(), "run\n");
    assert!(!world.mock().was_told("hook error"));
    agent.fresh("hello").run().ok();
}

/// The same between two kinds of agents, whichever is the first.
mod of_two_kinds {
    use serde_json::json;
    use tenure_testkit::real::{Real, RealWorld};
    use tenure_testkit::{ModelApi, RecordedRequest};

    use crate::state::{assert_process, handle, hooked, only};

    use super::{
        KEY, RESERVED, a_commit_after_the_claim_was_lost_is_refused, at_work, finish, read,
        require_claim, stash, text, write,
    };

    /// A world in which both call tenure, in this mode.
    #[track_caller]
    fn both(mode: &str) -> RealWorld {
        let world = crate::world();
        for kind in [Real::Claude, Real::Codex] {
            world.agent(kind);
            let _installed = world.tenure(&["install", kind.name(), "--mode", mode]).ok();
        }
        world
    }

    /// The step in which Codex writes the only line of a file, anew where it is there. It takes such a command
    /// for a patch and applies it itself.
    fn patch(from: &str, to: &str) -> String {
        match from {
            "" => added("notes.txt", to),
            from => applied(&format!("*** Update File: notes.txt\n@@\n-{from}\n+{to}")),
        }
    }

    /// The same for a file that is not there yet.
    fn added(file: &str, line: &str) -> String {
        applied(&format!("*** Add File: {file}\n+{line}"))
    }

    fn applied(lines: &str) -> String {
        let line = format!("apply_patch <<'EOF'\n*** Begin Patch\n{lines}\n*** End Patch\nEOF\n");
        format!("MOCK:tool exec_command {}", json!({"cmd": line}))
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn codex_is_warned_of_a_stash_under_claudes_feet() {
        let world = both("warn");
        let (told, is_left) = stash(&world, Real::Claude, Real::Codex);
        assert!(world.mock().was_told(&told), "{told}");
        assert!(!is_left, "nobody asked for a block");
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn codex_is_kept_from_a_stash_under_claudes_feet() {
        let world = both("block");
        let (told, is_left) = stash(&world, Real::Claude, Real::Codex);
        assert!(world.mock().was_told(&told), "{told}");
        assert!(is_left);
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn claude_is_kept_from_a_stash_under_codexs_feet() {
        let world = both("block");
        let (told, is_left) = stash(&world, Real::Codex, Real::Claude);
        assert!(world.mock().was_told(&told), "{told}");
        assert!(is_left);
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn claude_is_kept_from_a_file_that_codex_writes() {
        let world = both("block");
        let file = world.project().join("notes.txt");
        let (first, session) = at_work(&world, Real::Codex, &patch("", "first"));
        assert_eq!(text(&file).as_deref(), Some("first\n"));
        let steps = format!("{}\n{}", read(&file), write(&file, "second"));
        world.agent(Real::Claude).fresh(&steps).run().ok();
        finish(&world, first);
        assert!(world.mock().was_told(&format!("{} (in", handle(&session))));
        assert_eq!(text(&file).as_deref(), Some("first\n"));
    }

    /// Claude writes a file and lives; Codex writes it too. What is left of it.
    fn codex_is_second(world: &RealWorld) -> String {
        let file = world.project().join("notes.txt");
        let (first, session) = at_work(world, Real::Claude, &write(&file, "first\n"));
        let turn = world.agent(Real::Codex).fresh(&patch("first", "second"));
        turn.run().ok();
        finish(world, first);
        let told = format!("{} (in", handle(&session));
        let is_told =
            |asked: &RecordedRequest| asked.api == ModelApi::Responses && asked.says(&told);
        assert!(world.mock().asked().iter().any(is_told), "{told}");
        text(&file).unwrap()
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn codex_is_warned_of_a_file_that_claude_writes() {
        assert_eq!(codex_is_second(&both("warn")), "second\n");
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn codex_is_kept_from_a_file_that_claude_writes() {
        assert_eq!(codex_is_second(&both("block")), "first\n");
    }

    /// Claude reserved a folder; Codex adds a file to it. Whether it is there.
    fn codex_is_in_a_reserved_folder(world: &RealWorld) -> bool {
        let claim = format!("MOCK:bash tenure claim '{RESERVED}'");
        let (first, session) = at_work(world, Real::Claude, &claim);
        let turn = world.agent(Real::Codex).fresh(&added("src/db.rs", "x"));
        turn.run().ok();
        finish(world, first);
        let told = format!("is reserved by {} ({RESERVED})", handle(&session));
        let is_told =
            |asked: &RecordedRequest| asked.api == ModelApi::Responses && asked.says(&told);
        assert!(world.mock().asked().iter().any(is_told), "{told}");
        world.project().join("src/db.rs").exists()
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn codex_is_warned_of_a_path_that_claude_reserved() {
        assert!(codex_is_in_a_reserved_folder(&both("warn")));
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn codex_is_kept_from_a_path_that_claude_reserved() {
        assert!(!codex_is_in_a_reserved_folder(&both("block")));
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn codex_needs_a_required_claim_before_it_writes() {
        let world = hooked(Real::Codex);
        require_claim(&world);
        let prompt = format!(
            "{}\nMOCK:bash tenure claim '{KEY}'\n{}",
            added("without.txt", "x"),
            added("with.txt", "x")
        );
        world.agent(Real::Codex).fresh(&prompt).run().ok();
        let told = "this session holds none that matches issue:*";
        assert!(world.mock().was_told(told));
        assert_eq!(text(&world.project().join("without.txt")), None);
        assert!(world.project().join("with.txt").exists());
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn codex_commits_nothing_after_its_claim_was_lost() {
        a_commit_after_the_claim_was_lost_is_refused(Real::Codex);
    }

    #[test]
    #[ignore = "runs a real agent"]
    fn codex_that_was_there_before_tenure_is_seen_and_adopted() {
        let world = crate::world();
        let running = world.agent(Real::Codex).fresh("MOCK:hold here").start();
        let pid = running.agent_pid();
        let unmanaged = || {
            let seeing = [("TENURE_PS_UNMANAGED", Some("true"))];
            let shown = world.driver().tenure_env(&seeing, &["ps", "--json"]).ok();
            let shown = shown.json()["unmanaged"].as_array().unwrap().clone();
            shown.into_iter().find(|one| one["pid"] == pid)
        };
        assert_eq!(unmanaged().unwrap()["agent"], "codex");
        let _adopted = world.tenure(&["adopt", &pid.to_string()]).ok();
        assert_process(&only(&world), pid);
        assert_eq!(unmanaged(), None);
        finish(&world, running);
    }
}

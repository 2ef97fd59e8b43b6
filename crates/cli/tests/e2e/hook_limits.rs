//! What a hook may cost an agent: a bounded time, one process, few system calls, and never a wrong exit code,
//! whatever is on stdin and whatever state the store is in.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, Output, poll};

use crate::env;
use crate::support::answer::{PATIENCE, ask, text};
use crate::support::hook::{
    END_LIMIT, LIMIT, can_trace, captured, claude, only, send, sessions, within,
};

/// The shortest of three runs: what it takes by itself, not what the machine adds.
#[track_caller]
fn shortest(work: impl Fn() -> Output) -> Duration {
    let all = [(); 3].map(|()| {
        let began = Instant::now();
        work();
        began.elapsed()
    });
    all.into_iter().min().expect("there are three")
}

/// The store, opened by somebody else.
fn opened(env: &Env) -> Connection {
    Connection::open(env.state().join("tenure.db")).expect("the store is there")
}

/// Whether a hook's reason is the store. On a slow machine the watchdog answers before the store gives up.
fn names_store(said: &Output) -> bool {
    let reasons = ["which another process is using", "waiting for the store"];
    reasons.iter().any(|why| said.stderr.contains(why))
}

#[test]
fn f_h01_a_store_that_is_locked_delays_an_agent_by_its_limit_and_no_more() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    let holder = opened(&env);
    holder
        .execute_batch("BEGIN EXCLUSIVE")
        .expect("nobody else writes");
    // Its activity changes, so it must write.
    for event in ["PreToolUse.Bash", "SessionStart.clear", "PermissionRequest"] {
        let said = within(LIMIT, || claude(&env, &a, event, "a2"));
        assert!(names_store(&said), "{event}\n{said}");
    }
    let start = shortest(|| claude(&env, &a, "SessionStart.clear", "a3"));
    let end = shortest(|| claude(&env, &a, "SessionEnd.other", "a1"));
    assert!(end < END_LIMIT, "an end took {end:?}");
    assert!(start < LIMIT, "a start took {start:?}");
    assert!(start > end, "it waited {start:?}, not longer than an end");
    holder.execute_batch("ROLLBACK").expect("it was begun");
    assert_eq!(only(&env)["state"], "live", "nothing was recorded");
    claude(&env, &a, "PreToolUse.Bash", "a1");
    assert_eq!(only(&env)["activity"], "busy", "and nothing is left behind");
}

#[test]
fn f_h01_a_store_that_nobody_can_even_read_delays_an_agent_no_more() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    let holder = opened(&env);
    holder
        .execute_batch(
            "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE x (y); COMMIT",
        )
        .expect("nobody else has it open");
    for (event, limit) in [
        ("PreToolUse.Bash", LIMIT),
        ("SessionEnd.other", END_LIMIT),
        ("SessionStart.resume", LIMIT),
    ] {
        let said = within(limit, || claude(&env, &a, event, "a1"));
        assert!(said.stderr.contains("tenure: "), "{event}\n{said}");
    }
    drop(holder);
    assert_eq!(only(&env)["state"], "live");
}

#[test]
fn f_h01_a_store_that_somebody_makes_and_never_finishes_delays_an_agent_no_more() {
    let env = env();
    std::fs::create_dir(env.state()).expect("it is ours");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(env.state(), mode).expect("it is ours");
    let lock = File::create(env.state().join("tenure.db.init")).expect("it is ours");
    lock.lock().expect("nobody else has it");
    let a = env.agent("claude");
    let said = within(LIMIT, || claude(&env, &a, "SessionStart.startup", "a1"));
    assert!(names_store(&said), "{said}");
    drop(lock);
    claude(&env, &a, "PreToolUse.Bash", "a1");
    assert_eq!(only(&env)["native_id"], "a1");
}

/// A hook whose stdin is a pipe that nobody closes.
fn with_open_pipe(env: &Env, agent: &Agent, name: &str, bytes: &[u8]) -> Output {
    let path = env.dir().join(name).display().to_string();
    agent.run(Cmd::new("mkfifo").arg(&path)).ok();
    // Both ways: opening it then waits for nobody.
    let pipe = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .expect("it was just made");
    within(LIMIT, || {
        (&pipe).write_all(bytes).expect("a pipe has room for this");
        agent.run(Cmd::shell(&format!("tenure hook claude <{path}; exit $?")))
    })
}

#[test]
fn f_h03_a_pipe_that_never_closes_costs_a_second_and_what_came_counts() {
    let env = env();
    let a = env.agent("claude");
    let said = with_open_pipe(&env, &a, "silent", b"");
    assert_eq!(said.code, 0, "{said}");
    assert!(said.stderr.contains("the event is empty"), "{said}");
    assert_eq!(said.stdout, "");
    let event = captured(&env, "claude-2.1.325/UserPromptSubmit", "a1").to_string();
    let said = with_open_pipe(&env, &a, "open", event.as_bytes());
    assert_eq!(said.code, 0, "{said}");
    assert_eq!(said.stderr, "");
    assert_eq!(only(&env)["native_id"], "a1");
    assert_eq!(only(&env)["activity"], "busy");
}

#[test]
fn f_h03_what_is_no_event_is_said_and_costs_nothing() {
    let env = env();
    let a = env.agent("claude");
    for (what, said_of_it) in [
        ("", "the event is empty"),
        (" \n\t", "the event is empty"),
        ("nope", "the event is not valid JSON"),
        ("[1,2]", "the event is not a JSON object"),
        ("null", "the event is not a JSON object"),
        (
            "{\"hook_event_name\":7,\"session_id\":[]}",
            "hook_event_name is a number",
        ),
    ] {
        let said = a
            .run(Cmd::shell("tenure hook claude; exit $?").stdin(what))
            .ok();
        assert_eq!(said.stdout, "", "{what}");
        assert!(said.stderr.contains(said_of_it), "{what}\n{said}");
    }
    assert!(!env.state().exists(), "nothing was made for it");
}

#[test]
fn f_h03_of_fifty_megabytes_the_beginning_counts() {
    let env = env();
    let a = env.agent("claude");
    let event = captured(&env, "claude-2.1.325/PostToolUse.Bash", "a1").to_string();
    let mut whole = event.trim_end_matches('}').as_bytes().to_vec();
    whole.extend(b",\"more\":\"");
    whole.resize(50 << 20, b'x');
    whole.extend(b"\"}");
    let file = env.dir().join("large");
    std::fs::write(&file, whole).expect("it is ours");
    let line = format!("cat {} | tenure hook claude", file.display());
    let said = within(LIMIT, || a.run(Cmd::shell(&line)));
    assert_eq!(said.code, 0, "{said}");
    assert!(said.stderr.contains("not valid JSON"), "{said}");
    let me = only(&env);
    assert_eq!(
        (&me["native_id"], &me["activity"]),
        (&json!("a1"), &json!("busy"))
    );
}

#[test]
fn f_h06_only_a_wrong_command_line_is_not_0() {
    let env = env();
    let a = env.agent("claude");
    let event = captured(&env, "claude-2.1.325/PreToolUse.Bash", "a1").to_string();
    let hook = |line: &str| a.run(Cmd::shell(line).stdin(event.as_str()));
    for line in [
        "tenure hook",
        "tenure hook cloude",
        "tenure hook claude codex",
        "tenure hook claude --force",
        "tenure hook --mode loud claude",
        "tenure hook claude --mode",
        "tenure --session x hook",
        "tenure --session x hook cloude",
        "tenure --session=x hook claude codex",
        "tenure --wrong hook claude",
        "tenure --json hook '' ",
    ] {
        let said = hook(line).fails(64);
        assert_eq!(said.stdout, "", "{line}");
        assert!(said.stderr.contains("error: "), "{line}\n{said}");
        assert!(said.stderr.contains("hint: "), "{line}\n{said}");
    }
    assert_eq!(sessions(&env).len(), 0);
    for line in [
        "tenure hook claude",
        "tenure --json hook claude -q",
        "tenure hook --mode block claude",
        "tenure --session x hook claude",
        "tenure --session=x -v hook claude",
        "unset HOME; tenure hook claude",
        "TENURE_LEASE=nonsense tenure hook claude",
        "TENURE_HOME=/proc/nowhere tenure hook claude",
        "TENURE_HOME=relative tenure hook claude",
        "mkdir gone; cd gone; rmdir ../gone; tenure hook claude",
        "tenure hook claude 1>&- 2>&-",
        "tenure hook claude 0<&-",
        "tenure hook claude </",
        "tenure hook claude >/dev/full 2>/dev/full",
    ] {
        hook(line).fails(0);
    }
}

#[test]
fn f_h06_a_store_in_any_state_blocks_nothing() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    let store = env.state().join("tenure.db");
    let whole = std::fs::read(&store).expect("it was made");
    let log = env.state().join("tenure.db-wal");
    let ways: [(&str, &dyn Fn()); 4] = [
        ("newer", &|| {
            let store = opened(&env);
            store
                .pragma_update(None, "user_version", 9_999)
                .expect("it can be written");
        }),
        ("empty", &|| std::fs::write(&store, "").expect("it is ours")),
        ("cut", &|| {
            std::fs::write(&store, &whole[..4096]).expect("it is ours");
            std::fs::remove_file(&log).ok();
        }),
        ("a directory", &|| {
            std::fs::remove_file(&store).expect("it is ours");
            std::fs::create_dir(&store).expect("it is ours");
        }),
    ];
    for (what, spoil) in ways {
        spoil();
        for event in ["PreToolUse.Bash", "SessionStart.clear", "SessionEnd.other"] {
            let said = claude(&env, &a, event, "a1");
            assert!(said.stderr.contains("tenure: "), "{what}: {event}\n{said}");
        }
    }
}

/// The system calls of a hook, one in a line, from its start as a program on.
fn calls(env: &Env, agent: &Agent, flags: &[&str], event: &Value) -> Vec<String> {
    let file = env.dir().join("calls").display().to_string();
    agent
        .run(
            Cmd::new("strace")
                .args(flags.iter().copied())
                .args(["-o", &file])
                .args([&env.tenure_path().display().to_string(), "hook", "claude"])
                .stdin(event.to_string()),
        )
        .ok();
    let all = std::fs::read_to_string(file).expect("it was written");
    // Where it is compiled for tests, std looks at every descriptor that it closes.
    let is_none = ["+++", "---", "F_GETFD"];
    let is_call = |line: &&str| !is_none.iter().any(|mark| line.contains(mark));
    all.lines().filter(is_call).map(str::to_owned).collect()
}

#[test]
fn f_h08_an_event_is_one_process_with_a_watchdog_and_no_other_program() {
    let env = env();
    let a = env.agent("claude");
    if !can_trace(&a) {
        return;
    }
    let flags = ["-f", "-e", "trace=execve,execveat,clone,clone3,fork,vfork"];
    for (event, id) in [
        ("SessionStart.startup", "a1"),
        ("PreToolUse.Bash", "a1"),
        ("SessionStart.clear", "a2"),
        ("SessionEnd.other", "a2"),
    ] {
        let event = captured(&env, &format!("claude-2.1.325/{event}"), id);
        let calls = calls(&env, &a, &flags, &event);
        assert!(calls[0].contains("execve("), "{calls:#?}");
        // One that watches; if it is slow, as below strace, a second one stands by. A thread that has not run yet when the
        // process ends has a call that strace does not know.
        let known = ["CLONE_THREAD", "resumed", "???("];
        let is_thread = |call: &String| known.iter().any(|word| call.contains(word));
        assert!(calls[1..].iter().all(is_thread), "{calls:#?}");
        let threads = calls.iter().filter(|call| call.contains("CLONE_THREAD"));
        assert!((1..=2).contains(&threads.count()), "{calls:#?}");
    }
    assert_eq!(only(&env)["state"], "ended");
}

/// What the hot path took when this was written, and some room for another C library.
const MAX_CALLS: usize = 240;

#[test]
fn the_hot_path_makes_few_system_calls() {
    let env = env();
    let a = env.agent("claude");
    if !can_trace(&a) {
        return;
    }
    claude(&env, &a, "SessionStart.startup", "a1");
    // Somebody has it open, as somebody always has: the first opener replays the log.
    let reader = opened(&env);
    let count: i64 = reader
        .query_row("SELECT count(*) FROM sessions", [], |row| row.get(0))
        .expect("it can be read");
    assert_eq!(count, 1);
    let event = captured(&env, "claude-2.1.325/PreToolUse.Bash", "a1");
    // The first one changes the activity, and any may be due for a heartbeat on a slow machine.
    send(&a, "claude", &event);
    let fewest = [(); 3].map(|()| calls(&env, &a, &[], &event));
    let fewest = fewest
        .iter()
        .min_by_key(|calls| calls.len())
        .expect("three");
    assert!(
        fewest.len() <= MAX_CALLS,
        "{} system calls\n{}",
        fewest.len(),
        fewest.join("\n")
    );
    // A call that reaches the disk does not belong on the hot path, however few there are.
    let writes = fewest.iter().filter(|call| call.contains("sync("));
    assert_eq!(writes.count(), 0);
}

/// Numbers that look like chance and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(most).expect("small")).expect("small")
    }
}

/// A few ways to spoil an event; the rest is tried on the adapters themselves.
fn spoilt(event: &str, dice: &mut Dice, way: usize) -> Vec<u8> {
    let mut bytes = event.as_bytes().to_vec();
    match way % 6 {
        0 => bytes.truncate(dice.below(bytes.len())),
        1 => {
            for _ in 0..4 {
                let at = dice.below(bytes.len());
                bytes[at] = u8::try_from(dice.below(256)).expect("a byte");
            }
        }
        2 => {
            let mut value: Value = serde_json::from_str(event).expect("it is JSON");
            let names: Vec<String> = value.as_object().expect("it is").keys().cloned().collect();
            let odd = [
                json!(7),
                json!([[]]),
                json!({"a": {}}),
                Value::Null,
                json!(true),
                json!("\0"),
            ];
            value[&names[dice.below(names.len())]] = odd[dice.below(odd.len())].clone();
            bytes = value.to_string().into_bytes();
        }
        3 => {
            let deep = "[".repeat(50_000);
            bytes = event
                .replacen('{', &format!("{{\"deep\":{deep},"), 1)
                .into_bytes();
        }
        4 => {
            let mut value: Value = serde_json::from_str(event).expect("it is JSON");
            let long = "é\u{1b}[2J\n".repeat(20_000);
            for name in ["cwd", "agent_id", "reason", "transcript_path", "tool_name"] {
                value[name] = json!(format!("/{long}"));
            }
            bytes = value.to_string().into_bytes();
        }
        _ => {
            bytes.truncate(bytes.len() - 1);
            bytes.extend(b",\"more\":\"");
            bytes.resize(5 << 20, b'y');
        }
    }
    bytes
}

#[test]
fn spoilt_events_neither_block_nor_break_anything() {
    let env = env();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let agents = [
        ("claude", "claude-2.1.325/SessionEnd.other"),
        ("claude", "claude-2.1.325/SubagentStop"),
        ("codex", "codex-0.166.0/PreToolUse.Bash"),
        ("gemini", "gemini-0.61.0/SessionStart.startup"),
        ("opencode", "claude-2.1.325/PostToolUse.Bash"),
        ("generic", "claude-2.1.325/UserPromptSubmit"),
    ];
    let spoilt_file = env.dir().join("spoilt");
    for (adapter, fixture) in agents {
        let agent = env.agent(if adapter == "generic" {
            "program"
        } else {
            adapter
        });
        let mut event = captured(&env, fixture, "a1234567");
        event["event"] = json!("busy");
        for way in 0..12 {
            let bytes = spoilt(&event.to_string(), &mut dice, way);
            std::fs::write(&spoilt_file, &bytes).expect("it is ours");
            let line = format!("tenure hook {adapter} <{}; exit $?", spoilt_file.display());
            let said = agent.run(Cmd::shell(&line));
            assert_eq!(said.code, 0, "{adapter} {way}\n{said}");
            assert!(!said.stderr.contains("panicked"), "{adapter} {way}\n{said}");
            assert!(
                !said.stderr.contains("unexpectedly"),
                "{adapter} {way}\n{said}"
            );
        }
    }
    // What is shown of them is clean and short.
    let shown = env.tenure(&["ps", "-a", "--json"]).ok();
    assert!(shown.stdout.len() < 100_000, "{} bytes", shown.stdout.len());
    for call in [&["log", "--limit", "1000"][..], &["ps", "-a"]] {
        let shown = env.tenure(call).ok().stdout;
        assert!(shown.len() < 200_000, "{call:?}: {} bytes", shown.len());
        assert!(!shown.contains('\u{1b}'), "{call:?}");
    }
}

#[test]
fn an_event_after_a_spoilt_one_is_heard() {
    let env = env();
    let a = env.agent("claude");
    claude(&env, &a, "SessionStart.startup", "a1");
    a.run(
        Cmd::shell("tenure hook claude")
            .stdin("{\"hook_event_name\":\"PreToolUse\",\"session_id\":\"../x\"}"),
    )
    .ok();
    let me = only(&env);
    assert_eq!(me["native_id"], "a1", "what is no id changes nothing");
    poll(PATIENCE, "the next event counts", || {
        claude(&env, &a, "PermissionRequest", "a1");
        (only(&env)["activity"] == "waiting").then_some(())
    });
    assert_eq!(text(&ask(&a, &["whoami"]), "/session/native_id"), "a1");
}

#[test]
fn a_hook_on_a_small_stack_answers() {
    let env = env();
    let a = env.agent("claude");
    let event = captured(&env, "claude-2.1.325/SessionStart.startup", "a1").to_string();
    std::fs::write(env.work().join("event"), event).expect("the directory is ours");
    for kilobytes in [64, 128, 8192] {
        let line = format!("ulimit -s {kilobytes}; exec tenure hook claude <event");
        let said = a.run(Cmd::shell(&line)).ok();
        assert_eq!(said.stderr, "", "{kilobytes}");
        assert!(
            said.stdout.contains("tenure knows this session as"),
            "{kilobytes}: {said}"
        );
    }
    let said = a.run(Cmd::shell("ulimit -s 64; exec tenure status")).ok();
    assert!(said.stdout.starts_with("you are claude-"), "{said}");
}

//! A hook ends in time whatever it waits for: stopped processes, pipes in place of files, files without end,
//! readers that do not read. Where the user wants a guard that closes, it closes then, too.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_host::kernel_lock::{HeldLock, LockDir, LockName, Patience, Sharing};
use tenure_testkit::{Agent, Background, Cmd, Env, Output, add_worktree, poll};

use crate::env;
use crate::support::answer::{PATIENCE, ask, text};
use crate::support::hook::{END_LIMIT, LIMIT, can_trace, captured, claude, only, outages, within};
use crate::support::hooked::{Hooked, denied, pair, repository, told};

/// What a hook may take that has nothing to wait for, on a machine that is busy with other tests.
const SHORT: Duration = Duration::from_millis(1_500);

fn event(of: &Hooked, name: &str, more: Value) -> String {
    let mut payload = json!({
        "hook_event_name": name, "session_id": of.conversation, "cwd": of.dir,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut payload, more) {
        all.extend(more);
    }
    payload.to_string()
}

fn write_event(of: &Hooked) -> String {
    let file = of.dir.join("f");
    event(
        of,
        "PreToolUse",
        json!({"tool_name": "Write", "tool_input": {"file_path": file}}),
    )
}

/// Sends an event, with what comes before and after the hook in the shell's line.
fn send(of: &Hooked, event: &str, before: &str, after: &str) -> Output {
    let line = format!("{before} tenure hook {} {after}; exit $?", of.name);
    of.agent.run(Cmd::shell(&line).stdin(event))
}

fn fifo(agent: &Agent, path: &Path) {
    agent
        .run(Cmd::new("mkfifo").arg(path.display().to_string()))
        .ok();
}

/// Locks the index of the store's log as a process does that was stopped while it was the first to open it.
fn lock_index(env: &Env) -> File {
    let index = File::options()
        .read(true)
        .write(true)
        .open(env.state().join("tenure.db-shm"))
        .expect("the store was used");
    rustix::fs::fcntl_lock(&index, rustix::fs::FlockOperation::LockExclusive)
        .expect("nobody has it open");
    index
}

#[test]
fn f_h01_a_stopped_process_that_locks_the_index_of_the_log_delays_no_hook_beyond_its_limit() {
    let mut env = env();
    env.set("TENURE_GUARD_ON_ERROR", "closed");
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    let b = Hooked::start(&env, "codex", "b1", &repo);
    let locked = lock_index(&env);
    let write = write_event(&a);
    let said = within(LIMIT, || send(&a, &write, "", "").ok());
    let why = denied(&said.json()).map(str::to_owned);
    let why = why.unwrap_or_else(|| panic!("a guard that closes did not\n{said}"));
    assert!(why.contains("guard.on_error is closed"), "{why}");
    assert!(said.stderr.contains("tenure: "), "{said}");
    let counted = outages(&env);
    assert!(!counted.is_empty(), "it is counted");
    assert_eq!(counted[0]["pid"], a.agent.pid());
    assert_eq!(counted[0]["said"], true);
    assert!(
        counted[1..].iter().all(|one| one["said"] == false),
        "it is said once: {counted:#?}"
    );
    // Codex denies in its own words, and what writes no file is not stopped.
    let patch = json!({"tool_name": "apply_patch", "tool_input": {
        "command": "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch"}});
    let patch = event(&b, "PreToolUse", patch);
    let said = within(LIMIT, || send(&b, &patch, "", "").ok());
    assert!(denied(&said.json()).is_some(), "{said}");
    let command = json!({"tool_name": "Bash", "tool_input": {"command": "make"}});
    let command = event(&a, "PreToolUse", command);
    let said = within(LIMIT, || send(&a, &command, "", "").ok());
    assert_eq!(said.stdout, "", "{said}");
    let end = event(&a, "SessionEnd", json!({"reason": "other"}));
    let said = within(END_LIMIT, || send(&a, &end, "", "").ok());
    assert_eq!(said.stdout, "", "{said}");
    let counted = outages(&env).len();
    assert!(counted >= 4, "{counted}");
    drop(locked);
    let status = ask(&a.agent, &["status"]);
    let warnings = status["status"]["warnings"].to_string();
    assert!(warnings.contains("not recorded"), "{status}");
    assert_eq!(a.write(&[], &repo.join("f")), Value::Null, "it goes on");
}

#[test]
fn f_h01_a_hook_that_is_late_is_open_unless_the_user_wants_it_closed() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    let _locked = lock_index(&env);
    let write = write_event(&a);
    let said = within(LIMIT, || {
        drop(fs::remove_file(env.state().join("outages.log")));
        send(&a, &write, "", "").ok()
    });
    let answer = said.json();
    assert_eq!(denied(&answer), None, "{answer}");
    let heard = told(&answer).unwrap_or_else(|| panic!("the model is told\n{said}"));
    assert!(heard.contains("cannot record this session"), "{heard}");
    assert!(text(&answer, "/systemMessage").contains("Nothing is blocked"));
}

/// A worktree of a repository with everything in it that a hook reads.
fn worktree(env: &Env) -> (PathBuf, PathBuf) {
    let repo = repository(env, "web");
    let tree = env.dir().join("tree");
    add_worktree(&repo, &tree, "two");
    (tree, repo.join(".git"))
}

/// Puts something else in place of a file; what was there comes back when it is over.
fn in_place_of(file: &Path, put: &dyn Fn(&Path), work: impl FnOnce()) {
    let kept = file.with_file_name("kept-for-the-test");
    let was = fs::rename(file, &kept).is_ok();
    put(file);
    work();
    fs::remove_file(file).expect("it was just put there");
    if was {
        fs::rename(&kept, file).expect("it was just moved");
    }
}

#[test]
fn f_h01_pipes_and_endless_files_in_place_of_what_a_hook_reads_are_not_waited_for() {
    let env = env();
    let (tree, git) = worktree(&env);
    let person = env.agent("some-editor");
    let own = git.join("worktrees/tree");
    let home = env.home();
    fs::create_dir_all(home.join(".config/tenure")).expect("a private home");
    fs::create_dir_all(home.join(".claude/sessions")).expect("a private home");
    let agent = env.agent("claude");
    let registry = home.join(format!(".claude/sessions/{}.json", agent.pid()));
    let places = [
        tree.join(".git"),
        own.join("HEAD"),
        own.join("commondir"),
        own.join("locked"),
        git.join("config"),
        git.join("packed-refs"),
        git.join("refs/heads/two"),
        tree.join(".tenure.toml"),
        registry,
        env.dir().join("env-file"),
        home.join(".config/tenure/config.toml"),
    ];
    let pipe = |path: &Path| fifo(&person, path);
    let endless = |path: &Path| symlink("/dev/zero", path).expect("it was moved away");
    let ways: [&dyn Fn(&Path); 2] = [&pipe, &endless];
    let a = Hooked::with(agent, "claude", "a1", &tree);
    let env_file = format!("CLAUDE_ENV_FILE={}", env.dir().join("env-file").display());
    for place in &places {
        for put in ways {
            in_place_of(place, put, || {
                let what = place.display();
                let start = event(&a, "SessionStart", json!({"source": "startup"}));
                // A limit of memory far below four gigabytes.
                let before = format!("ulimit -v 1000000; {env_file}");
                let said = within(SHORT, || send(&a, &start, &before, ""));
                assert_eq!(said.code, 0, "{what}\n{said}");
                let stash = json!({"tool_name": "Bash", "tool_input": {"command": "git stash"}});
                let stash = event(&a, "PreToolUse", stash);
                let said = within(SHORT, || send(&a, &stash, &before, ""));
                assert_eq!(said.code, 0, "{what}\n{said}");
                if place.ends_with("tenure/config.toml") {
                    assert!(said.stderr.contains("tenure/config.toml"), "{said}");
                } else {
                    assert_eq!(said.stdout, "", "{what}\n{said}");
                    within(Duration::from_secs(20), || env.tenure(&["ps"]).ok());
                }
            });
        }
    }
    let end = event(&a, "SessionEnd", json!({"reason": "other"}));
    in_place_of(&own.join("locked"), &pipe, || {
        within(SHORT, || send(&a, &end, "", "").ok());
    });
    assert_eq!(only(&env)["state"], "ended");
}

#[test]
fn f_h01_mirrors_whose_locks_are_held_delay_a_hook_by_its_limit_all_together() {
    let env = env();
    let dir = env.home().join(".config/tenure");
    fs::create_dir_all(&dir).expect("a private home");
    let files: Vec<PathBuf> = (0..5)
        .map(|n| env.home().join(format!("m{n}/c.json")))
        .collect();
    let settings = files.iter().map(|file| {
        format!(
            "[[mirror]]\nformat = \"pact\"\npath = \"{}\"\nend = \"mark\"\n",
            file.display()
        )
    });
    fs::write(dir.join("config.toml"), settings.collect::<String>()).expect("a private home");
    let agent = env.agent("claude");
    let a = Hooked::with(agent, "claude", "a1", &env.work());
    assert!(files.iter().all(|file| file.exists()), "they are written");
    let locks = LockDir::open(&env.state().join("locks")).expect("the state is ours");
    let held: Vec<HeldLock> = files
        .iter()
        .map(|file| {
            let name = LockName::of_path(file).expect("it is a path");
            let at_once = Patience::AtMost(Duration::ZERO);
            locks
                .lock(&name, Sharing::Exclusive, at_once)
                .expect("nobody else has it")
        })
        .collect();
    let start = event(&a, "SessionStart", json!({"source": "clear"}));
    let said = within(LIMIT, || send(&a, &start, "", "").ok());
    assert!(
        told(&said.json()).is_some(),
        "the brief is not lost\n{said}"
    );
    let end = event(&a, "SessionEnd", json!({"reason": "other"}));
    within(END_LIMIT, || send(&a, &end, "", "").ok());
    assert_eq!(only(&env)["state"], "ended");
    drop(held);
}

/// A pipe that is full and that nobody reads.
fn full_pipe(agent: &Agent, path: &Path) -> File {
    fifo(agent, path);
    let mut pipe = File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("it was just made");
    rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK).expect("it is ours");
    while pipe.write(&[0; 4096]).is_ok() {}
    pipe
}

#[test]
fn f_h01_an_answer_that_nobody_reads_ends_with_the_limit() {
    let env = env();
    let agent = env.agent("claude");
    let path = env.dir().join("full");
    let _pipe = full_pipe(&agent, &path);
    let start = captured(&env, "claude-2.1.325/SessionStart.startup", "a1").to_string();
    let end = captured(&env, "claude-2.1.325/SessionEnd.other", "a1").to_string();
    for (event, limit, to) in [
        (&start, LIMIT, ">"),
        (&start, LIMIT, "2>"),
        (&start, LIMIT, ">&2 2>"),
        (&end, END_LIMIT, "2>&1 >"),
    ] {
        // It has something to complain about as well.
        let line = format!(
            "CLAUDE_ENV_FILE=/nowhere/at/all tenure hook claude {to}{}; exit $?",
            path.display()
        );
        let said = within(limit, || agent.run(Cmd::shell(&line).stdin(event.as_str())));
        assert_eq!(said.code, 0, "{line}\n{said}");
    }
}

#[test]
fn f_h03_an_end_whose_pipe_stays_open_is_heard_within_its_second() {
    let env = env();
    let agent = env.agent("claude");
    claude(&env, &agent, "SessionStart.startup", "a1");
    let path = env.dir().join("open");
    fifo(&agent, &path);
    let mut pipe = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .expect("it was just made");
    let end = captured(&env, "claude-2.1.325/SessionEnd.other", "a1").to_string();
    let line = format!("tenure hook claude <{}; exit $?", path.display());
    within(END_LIMIT, || {
        pipe.try_clone()
            .and_then(|mut pipe| pipe.write_all(end.as_bytes()))
            .expect("a pipe has room for this");
        agent.run(Cmd::shell(&line)).ok()
    });
    pipe.flush().expect("it is open");
    assert_eq!(only(&env)["state"], "ended");
}

#[test]
fn f_h01_a_git_command_beside_four_hundred_sessions_takes_no_longer() {
    let env = env();
    let (repo, a, b) = pair(&env);
    b.event(&[], "SessionEnd", json!({"reason": "other"}));
    clone_session(&env, "b1", 400, &repo);
    let stash = json!({"tool_name": "Bash", "tool_input": {"command": "git stash"}});
    let stash = event(&a, "PreToolUse", stash);
    let said = within(Duration::from_secs(1), || send(&a, &stash, "", "").ok());
    let heard = told(&said.json()).map(str::to_owned).expect("it is told");
    assert!(heard.contains("`git stash` changes files"), "{heard}");
}

/// Many sessions without a process, each in a directory of its own, like one that ended.
fn clone_session(env: &Env, conversation: &str, many: u32, repo: &Path) {
    const LETTERS: &[u8] = b"23456789bcdfghjkmnpqrstvwz";
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("it is there");
    store
        .execute_batch(&format!(
            "BEGIN; CREATE TEMP TABLE one AS SELECT * FROM sessions WHERE native_id = '{conversation}';
             UPDATE one SET native_id = NULL, closed_at = NULL, closed_by = NULL, closed_why = NULL, pid = NULL,
                 start_ticks = NULL, start_shifted = NULL, host_id = NULL, boot_id = NULL, boot_private = NULL,
                 pid_ns = NULL"
        ))
        .expect("the tables are as the test thinks");
    for n in 0..many {
        let dir = repo.join(format!("d{n}"));
        fs::create_dir(&dir).expect("it is new");
        let letter = |power: u32| {
            let at = usize::try_from(n / 26_u32.pow(power) % 26).expect("small");
            char::from(LETTERS[at])
        };
        let code: String = ['b', 'b', letter(2), letter(1), letter(0)].iter().collect();
        store
            .execute_batch(&format!(
                "UPDATE one SET id = substr(id, 1, length(id) - 9) || 'ffffff{n:03}', code = '{code}',
                     handle = 'claude-{code}', dir = '{}';
                 INSERT INTO sessions SELECT * FROM one",
                dir.display()
            ))
            .expect("the tables are as the test thinks");
    }
    store.execute_batch("COMMIT").expect("it was begun");
}

/// Runs a hook that is stopped at its `nth` lock of a file; none if it has fewer, and ended.
fn stopped_at(env: &Env, of: &Hooked, nth: usize) -> Option<Traced> {
    let log = env.dir().join(format!("calls-{nth}"));
    let inject = format!("inject=fcntl:signal=STOP:when={nth}");
    let prompt = event(of, "UserPromptSubmit", json!({"prompt": nth.to_string()}));
    let traced = Traced(
        of.agent.start(
            Cmd::new("strace")
                .args(["-e", "trace=fcntl", "-e", &inject, "-o"])
                .arg(log.display().to_string())
                .args([&env.tenure_path().display().to_string(), "hook", of.name])
                .stdin(prompt),
        ),
    );
    let stands = poll(PATIENCE, "it is stopped or over", || {
        let calls = fs::read_to_string(&log).unwrap_or_default();
        let is_stopped = calls.contains("--- stopped by SIGSTOP");
        (is_stopped || calls.contains("+++ ")).then_some(is_stopped)
    });
    stands.then_some(traced)
}

/// A program that is traced. It would stay stopped when only who traces it is gone.
struct Traced(Background);

impl Drop for Traced {
    fn drop(&mut self) {
        let children = format!("/proc/{0}/task/{0}/children", self.0.pid);
        let children = fs::read_to_string(children).unwrap_or_default();
        let pids = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        for pid in pids.filter_map(rustix::process::Pid::from_raw) {
            let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        self.0.kill9();
    }
}

#[test]
fn f_h01_a_hook_that_is_stopped_at_any_lock_delays_no_other_beyond_its_limit() {
    let env = env();
    let (_repo, a, b) = pair(&env);
    if !can_trace(&a.agent) {
        return;
    }
    let write = write_event(&a);
    let mut nth = 1;
    while let Some(stopped) = stopped_at(&env, &b, nth) {
        within(LIMIT, || send(&a, &write, "", "").ok());
        drop(stopped);
        nth += 1;
    }
    assert!(nth > 4, "there are locks to be stopped at");
}

#[test]
fn a_status_line_that_waits_for_the_store_is_drawn_within_a_second() {
    let env = env();
    let a = Hooked::start(&env, "claude", "a1", &env.work());
    let line = |flags: &str| {
        let line = format!("tenure statusline claude {flags}; exit $?");
        a.agent
            .run(Cmd::shell(&line).stdin(event(&a, "Status", json!({}))))
            .ok()
    };
    assert!(line("").stdout.contains(&a.handle()));
    let _locked = lock_index(&env);
    let said = within(END_LIMIT, || line(""));
    assert_eq!(said.stdout, "tenure: no answer\n");
    let said = within(END_LIMIT, || line("--json"));
    assert_eq!(said.json()["statusline"], "tenure: no answer");
}

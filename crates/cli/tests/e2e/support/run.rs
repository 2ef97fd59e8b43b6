//! Runs of scripted agents.

use serde_json::Value;
use tenure_testkit::{Agent, Background, Cmd, Env, Output, poll};

use super::line::SOON;

/// Starts `tenure run` with the words of a line and a prompt.
pub fn start(agent: &Agent, line: &str) -> Background {
    agent.start(command(line))
}

fn command(line: &str) -> Cmd {
    let words = line.split_whitespace();
    let prompt = ["--prompt", "do it"];
    Cmd::new("tenure").arg("run").args(words).args(prompt)
}

/// Runs it to its end.
#[track_caller]
pub fn run(agent: &Agent, line: &str) -> Output {
    agent.run(command(line))
}

/// All runs, the newest first.
#[track_caller]
pub fn all(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["runs", "--json"]).ok().json();
    answer["runs"].as_array().expect("a list").clone()
}

/// The only run, or the newest.
#[track_caller]
pub fn newest(env: &Env) -> Value {
    all(env).into_iter().next().expect("a run")
}

/// Waits until the newest run is like this.
#[track_caller]
pub fn until(env: &Env, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    poll(SOON, what, || {
        let runs = env.tenure(&["runs", "--json"]).ok().json();
        runs["runs"].get(0).filter(|run| is(run)).cloned()
    })
}

/// Waits until the newest run has ended; its outcome.
#[track_caller]
pub fn outcome(env: &Env) -> String {
    let run = until(env, "the run ends", |run| run["state"] == "ended");
    run["outcome"].as_str().expect("an outcome").to_owned()
}

/// The pid of the runner of a run: the parent of its agent.
#[track_caller]
pub fn runner_of(run: &Value) -> u32 {
    let agent = pid_of(run);
    let stat = tenure_testkit::pinned::Stat::read(agent).expect("its agent lives");
    stat.parent
}

#[track_caller]
pub fn pid_of(run: &Value) -> u32 {
    let pid = run["pid"]
        .as_u64()
        .unwrap_or_else(|| panic!("no agent lives in {run}"));
    u32::try_from(pid).expect("a pid")
}

/// Kills a process with -9 and waits until it is gone.
#[track_caller]
pub fn kill9(agent: &Agent, pid: u32) {
    agent
        .run(Cmd::new("kill").args(["-9".to_owned(), pid.to_string()]))
        .ok();
    poll(SOON, "it is gone", || is_gone(pid).then_some(()));
}

pub fn is_gone(pid: u32) -> bool {
    !tenure_testkit::pinned::Stat::runs(pid)
}

/// The lines of `--json`.
#[track_caller]
pub fn lines(said: &Output) -> Vec<Value> {
    let read = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{said}"))
    };
    said.stdout.lines().map(read).collect()
}

/// A program called `claude` that does what these shell lines say and writes what Claude Code writes.
///
/// `$mode` is `fresh` or `resume`, `$id` the conversation. `init`, `reply TEXT`, `ok TEXT`, `unknown`, `poisoned` and
/// `limited EPOCH` are lines of its stream; `keeps` makes the file of the conversation.
pub fn fake_claude(env: &Env, lines: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let dir = env.dir().join("fake-claude");
    std::fs::create_dir_all(&dir).expect("the environment's directory is writable");
    let program = env.dir().join("bin/claude");
    let text = format!(
        r#"#!/bin/sh
dir={}
prompt=$(cat)
mode=fresh
while [ $# -gt 0 ]; do
  case "$1" in
    --session-id) id=$2 ;;
    --resume) mode=resume; id=$2 ;;
  esac
  shift
done
file=$HOME/.claude/projects/work/$id.jsonl
say() {{ printf '%s\n' "$1"; }}
keeps() {{ mkdir -p "${{file%/*}}"; echo '{{}}' >>"$file"; }}
init() {{ say "{{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$id\"}}"; }}
reply() {{ say "{{\"type\":\"assistant\",\"message\":{{\"model\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\"$1\"}}]}}}}"; }}
ok() {{ reply "$1"; say "{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":\"$1\",\"session_id\":\"$id\"}}"; }}
unknown() {{ say "{{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,\"num_turns\":0,\"errors\":[\"No conversation found with session ID: $id\"],\"session_id\":\"$id\"}}"; exit 1; }}
poisoned() {{ say "{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"num_turns\":1,\"terminal_reason\":\"image_error\",\"result\":\"Image was too large.\"}}"; exit 1; }}
limited() {{ say "{{\"type\":\"rate_limit_event\",\"rate_limit_info\":{{\"status\":\"rejected\",\"resetsAt\":$1}}}}"; say "{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"num_turns\":1,\"api_error\":\"usage_limit_reached\",\"result\":\"You hit your limit\"}}"; exit 1; }}
hold() {{ while [ -e "$1" ]; do sleep 0.02; done; }}
echo "$mode $id" >>$dir/calls
{lines}
"#,
        dir.display()
    );
    std::fs::write(&program, text).expect("the environment's directory is writable");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it was just made");
    dir
}

/// A `claude` that only starts the real one, which does what these lines say. Returns the directory of its files.
pub fn wrapped(env: &Env, lines: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let dir = fake_claude(env, lines);
    let (wrapper, real) = (env.dir().join("bin/claude"), env.dir().join("real/claude"));
    std::fs::create_dir_all(real.parent().expect("the environment is ours"))
        .expect("the environment is ours");
    std::fs::rename(&wrapper, &real).expect("the environment is ours");
    let script = format!("#!/bin/sh\n{} \"$@\"\nexit $?\n", real.display());
    std::fs::write(&wrapper, script).expect("the environment is ours");
    std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755))
        .expect("the environment is ours");
    dir
}

/// A job of the agent `mine` in the queue.
#[track_caller]
pub fn enqueue(agent: &Agent, item: &str, prompt: &str) {
    let words = [
        "run",
        "mine",
        item,
        "--queue",
        "--share-dir",
        "--prompt",
        prompt,
    ];
    agent.tenure(&words).ok();
}

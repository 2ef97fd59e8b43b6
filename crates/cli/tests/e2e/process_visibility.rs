//! What can be seen of processes, and what is decided where that is not everything.

use serde_json::Value;
use tenure_testkit::{Cmd, poll};

use crate::env;
use crate::support::answer::{PATIENCE, ask, assert_is, register, text};
use crate::support::namespace::{Inside, pid_namespace, sandboxed};
use crate::support::skip::skipped;

/// Starts a thread whose number is the first argument, and keeps it until the process is killed.
const THREAD: &str = "import sys, threading, time\n\
                      wanted = int(sys.argv[1])\n\
                      open('/proc/sys/kernel/ns_last_pid', 'w').write(str(wanted - 1))\n\
                      thread = threading.Thread(target=time.sleep, args=(1000,))\n\
                      thread.start()\n\
                      print(thread.native_id, flush=True)";

#[test]
fn f_l01_a_dead_holder_whose_pid_is_a_thread_now_blocks_nobody() {
    let env = env();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    let inside = Inside::open(&env, flags, "inside");
    let script = env.dir().join("thread.py");
    std::fs::write(&script, THREAD).expect("the environment's directory is writable");
    if inside
        .line("echo 100 >/proc/sys/kernel/ns_last_pid && /usr/bin/python3 -c 1")
        .code
        != 0
    {
        return skipped("the next pid cannot be chosen here, or there is no python3");
    }
    inside.line("tenure register --agent taker --pid 1").ok();
    // Far from what the shell gives to its own commands.
    let start = inside.line("echo 29999 >/proc/sys/kernel/ns_last_pid; sleep 1000 & echo $!");
    let pid = start.ok().stdout.trim().to_owned();
    let born = inside.ask(&format!("register --agent claude --pid {pid}"));
    let id = text(&born, "/session/id");
    inside.ask(&format!("claim wp:1 --session {id}"));
    inside
        .line(&format!("kill -9 {pid}; wait {pid}"))
        .fails(137);
    let said = env.dir().join("tid");
    let python = format!(
        "/usr/bin/python3 {} {pid} >{}",
        script.display(),
        said.display()
    );
    inside.line(&format!("{python} & echo $!")).ok();
    let tid = poll(PATIENCE, "the thread runs", || {
        let said = std::fs::read_to_string(&said).ok()?;
        said.ends_with('\n').then(|| said.trim().to_owned())
    });
    assert_eq!(
        tid, pid,
        "the kernel gave the thread the dead process's number"
    );

    inside.line(&format!("tenure alive {id}")).fails(1);
    let claim = inside.ask("claim wp:1");
    assert_eq!(claim["claim"]["taken_from"]["session"], id);
    let proof = text(&claim, "/claim/taken_from/proof");
    assert!(proof.contains("a thread of process"), "{proof}");
    let answer = inside.line(&format!(
        "tenure register --agent claude --pid {pid} --json"
    ));
    let error: Value = serde_json::from_str(&answer.fails(4).stdout).expect("it is JSON");
    let message = text(&error, "/error/message");
    assert!(message.contains("a thread of process"), "{message}");
}

#[test]
fn an_agent_that_is_pid_1_is_found_by_its_hook_and_by_its_own_calls() {
    let env = env();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    // A shell that looks like the agent: for an interpreter the script is the executable.
    let claude = env.dir().join("claude");
    let (hooked, asked) = (env.dir().join("hooked"), env.dir().join("asked"));
    let event =
        r#"{"hook_event_name":"SessionStart","session_id":"c1","cwd":"/","source":"startup"}"#;
    let script = format!(
        "echo '{event}' | tenure hook claude >{}\ntenure whoami --json >{}.new\nmv {}.new {}\nsleep 1000\n",
        hooked.display(),
        asked.display(),
        asked.display(),
        asked.display()
    );
    std::fs::write(&claude, script).expect("the environment's directory is writable");
    let starter = env.agent("starter");
    let cmd = Cmd::new("unshare").args(flags.iter().copied());
    let boxed = starter.start(cmd.args(["sh", &claude.display().to_string()]));
    let said = poll(PATIENCE, "the agent has asked", || {
        assert!(boxed.is_alive(), "{}", boxed.stderr());
        std::fs::read_to_string(&asked).ok()
    });
    let me: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{}", boxed.stderr()));
    assert_eq!(me["session"]["process"]["pid"], 1, "{me:#}");
    assert_eq!(me["session"]["process"]["verified"], true);
    assert_eq!(me["session"]["native_id"], "c1");
    assert_eq!(me["resolved"]["by"], "ancestry");
}

#[test]
fn however_many_processes_are_above_a_caller_the_session_is_found() {
    let env = env();
    let a = env.agent("claude");
    let born = register(&a, &[]);
    let codex = env.agent("codex");
    let other = register(&codex, &[]);
    // Each level is a shell that waits for the next one; a stray variable names somebody else.
    let deep =
        "if [ \"$1\" = 0 ]; then tenure whoami --json; else sh \"$0\" $(($1 - 1)); fi; exit $?\n";
    let script = env.dir().join("deep");
    std::fs::write(&script, deep).expect("the environment's directory is writable");
    let path = script.display().to_string();
    let cmd = Cmd::new("sh").args([path.as_str(), "300"]);
    let answer = a.run(cmd.env("TENURE_SESSION", text(&other, "/token")));
    let me = answer.ok().json();
    assert_eq!(me["session"]["id"], born["session"]["id"]);
    assert_is(&me, a.pid());
}

#[test]
fn f_i23_a_command_that_needs_a_holder_that_cannot_be_seen_is_not_run() {
    let env = env();
    let Some(flags) = pid_namespace(&env) else {
        return;
    };
    let (a, b) = (env.agent("codex"), env.agent("claude"));
    let born = register(&a, &[]);
    register(&b, &[]);
    ask(&b, &["claim", "wp:1"]);
    let variable = ("TENURE_SESSION", text(&born, "/token"));
    let boxed = |vars: &[(&str, &str)], args: &[&str]| {
        let mut cmd = Cmd::new("unshare")
            .args(flags.iter().copied())
            .arg("tenure");
        for (key, value) in vars {
            cmd = cmd.env(key, *value);
        }
        a.run(
            cmd.args(["--json", "claim", "wp:1"])
                .args(args.iter().copied()),
        )
    };
    for (vars, kind) in [(&[variable][..], "cannot_tell"), (&[][..], "held")] {
        for wait in [&[][..], &["--wait", "1ms"][..]] {
            let args = [wait, &["--", "echo", "ran"]].concat();
            let answer = boxed(vars, &args).fails(125);
            assert_eq!(answer.stdout, "", "{answer}");
            let last = answer.stderr.lines().last().unwrap_or_default();
            let error: Value = serde_json::from_str(last).expect("the last line is JSON");
            let said = &error["error"]["kind"];
            assert!(
                said == kind || (kind == "held" && said == "timed_out"),
                "{error}"
            );
        }
    }
    // The agent's next call outside of the sandbox buries what it can prove.
    b.kill9();
    ask(&a, &["whoami"]);
    let claims = ask(&a, &["why", "wp:1"]);
    assert_eq!(claims["why"]["answer"], "granted", "{claims:#}");
    sandboxed(&a, flags, &[variable], &["claim", "wp:1"]).ok();
}

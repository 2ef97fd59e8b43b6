//! Agents: their names, their ancestry, and what becomes of them and of what they started.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::{Cmd, Env};

use crate::{LONG, ancestry, env, exe_name, pin};

#[test]
fn an_agent_has_its_name_and_not_the_test_above_it() {
    let env = env();
    let agent = env.agent("claude");
    assert_eq!(exe_name(agent.pid()), "claude");
    let above = ancestry(agent.pid());
    assert!(!above.contains(&std::process::id()), "{above:?}");
    assert_eq!(agent.stat().unwrap().session, agent.pid());
    assert_eq!(agent.stat().unwrap().terminal, 0);
}

#[test]
fn arguments_are_for_all_to_see() {
    let env = env();
    let agent = env.agent_with("codex", &["fork", "x"]);
    let line = std::fs::read(format!("/proc/{}/cmdline", agent.pid())).unwrap();
    assert_eq!(line, b"codex\0fork\0x\0");
}

#[test]
fn commands_are_direct_children() {
    let env = env();
    let agent = env.agent("worker");
    let output = agent.run(Cmd::shell("echo $PPID; echo no >&2; exit 3"));
    let output = output.fails(3);
    assert_eq!(output.stdout.trim(), agent.pid().to_string());
    assert_eq!(output.stderr, "no\n");
    assert_eq!(agent.run(Cmd::shell("kill -9 $$")).code, 137);
    let started = agent.start(Cmd::new("sleep").arg("1000"));
    assert_eq!(Stat::read(started.pid).unwrap().parent, agent.pid());
    started.kill9();
    assert_eq!(started.wait().code, 137);
}

#[test]
fn a_worker_sees_only_the_variables_of_its_environment() {
    let mut env = env();
    env.set("ADDED", "one");
    let expected = |added: &str| {
        let mut names = vec![
            "HOME",
            "LANG",
            "PATH",
            "TENURE_HOME",
            "TENURE_KEEPER_START",
            "TENURE_PS_UNMANAGED",
            "TENURE_TEST",
            "TMPDIR",
        ];
        names.extend(added.split_whitespace());
        names.sort_unstable();
        names.join(" ")
    };
    let names = |text: &str| {
        let mut names: Vec<_> = text.lines().filter_map(|l| l.split('=').next()).collect();
        names.sort_unstable();
        names.join(" ")
    };
    let agent = env.agent("gemini");
    assert_eq!(names(&agent.tenure(&[]).ok().stdout), expected("ADDED"));
    let changed = agent.tenure_env(&[("ADDED", None), ("X", Some("1"))], &[]);
    assert_eq!(names(&changed.ok().stdout), expected("X"));
    env.set("LATER", "two");
    assert_eq!(names(&env.tenure(&[]).ok().stdout), expected("ADDED LATER"));
    assert!(env.home().is_dir() && env.work().is_dir() && !env.state().exists());
}

#[test]
fn directory_input_and_path_reach_the_command() {
    let env = env();
    let agent = env.agent("worker");
    assert_eq!(
        agent.tenure(&["pwd"]).ok().stdout.trim(),
        env.work().to_str().unwrap()
    );
    assert_eq!(
        agent.tenure_in(&env.home(), &["pwd"]).ok().stdout.trim(),
        env.home().to_str().unwrap()
    );
    let big = "x".repeat(300_000);
    assert_eq!(agent.tenure_stdin(&["cat"], &big).ok().stdout, big);
    let answer = agent.tenure_shell("tenure printf '{\"a\": 1}'").ok().json();
    assert_eq!(answer["a"], 1);
}

#[test]
fn a_command_that_does_not_exist_fails_and_the_next_one_runs() {
    let env = env();
    let agent = env.agent("worker");
    let failed = catch_unwind(AssertUnwindSafe(|| agent.run(Cmd::new("/no/such/program"))));
    let why = *failed.unwrap_err().downcast::<String>().unwrap();
    assert!(why.contains("No such file or directory"), "{why}");
    agent.run(Cmd::new("true")).ok();
}

#[test]
fn the_plain_worker_is_nobody() {
    let env = env();
    let output = env.tenure(&["sh", "-c", "readlink /proc/$PPID/exe"]).ok();
    assert!(output.stdout.trim().ends_with("/plainworker"), "{output}");
}

#[test]
fn a_nested_agent_is_a_child_and_answers_by_itself() {
    let env = env();
    let outer = env.agent("claude");
    let inner = outer.nest("codex");
    assert_eq!(exe_name(inner.pid()), "codex");
    assert_eq!(inner.stat().unwrap().parent, outer.pid());
    assert_eq!(inner.stat().unwrap().session, outer.pid());
    outer.stop();
    inner.run(Cmd::new("true")).ok();
    outer.cont();
    outer.kill9();
    assert!(inner.is_alive());
    inner.run(Cmd::new("true")).ok();
    assert_ne!(inner.stat().unwrap().parent, outer.pid());
}

#[test]
fn an_orphan_keeps_environment_and_session_but_not_its_parent() {
    let mut env = env();
    env.set("MARK", "seen");
    let agent = env.agent("claude");
    let pid = agent.orphan(Cmd::new("sleep").arg("1000").env("OWN", "too"));
    let stat = Stat::read(pid).unwrap();
    assert!(!ancestry(pid).contains(&agent.pid()));
    assert_eq!(stat.session, agent.pid());
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8(environ).unwrap();
    assert!(environ.contains("MARK=seen\0") && environ.contains("OWN=too\0"));
    agent.kill9();
    assert!(!pin(pid).is_gone());
}

#[test]
fn kill9_is_noticed_and_spares_the_children() {
    let env = env();
    let agent = env.agent("claude");
    let child = agent.start(Cmd::new("sleep").arg("1000"));
    assert!(agent.is_alive());
    agent.kill9();
    assert!(!agent.is_alive());
    assert!(child.is_alive());
    let asked = catch_unwind(AssertUnwindSafe(|| agent.run(Cmd::new("true"))));
    let message = *asked.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("is gone"), "{message}");
}

#[test]
fn a_stopped_agent_stands_and_asking_it_fails_in_time() {
    let env = env();
    let agent = env.agent("claude");
    agent.stop();
    assert_eq!(agent.stat().unwrap().state, 'T');
    assert!(agent.is_alive());
    agent.cont();
    agent.run(Cmd::new("true")).ok();
    agent.stop();
    agent.set_patience(Duration::from_millis(50));
    let asked = catch_unwind(AssertUnwindSafe(|| agent.run(Cmd::new("true"))));
    let message = *asked.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("did not answer within"), "{message}");
}

#[test]
fn close_ends_the_agent_and_what_it_started() {
    let env = env();
    let agent = env.agent("claude");
    let child = pin(agent.start(Cmd::new("sleep").arg("1000")).pid);
    let orphan = pin(agent.orphan(Cmd::new("sleep").arg("1000")));
    agent.close();
    assert!(!agent.is_alive());
    assert!(child.wait_gone(LONG));
    assert!(orphan.wait_gone(LONG));
}

#[test]
fn nothing_is_left_after_drop() {
    let env = env();
    let dir = env.dir().to_owned();
    let left = start_everything(&env);
    drop(env);
    assert!(!dir.exists());
    for process in left {
        assert!(process.is_gone(), "{:?}", process.started());
    }
}

fn start_everything(env: &Env) -> Vec<Pinned> {
    let sleep = || Cmd::new("sleep").arg("1000");
    let outer = env.agent("claude");
    let inner = outer.nest("codex");
    let stopped = env.agent("gemini");
    let killed = env.agent("opencode");
    let terminal = env.agent_at_terminal("claude");
    let shell = env.shell_at_terminal();
    let mut pids = vec![terminal.pid(), shell.pid()];
    for agent in [&outer, &inner, &stopped, &killed] {
        pids.extend([agent.pid(), agent.start(sleep()).pid, agent.orphan(sleep())]);
    }
    let held = pids.into_iter().map(pin).collect();
    stopped.stop();
    killed.kill9();
    held
}

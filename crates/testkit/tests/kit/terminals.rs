//! Agents and shells at a terminal.

use tenure_testkit::Cmd;
use tenure_testkit::pinned::Stat;

use crate::{ancestry, env, exe_name};

#[test]
fn an_agent_at_a_terminal_leads_a_session_with_it() {
    let env = env();
    let agent = env.agent_at_terminal("claude");
    let stat = agent.stat().unwrap();
    assert_ne!(stat.terminal, 0);
    assert_eq!(stat.session, agent.pid());
    assert!(!ancestry(agent.pid()).contains(&std::process::id()));
    let child = agent.start(Cmd::new("sleep").arg("1000"));
    assert_eq!(Stat::read(child.pid).unwrap().terminal, stat.terminal);
    // Much more than a terminal holds, so it must be read away.
    let line = "head -c 100000 /dev/zero | tr '\\0' x > /dev/tty";
    agent.tenure_shell(line).ok();
}

#[test]
fn a_shell_at_a_terminal_runs_what_is_typed() {
    let env = env();
    let shell = env.shell_at_terminal();
    let stat = shell.stat().unwrap();
    assert_ne!(stat.terminal, 0);
    assert_eq!(stat.session, shell.pid());
    assert!(["bash", "sh", "dash"].contains(&exe_name(shell.pid()).as_str()));
    assert!(!ancestry(shell.pid()).contains(&std::process::id()));

    let parent = shell.tenure(&["sh", "-c", "echo $PPID; echo \"it's\" >&2; exit 7"]);
    let parent = parent.fails(7);
    assert_eq!(parent.stdout.trim(), shell.pid().to_string());
    assert_eq!(parent.stderr, "it's\n");
    shell.line("cd / && export KEPT=yes").ok();
    let kept = shell.line("echo $PWD $KEPT; test -t 0").ok();
    assert_eq!(kept.stdout, "/ yes\n");
    for number in 0..20 {
        let echoed = shell.tenure(&["echo", &number.to_string()]).ok();
        assert_eq!(echoed.stdout.trim(), number.to_string());
    }
    shell.kill9();
    assert!(!shell.is_alive());
}

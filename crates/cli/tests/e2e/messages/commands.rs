//! Commands that run under a claim or a lock, and processes that tenure ends or looks at.

use tenure_testkit::pinned::Stat;
use tenure_testkit::{Cmd, poll};

use super::page::Page;
use crate::env;
use crate::support::line::{SOON, handle, run, session, take};
use crate::support::mount::{as_root, with_mounts};
use crate::support::refusing::refusing;
use crate::support::run::kill9;
use crate::support::waiter::in_line;

const NO_FORK: [&str; 4] = ["clone:11", "clone3:11", "vfork:11", "fork:11"];

#[test]
fn commands() {
    let env = env();
    let mut page = Page::new("25-commands", &env);
    let (human, codex) = (session(&env, "human"), session(&env, "codex"));
    page.learn(&env);
    page.title("A command that cannot be started");
    let own = env.work().join("build");
    std::os::unix::fs::symlink(&own, &own).expect("the environment is ours");
    page.run(&human, "tenure claim wp:1 -- ./build");
    let claims = "tenure claim wp:1 -- true";
    let said = human.run(refusing(&env, &NO_FORK, &format!("exec {claims}")));
    page.show(human.pid(), claims, said, Some("internal"));
    let waits = "tenure __exec --gate 99 -- true";
    page.run_once(&human, waits, Some("internal"));
    take(&codex, "wp:3");
    let waits = "tenure claim wp:3 --wait 5m -- true";
    let waiter = human.start(Cmd::new("tenure").args(waits.split(' ').skip(1)));
    poll(SOON, "it waits", || {
        in_line(&env, "wp:3").contains(&waiter.pid).then_some(())
    });
    let child = std::fs::read_dir("/proc")
        .expect("there is one")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|pid: &u32| Stat::read(*pid).is_some_and(|stat| stat.parent == waiter.pid));
    kill9(&human, child.expect("it has one"));
    run(&codex, 0, "release wp:3");
    page.show(human.pid(), waits, waiter.wait(), Some("internal"));
    page.title("A shell that ignores the end of its children");
    for line in ["tenure claim wp:1 -- true", "tenure lock build -- true"] {
        let typed = format!("env --ignore-signal=CHLD {line}");
        let said = human.run(Cmd::shell(&format!("exec {typed}")));
        page.show(human.pid(), &typed, said, Some("internal"));
    }
    page.run(&human, "tenure log wp:1");
    page.title("How a command ended");
    page.run_once(&human, "tenure claim wp:5 -- sh -c 'exit 3'", None);
    page.run_once(&human, "tenure claim wp:6 -- sh -c 'kill -9 $$'", None);
    page.run(&human, "tenure log --limit 6");
    page.title("A machine that shows no processes, or those of another pid namespace");
    take(&codex, "wp:7");
    let ps = "tenure ps";
    let said = human.run(with_mounts("mount -t tmpfs tmpfs /proc; exec tenure ps"));
    page.show(human.pid(), ps, said, Some("internal"));
    let flags = if as_root() { "-pf" } else { "-Urpf" };
    for line in [
        "tenure claim wp:8 -- true",
        "tenure claim wp:7 --wait 1m",
        "tenure run claude wp:9 --prompt 'fix it'",
    ] {
        let session = format!("TENURE_SESSION={}", handle(&human));
        let apart = format!("{session} exec unshare {flags} {line}");
        let typed = format!("unshare --pid --fork {line}");
        page.show(
            human.pid(),
            &typed,
            human.run(Cmd::shell(&apart)),
            Some("internal"),
        );
    }
    page.title("A kernel that refuses to watch or end processes");
    for line in ["tenure claim wp:7 --wait 1m", "tenure lock build -- true"] {
        let said = human.run(refusing(&env, &["socketpair:24"], &format!("exec {line}")));
        page.show(human.pid(), line, said, Some("internal"));
    }
    let ends = format!(
        "tenure end {} --kill --grace 1ms --reason 'it hangs'",
        handle(&codex)
    );
    for calls in ["pidfd_open:38", "pidfd_send_signal:0"] {
        let said = human.run(refusing(&env, &[calls], &format!("exec {ends}")));
        page.show(human.pid(), &ends, said, Some("not_killed"));
    }
    page.check(&env);
}

//! Other namespaces, made with unshare(1) and mount(8) if this system allows it.

use std::process::Command;

use tenure_core::process::Sighting;
use tenure_host::process::look;

use crate::child::{Owned, again, answers, observer, skipped};

/// Runs a task in another namespace; `None`, with a message, if that is not allowed.
fn elsewhere(wrapper: &[&str], task: &str) -> Option<Vec<String>> {
    let mut wrapper = wrapper.to_vec();
    if !rustix::process::geteuid().is_root() {
        // A user namespace gives the right to create the others.
        wrapper.insert(1, "-r");
    }
    let allowed =
        |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    let mut probe = Command::new(wrapper[0]);
    if !allowed(probe.args(&wrapper[1..]).arg("true")) {
        skipped(&format!("{wrapper:?} is not allowed here"));
        return None;
    }
    let output = again(&wrapper, task).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(answers(&output))
}

#[test]
fn f_l04_another_pid_namespace_is_told_apart() {
    let Some(seen) = elsewhere(&["unshare", "-pf", "--mount-proc"], "observe") else {
        return;
    };
    assert_ne!(seen[0], observer().pid_ns.to_string());
    // It is pid 1 there, without ancestors.
    assert_eq!(seen[1..], ["true", "false", "1", "false"]);
}

#[test]
fn f_l18_a_proc_of_another_namespace_is_noticed() {
    let Some(seen) = elsewhere(&["unshare", "-pf"], "observe") else {
        return;
    };
    assert_eq!(seen[1], "false");
    assert_eq!(seen[3..], ["0", "true"]);
}

#[test]
fn f_l15_a_time_namespace_shows_the_same_start_and_the_same_clock() {
    let child = Owned::start("sleep", &["1000"]);
    let Sighting::Present { start, .. } = look(child.pid()) else {
        panic!("not seen")
    };
    let wrapper = [
        "unshare",
        "-T",
        "-f",
        "--boottime",
        "86400",
        "--monotonic",
        "172800",
    ];
    let Some(seen) = elsewhere(&wrapper, &format!("look {}", child.pid())) else {
        return;
    };
    let possible =
        [start.ticks - 1, start.ticks, start.ticks + 1].map(|ticks| format!("ticks: {ticks},"));
    assert!(
        possible.iter().any(|ticks| seen[0].contains(ticks)),
        "{start:?} and {seen:?}"
    );
    assert!(seen[0].contains("shifted: true"));

    let steady = || tenure_host::clock::now(&observer().boot).steady;
    let before = steady();
    let inside: i64 = elsewhere(&wrapper, "steady").unwrap()[0].parse().unwrap();
    assert!(
        (before..=steady()).contains(&inside),
        "{before} then {inside}"
    );
}

#[test]
fn f_l20_a_boot_id_that_was_mounted_over_is_private() {
    let own = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(own.path(), "11111111-2222-3333-4444-555555555555\n").unwrap();
    let script = format!(
        "mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$@\"",
        own.path().display()
    );
    let Some(seen) = elsewhere(&["unshare", "-m", "sh", "-c", &script, "sh"], "observe") else {
        return;
    };
    assert_eq!(seen[2], "true");
}

#[test]
fn f_l16_a_living_process_that_proc_hides_is_not_absent() {
    let child = Owned::start("sleep", &["1000"]);
    let script = "mount -t tmpfs none /proc && exec \"$@\"";
    let wrapper = ["unshare", "-m", "sh", "-c", script, "sh"];
    let Some(seen) = elsewhere(&wrapper, &format!("look {}", child.pid())) else {
        return;
    };
    assert!(seen[0].starts_with("Unreadable"), "{seen:?}");
}

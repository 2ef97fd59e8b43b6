//! Notifications of what a keeper records.

use std::path::PathBuf;

use serde_json::json;
use tenure_testkit::{Env, poll};

use crate::late_answers::{hook, starts};
use crate::machine::{Machine, SOON, kept, kill9};

/// Nobody runs a command, and no watch runs.
#[test]
#[ignore = "needs PostgreSQL"]
fn the_keeper_notifies_of_a_death_that_nobody_looks_at_and_its_watch_ends_with_it() {
    let (_server, env) = kept(&[("TENURE_HOST_LEASE", "10m")]);
    let told = to_file(&env);
    let a = Machine::new(&env, "a");
    let _keeper_runs = a.session("codex");
    let ann = a.session("claude");
    a.run(&ann, 0, "claim wp:1");
    let stands = || watches_of(&env);
    poll(SOON, "the process beside the keeper", || {
        (stands().len() == 1).then_some(())
    });
    ann.kill9();
    let died = poll(SOON, "the notification", || {
        let told = fs_err::read_to_string(&told).ok()?;
        told.contains("\"event\":\"died\"").then_some(told)
    });
    assert!(died.contains("wp:1"), "{died}");
    assert_eq!(died.lines().count(), 1, "{died}");
    kill9(a.keeper_pid());
    let first = stands();
    poll(SOON, "it ended with its keeper", || {
        stands()
            .iter()
            .all(|pid| !first.contains(pid))
            .then_some(())
    });
}

/// The processes beside keepers of this environment.
fn watches_of(env: &Env) -> Vec<u32> {
    let home = format!("HOME={}", env.home().display());
    let all = fs_err::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|one| one.file_name().to_str()?.parse().ok());
    let has = |pid: u32, name: &str, part: &str| {
        let bytes = fs_err::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        bytes
            .split(|byte| *byte == 0)
            .any(|one| one == part.as_bytes())
    };
    pids.filter(|pid| has(*pid, "cmdline", "stand") && has(*pid, "environ", &home))
        .collect()
}

/// A channel that appends each event to a file; the file.
fn to_file(env: &Env) -> PathBuf {
    let told = env.dir().join("told");
    let config = env.home().join(".config/tenure");
    fs_err::create_dir_all(&config).unwrap();
    let channel = format!(
        "[[notify]]\nchannel = \"command\"\ncommand = \"cat >>{}\"\n",
        told.display()
    );
    fs_err::write(config.join("config.toml"), channel).unwrap();
    told
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_hook_notifies_of_a_failed_turn_that_the_keeper_recorded() {
    let (_server, env) = kept(&[("TENURE_HOST_LEASE", "10m"), ("TENURE_HOOK_WAIT", "1s")]);
    let told = to_file(&env);
    let a = Machine::new(&env, "a");
    let _keeper_runs = a.session("codex");
    let claude = starts(&a);
    hook(&a, &claude, "UserPromptSubmit", json!({"prompt": "go on"}));
    hook(&a, &claude, "StopFailure", json!({"error": "server_error"}));
    poll(SOON, "the notification", || {
        let told = fs_err::read_to_string(&told).ok()?;
        told.contains("\"event\":\"failed\"").then_some(())
    });
}

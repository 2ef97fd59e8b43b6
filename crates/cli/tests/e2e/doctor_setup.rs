//! What `tenure doctor` finds about programs, hooks, the dispatcher and its jobs.

use std::fs;

use rusqlite::Connection;
use tenure_testkit::fake_forge::{Dialect, InjectedFault};
use tenure_testkit::{Agent, Cmd, Env, Scripted, poll};

use crate::support::doctor::{codes, config, doctor, finds, healthy, is_fixed, mode, plant};
use crate::support::forge_api::{conversations, set_up_forge};
use crate::support::line::{SOON, session};
use crate::support::run::{kill9, newest, pid_of, runner_of, until};
use crate::support::webhook::{Dispatcher, issue, set_up};

/// The hooks of Claude Code, which are installed.
fn hooked(env: &Env) -> (std::path::PathBuf, String) {
    let settings = env.home().join(".claude/settings.json");
    fs::create_dir_all(settings.parent().expect("a directory")).expect("it is ours");
    env.tenure(&["install", "claude"]).ok();
    healthy(env);
    let text = fs::read_to_string(&settings).expect("it is there");
    (settings, text)
}

#[test]
fn hooks_that_are_missing_or_outdated() {
    let env = crate::env();
    let settings = env.home().join(".claude/settings.json");
    fs::create_dir_all(settings.parent().expect("a directory")).expect("it is ours");
    fs::write(&settings, "{}").expect("it is ours");
    finds(&env, "hooks_missing");
    env.tenure(&["install", "claude"]).ok();
    healthy(&env);
    let installed = fs::read_to_string(&settings).expect("it is there");
    let without = installed.replacen("\"Stop\"", "\"Other\"", 1);
    assert_ne!(without, installed);
    fs::write(&settings, without).expect("it is ours");
    is_fixed(&env, "hooks_outdated");
}

#[test]
fn hooks_of_a_program_that_is_gone() {
    let env = crate::env();
    let (settings, installed) = hooked(&env);
    let own = env.tenure_path().display().to_string();
    assert!(installed.contains(&own), "{installed}");
    fs::write(&settings, installed.replace(&own, "/gone/tenure")).expect("it is ours");
    is_fixed(&env, "hooks_dead");
    let now = fs::read_to_string(&settings).expect("it is there");
    assert!(now.contains(&own), "{now}");
}

#[test]
fn hooks_that_run_twice() {
    let env = crate::env();
    let (settings, installed) = hooked(&env);
    let mut doubled: serde_json::Value = serde_json::from_str(&installed).expect("JSON");
    let stop = doubled["hooks"]["Stop"].as_array_mut().expect("a list");
    stop.push(stop[0].clone());
    fs::write(&settings, doubled.to_string()).expect("it is ours");
    let report = is_fixed(&env, "hooks_duplicated");
    assert!(report.to_string().contains("Stop twice"), "{report}");
}

#[test]
fn hooks_that_the_agent_does_not_trust() {
    let env = crate::env();
    fs::create_dir_all(env.home().join(".codex")).expect("it is ours");
    healthy_but(&env, "hooks_missing");
    env.tenure(&["install", "codex"]).ok();
    let found = finds(&env, "hooks_untrusted");
    assert!(found.to_string().contains("codex"), "{found}");
    env.tenure(&["uninstall", "codex"]).ok();
    healthy_but(&env, "hooks_missing");
}

/// Finds this alone.
#[track_caller]
fn healthy_but(env: &Env, code: &str) {
    let found = codes(&doctor(env, 6, &[]));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [code]);
}

#[test]
fn settings_of_an_agent_that_cannot_be_read() {
    let env = crate::env();
    let (settings, installed) = hooked(&env);
    fs::write(&settings, "{\"hooks\": ").expect("it is ours");
    let found = finds(&env, "hooks_unreadable");
    assert!(found.to_string().contains("settings.json"), "{found}");
    fs::write(&settings, installed).expect("it is ours");
    healthy(&env);
}

#[test]
fn a_lock_of_openclaw_that_nobody_holds() {
    let env = crate::env();
    let (_ann, home) = (session(&env, "ann"), env.home().join(".openclaw"));
    fs::create_dir_all(home.join("agents")).expect("it is ours");
    env.tenure(&["install"]).ok();
    healthy(&env);
    let dir = home.join("tmp/openclaw-0");
    let reclaim = dir.join("gateway.state.lock.reclaim");
    fs::create_dir_all(&reclaim).expect("it is ours");
    let sidecar = Connection::open(dir.join("gateway.state.lock.sqlite")).expect("it can be made");
    sidecar.execute_batch("CREATE TABLE held (x)").expect("sql");
    drop(sidecar);
    is_fixed(&env, "openclaw_wrong");
    assert!(!reclaim.exists());
}

#[test]
fn a_dispatch_toml_that_is_wrong() {
    let env = crate::env();
    let file = config(&env, "dispatch.toml", "[forge.x]\nkind = 1\n");
    finds(&env, "dispatch_config");
    fs::remove_file(file).expect("it is ours");
    healthy(&env);
}

#[test]
fn a_program_beside_that_is_of_another_version() {
    let env = crate::env();
    let dir = env.dir().join("bin2");
    fs::create_dir(&dir).expect("the environment is ours");
    let own = dir.join("tenure");
    fs::copy(env.tenure_path(), &own).expect("it is ours");
    let beside = dir.join("tenure-server");
    fs::write(&beside, "#!/bin/sh\necho tenure 0.0.1\n").expect("it is ours");
    mode(&beside, 0o755);
    let agent = env.agent("ann");
    let asked = |agent: &Agent| {
        let words = Cmd::new(own.to_str().expect("text")).args(["doctor", "--json"]);
        codes(&agent.run(words).json())
    };
    assert!(asked(&agent).contains("program_beside"));
    fs::remove_file(&beside).expect("it is ours");
    assert!(!asked(&agent).contains("program_beside"));
}

#[test]
fn a_job_that_waits_for_a_person() {
    let env = crate::env();
    let ann = session(&env, "ann");
    ann.tenure(&["run", "ann", "wp:1", "--prompt", "hello", "--queue"])
        .ok();
    healthy(&env);
    plant(
        &env,
        "UPDATE jobs SET state = 'parked', parked_for = 'attempts', parked_why = 'it did not start', parked_until = NULL",
    );
    let found = finds(&env, "job_parked");
    assert!(found.to_string().contains("it did not start"), "{found}");
    plant(&env, "DELETE FROM jobs");
    healthy(&env);
}

#[test]
fn a_result_that_is_not_published() {
    let env = crate::env();
    let mine = Scripted::new(&env, "mine", "init; done_");
    let ann = session(&env, "ann");
    ann.tenure(&["run", "mine", "wp:1", "--prompt", "hello", "--queue"])
        .ok();
    let dispatcher = ann.start(Cmd::new("tenure").args(["dispatch", "--json"]));
    until(&env, "it is over", |run| run["state"] == "ended");
    poll(SOON, "the job is over", || {
        let jobs = env.tenure(&["queue", "--all", "--json"]).ok().json();
        (jobs["jobs"][0]["state"] == "ended").then_some(())
    });
    dispatcher.kill9();
    drop(mine);
    healthy(&env);
    plant(&env, "UPDATE jobs SET unpublished = 'its rule asks'");
    let found = finds(&env, "job_unpublished");
    assert!(found.to_string().contains("its rule asks"), "{found}");
    plant(&env, "UPDATE jobs SET unpublished = NULL");
    healthy(&env);
}

#[test]
fn a_run_past_its_timeout_without_a_runner() {
    let env = crate::env();
    let mine = Scripted::new(&env, "mine", "init; ready $dir/on; hold $dir/flag");
    mine.keep("flag");
    let ann = session(&env, "ann");
    let queued = [
        "run",
        "mine",
        "wp:1",
        "--prompt",
        "do it",
        "--queue",
        "--timeout",
        "2s",
    ];
    ann.tenure(&queued).ok();
    let dispatcher = ann.start(Cmd::new("tenure").args(["dispatch", "--json"]));
    poll(SOON, "the agent works", || mine.wrote("on"));
    let hangs = newest(&env);
    dispatcher.kill9();
    kill9(&ann, runner_of(&hangs));
    until(&env, "its time is over", |run| run["past_timeout"] == true);
    let found = finds(&env, "job_left");
    assert!(
        found["advice"].to_string().contains("tenure queue"),
        "{found}"
    );
    kill9(&ann, pid_of(&hangs));
}

#[test]
fn an_endpoint_that_refuses_every_delivery() {
    let env = crate::env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = session(&env, "ann");
    let door = Dispatcher::start(&ann);
    healthy(&env);
    let headers = [
        ("X-Forgejo-Event", "issues"),
        ("X-Forgejo-Signature", "00"),
        ("Content-Type", "application/json"),
    ];
    for _ in 0..10 {
        assert_eq!(door.send("POST", "/hooks/home", &headers, b"{}").0, 401);
    }
    poll(SOON, "its note has it", || {
        let report = env.tenure(&["doctor", "--json"]).json();
        codes(&report).contains("endpoint_refuses").then_some(())
    });
    let found = finds(&env, "endpoint_refuses");
    assert!(found.to_string().contains("signature"), "{found}");
    door.process.kill9();
    healthy(&env);
}

#[test]
fn a_forge_that_does_not_answer() {
    let env = crate::env();
    Scripted::new(&env, "mine", "init c-$TENURE_RUN; done_");
    let forge = set_up_forge(&env, Dialect::Forgejo, "sweep = \"200ms\"", "");
    let ann = session(&env, "ann");
    let door = Dispatcher::start(&ann);
    // The sweep asks for what has a conversation.
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "it has a conversation", || {
        (conversations(&env).len() == 1).then_some(())
    });
    healthy(&env);
    let gone = || InjectedFault::Status(500, Vec::new(), "no");
    forge.state().fail("", usize::MAX, gone());
    poll(SOON, "its note has it", || {
        let report = env.tenure(&["doctor", "--json"]).json();
        codes(&report).contains("forge_failing").then_some(())
    });
    forge.state().faults.clear();
    poll(SOON, "it answers", || {
        let report = env.tenure(&["doctor", "--json"]).json();
        (!codes(&report).contains("forge_failing")).then_some(())
    });
    door.process.kill9();
}

#[test]
fn a_wrap_that_does_not_start() {
    let env = crate::env();
    Scripted::new(&env, "mine", "init; done_");
    let _ann = session(&env, "ann");
    set_up(&env, "wrap = [\"/gone/wrapper\"]");
    let found = finds(&env, "wrap_fails");
    assert!(found.to_string().contains("/gone/wrapper"), "{found}");
    set_up(&env, "");
    healthy(&env);
}

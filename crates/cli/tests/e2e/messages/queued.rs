//! Why a job does not run, and what the log says about runners that are late or gone.

use serde_json::{Value, json};
use tenure_testkit::{Agent, Background, Cmd, Env, Scripted, poll, scratch_git};

use super::page::Page;
use crate::env;
use crate::support::dispatch::fill_in;
use crate::support::forge::forge as change;
use crate::support::forge_api::jobs;
use crate::support::line::{SOON, session, text};
use crate::support::run::{kill9, until};
use crate::support::webhook::{Dispatcher, comment, set_up};

fn enqueue(human: &Agent, item: &str, prompt: &str) -> String {
    let words = ["run", "mine", item, "--queue", "--prompt", prompt, "--json"];
    text(&human.tenure(&words).ok().json()["job"]["id"])
}

fn dispatch(human: &Agent) -> Background {
    human.start(Cmd::new("tenure").args(["dispatch", "--json"]))
}

#[track_caller]
fn job_until(env: &Env, item: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    poll(SOON, what, || {
        let mut all = jobs(env).into_iter();
        all.find(|job| job["item"] == item && is(job))
    })
}

/// A program `git` that waits before it makes a worktree, as long as a file is there; that file, and the one that it
/// makes when it waits.
fn slow_git(env: &Env) -> (std::path::PathBuf, std::path::PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let (program, flag, on) = (
        env.dir().join("bin/git"),
        env.dir().join("git-waits"),
        env.dir().join("git-on"),
    );
    let real = std::env::var("PATH").expect("there is one");
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' worktree add '*) : >{on}; while [ -e {flag} ]; do sleep 0.02; done; rm {on};; esac\n\
         PATH={real} exec git \"$@\"\n",
        on = on.display(),
        flag = flag.display()
    );
    std::fs::write(&flag, "").expect("the environment is ours");
    std::fs::write(&program, script).expect("the environment is ours");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it was just made");
    (flag, on)
}

#[test]
fn queued() {
    let env = env();
    let mut page = Page::new("76-queue-reasons", &env);
    let human = session(&env, "human");
    let mine = Scripted::new(&env, "mine", "init c-$TENURE_RUN; hold $dir/flag; done_");
    mine.keep("flag");
    page.title("Two jobs of one conversation");
    let (first, second) = (
        enqueue(&human, "wp:1", "one"),
        enqueue(&human, "wp:1", "two"),
    );
    page.learn(&env);
    page.run(&human, &format!("tenure queue explain {second}"));
    page.run(&human, "tenure queue --limit 1");
    human.tenure(&["queue", "cancel", &second]).ok();
    page.run(&human, &format!("tenure queue explain {second}"));
    page.title("A runner whose job another one has");
    let dispatcher = dispatch(&human);
    job_until(&env, "wp:1", "it runs", |job| job["state"] == "begun");
    until(&env, "it is named", |run| run["native_id"].is_string());
    dispatcher.kill9();
    change(
        &env,
        "UPDATE jobs SET start_ticks = start_ticks + 1 WHERE state = 'begun'",
    );
    std::fs::remove_file(mine.file("flag")).expect("it was kept");
    until(&env, "the run ends", |run| run["state"] == "ended");
    page.learn(&env);
    page.run(&human, "tenure log wp:1");
    page.title("A job that has ended");
    change(
        &env,
        "UPDATE jobs SET start_ticks = start_ticks - 1 WHERE state = 'begun'",
    );
    enqueue(&human, "wp:4", "four");
    let dispatcher = dispatch(&human);
    let ended = job_until(&env, "wp:4", "it ends", |job| job["state"] == "ended");
    dispatcher.kill9();
    page.learn(&env);
    page.run(
        &human,
        &format!("tenure queue explain {}", text(&ended["id"])),
    );
    assert_ne!(first, second);
    page.check(&env);
}

#[test]
fn runners() {
    let env = env();
    let mut page = Page::new("76-lost-runners", &env);
    let human = session(&env, "human");
    Scripted::new(&env, "mine", "init c-$TENURE_RUN; done_");
    let repo = env.dir().join("web");
    scratch_git(&repo, None);
    let (flag, on) = slow_git(&env);
    let enqueue = |item: &str| {
        let words = [
            "run",
            "mine",
            item,
            "--queue",
            "--worktree",
            "--prompt",
            "do it",
        ];
        human.tenure_in(&repo, &words).ok();
        poll(SOON, "git waits", || on.exists().then_some(()));
        job_until(&env, item, "it was taken", |job| job["state"] == "starting")
    };
    page.title("A runner that dies before its agent starts");
    let dispatcher = dispatch(&human);
    let job = enqueue("wp:2");
    let pid = job["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    kill9(&human, pid.expect("a runner has it"));
    job_until(&env, "wp:2", "it is queued again", |job| {
        job["state"] == "queued"
    });
    dispatcher.kill9();
    page.learn(&env);
    page.run(
        &human,
        &format!("tenure queue explain {}", text(&job["id"])),
    );
    page.run(&human, "tenure log wp:2");
    human.tenure(&["queue", "cancel", &text(&job["id"])]).ok();
    std::fs::remove_file(&flag).expect("it was kept");
    poll(SOON, "the first git goes on", || {
        (!on.exists()).then_some(())
    });
    std::fs::write(&flag, "").expect("the environment is ours");
    page.title("A runner that comes too late");
    let dispatcher = dispatch(&human);
    let job = enqueue("wp:3");
    dispatcher.kill9();
    change(
        &env,
        "UPDATE jobs SET attempt = attempt + 1 WHERE item = 'wp:3'",
    );
    std::fs::remove_file(&flag).expect("it was kept");
    poll(SOON, "it is logged", || {
        let log = env.tenure(&["log", "wp:3"]).ok().stdout;
        log.contains("job.late").then_some(())
    });
    assert_eq!(job["state"], "starting");
    page.learn(&env);
    page.run(&human, "tenure log wp:3");
    page.check(&env);
}

#[test]
fn breaker() {
    let env = env();
    let mut page = Page::new("76-breaker", &env);
    let human = session(&env, "human");
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    fill_in(&env, "listen", "breaker = 1\nlisten");
    let door = Dispatcher::start(&human);
    let rests = || {
        poll(SOON, "it ran, or is parked", || {
            let over = |job: &Value| job["state"] == "ended" || job["state"] == "parked";
            jobs(&env).iter().all(over).then_some(())
        });
    };
    for number in 0..2 {
        let mut pong = comment(6, 100 + number, "bob", "ping");
        pong["sender"]["type"] = json!("Bot");
        door.deliver("issue_comment", &format!("pong-{number}"), &pong);
        rests();
    }
    page.title("A loop of bots");
    page.learn(&env);
    page.run(&human, "tenure queue");
    page.title("A person asks");
    door.deliver("issue_comment", "d-1", &comment(6, 1, "alice", "go on"));
    poll(SOON, "all run", || {
        let over = |job: &Value| job["state"] == "ended";
        jobs(&env).iter().all(over).then_some(())
    });
    door.process.kill9();
    page.learn(&env);
    page.run(&human, "tenure log issue:acme/web#6");
    page.check(&env);
}

//! The queue, and the dispatcher that works it.

use tenure_testkit::{Cmd, Env, Signal, poll};

use super::page::Page;
use crate::support::line::{SOON, session, text};
use crate::support::run::fake_claude;

pub(super) fn jobs(env: &mut Env, page: &mut Page) {
    let human = session(env, "human");
    let listed = || env.tenure(&["queue", "--all", "--json"]).ok().json();
    page.title("Queue");
    page.run(&human, "tenure queue");
    fake_claude(env, "keeps; init; ok 'the test passes now'");
    page.run_once(
        &human,
        "tenure run claude wp:1 --prompt 'fix the test' --queue",
        None,
    );
    page.run_once(
        &human,
        "tenure run claude wp:1 --prompt 'fix the test' --queue",
        None,
    );
    page.run_once(
        &human,
        "tenure run claude wp:2 --skill missing --queue",
        None,
    );
    page.run_once(
        &human,
        "tenure run claude wp:3 --prompt 'and this' --queue",
        None,
    );
    page.learn(env);
    let jobs = listed();
    let id = |item: &str| {
        let jobs = jobs["jobs"].as_array().expect("a list");
        let job = jobs.iter().find(|job| job["item"] == item);
        text(&job.expect("it is queued")["id"])
    };
    let (first, second, third) = (id("wp:1"), id("wp:2"), id("wp:3"));
    page.run(&human, "tenure queue");
    page.run(&human, "tenure runs --queued --item wp:1");
    page.run(&human, &format!("tenure queue show {first}"));
    page.run(&human, &format!("tenure queue explain {first}"));
    page.run_once(
        &human,
        &format!("tenure queue cancel {third} --reason 'done by hand'"),
        None,
    );
    page.title("Dispatch");
    let worker = human.start(Cmd::new("tenure").args(["dispatch", "--concurrency", "1"]));
    poll(SOON, "the first runs, the second cannot", || {
        let jobs = listed();
        let of = |id: &str| {
            let jobs = jobs["jobs"].as_array().expect("a list");
            jobs.iter().find(|job| job["id"] == id).cloned()
        };
        let ran = of(&first)?["state"] == "ended";
        (ran && of(&second)?["failures"] == 1).then_some(())
    });
    poll(SOON, "both were reported", || {
        (worker.stdout().lines().count() == 4).then_some(())
    });
    assert!(worker.signal(Signal::TERM));
    let said = worker.wait().ok();
    page.learn(env);
    page.show(human.pid(), "tenure dispatch --concurrency 1", said, None);
    page.run(&human, "tenure queue --all");
    page.run(&human, &format!("tenure queue show {second}"));
    page.run_once(&human, &format!("tenure queue retry {second}"), None);
    page.title("Queue: refused");
    page.run(&human, &format!("tenure queue retry {first}"));
    page.run(&human, &format!("tenure queue cancel {first}"));
    page.run(&human, &format!("tenure queue retry {third}"));
    page.run(&human, "tenure queue show j-nothing");
    page.run(&human, "tenure queue deliveries");
    page.title("What the log says");
    page.run(&human, "tenure log wp:1");
    page.run(&human, "tenure log wp:2");
    page.run(&human, "tenure log wp:3");
}

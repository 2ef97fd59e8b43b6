//! Runs and conversations that others interfere with.

use tenure_testkit::{Cmd, Scripted, poll};

use super::page::Page;
use crate::env;
use crate::support::forge::{forge, forge_process};
use crate::support::installed::put;
use crate::support::line::{SOON, register, session, text};
use crate::support::run::{fake_claude, newest, run as to_its_end, start, until, wrapped};
use crate::support::webhook::{Dispatcher, issue, set_up};

#[test]
fn runs() {
    let env = env();
    let mut page = Page::new("52-runs-wrapped", &env);
    let human = session(&env, "human");
    page.title("An agent that a wrapper starts");
    wrapped(
        &env,
        "printf '{\"hook_event_name\":\"SessionStart\",\"session_id\":\"%s\"}' $id | tenure hook claude >/dev/null
         keeps; init; ok 'the test passes now'",
    );
    page.run(&human, "tenure run claude wp:1 --prompt 'fix the test'");
    page.run(&human, "tenure log wp:1");
    page.run(&human, "tenure log claude");
    page.title("A conversation that the agent deletes while it resumes it");
    fake_claude(&env, "keeps; init; ok 'the test passes now'");
    to_its_end(&human, "claude wp:2").ok();
    fake_claude(
        &env,
        "if [ $mode = resume ]; then rm $file; unknown; fi; keeps; init; ok 'started again'",
    );
    page.run(&human, "tenure run claude wp:2 --prompt 'fix the test'");
    page.run(&human, "tenure log wp:2");
    page.check(&env);
}

#[test]
fn stops() {
    let env = env();
    let mut page = Page::new("52-runs-stopped", &env);
    let human = session(&env, "human");
    let mine = Scripted::new(&env, "mine", "");
    let begin = |number: u32| {
        let item = format!("wp:{number}");
        mine.does(&format!(
            "trap '' TERM INT HUP; init c-{number}; ready $dir/on; hold $dir/flag; done_"
        ));
        mine.keep("flag");
        drop(std::fs::remove_file(mine.file("on")));
        let window = start(&human, &format!("mine {item} --share-dir"));
        poll(SOON, "the agent works", || mine.wrote("on"));
        let run = until(&env, "it is named", |run| {
            run["item"] == item.as_str() && run["native_id"].is_string()
        });
        (window, text(&run["id"]))
    };
    let go = || std::fs::remove_file(mine.file("flag")).expect("it is ours");
    page.title("A run that does not end at once");
    let (window, id) = begin(1);
    page.learn(&env);
    let words = ["runs", "stop", &id, "--reason", "not needed"];
    let stop = human.start(Cmd::new("tenure").args(words));
    until(&env, "it was asked", |run| run["stop_asked"].is_object());
    page.run(&human, "tenure runs");
    go();
    drop((stop.wait(), window.wait()));
    page.title("A conversation that is dropped while a run is in it");
    let (window, _) = begin(2);
    page.learn(&env);
    let drops = ["conversation", "drop", "wp:2", "--stop"];
    let drops = human.start(Cmd::new("tenure").args(drops));
    until(&env, "it was asked", |run| run["stop_asked"].is_object());
    go();
    page.show(
        human.pid(),
        "tenure conversation drop wp:2 --stop",
        drops.wait(),
        None,
    );
    drop(window.wait());
    page.run(&human, "tenure log wp:2");
    page.title("A run whose processes cannot be seen");
    let (window, id) = begin(3);
    page.learn(&env);
    let away = |by: i32| {
        let set = format!("pid_ns = pid_ns + {by}");
        forge(
            &env,
            &format!("UPDATE runs SET {set}; UPDATE sessions SET {set} WHERE agent = 'mine'"),
        );
    };
    away(1);
    page.run(
        &human,
        &format!("tenure runs stop {id} --abandon --reason 'the host is gone'"),
    );
    page.run(&human, &format!("tenure runs show {id}"));
    go();
    drop(window.wait());
    page.check(&env);
}

#[test]
fn conversations() {
    let env = env();
    let mut page = Page::new("53-conversations-changed", &env);
    let human = session(&env, "human");
    page.title("A conversation that moves");
    let other = env.dir().join("other");
    std::fs::create_dir(&other).expect("the environment is ours");
    page.run(&human, "tenure conversation set claude wp:1 7f3c");
    let moved = format!(
        "tenure conversation set claude wp:1 7f3c --dir {}",
        other.display()
    );
    page.run(&human, &moved);
    page.run(&human, "tenure log wp:1");
    page.title("A conversation of a session that cannot be seen");
    let file = env.home().join(".claude/projects/work/8a1b.jsonl");
    put(&file, "{}\n");
    page.run(&human, "tenure conversation set claude wp:2 8a1b");
    let claude = env.agent("claude");
    let id = text(&register(&claude, "claude", "--native-id 8a1b")["session"]["id"]);
    forge_process(&env, &id, "pid_ns = pid_ns + 1");
    fake_claude(&env, "keeps; init; ok hi");
    page.run(&human, "tenure run claude wp:2 --prompt 'fix it'");
    forge_process(&env, &id, "pid_ns = pid_ns - 1");
    page.title("A conversation that its agent deleted");
    to_its_end(&human, "claude wp:3").ok();
    let native = text(&newest(&env)["native_id"]);
    let file = format!(".claude/projects/work/{native}.jsonl");
    std::fs::remove_file(env.home().join(file)).expect("it is there");
    page.run(&human, "tenure status");
    let marker = env.state().join("conversations.looked-for");
    let marker = std::fs::File::options().write(true).open(marker);
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 3600);
    let set = marker.and_then(|marker| marker.set_modified(yesterday));
    set.expect("it was made");
    to_its_end(&human, "claude wp:4").ok();
    page.learn(&env);
    page.run(&human, "tenure log wp:3");
    page.check(&env);
}

/// Items that are closed and reopened at their forge.
#[test]
fn closings() {
    let env = env();
    let mut page = Page::new("53-closed-items", &env);
    let human = session(&env, "human");
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let door = Dispatcher::start(&human);
    page.title("An issue is closed and reopened");
    let item = "issue:acme/web#6";
    page.run(&human, &format!("tenure conversation set mine {item} 7f3c"));
    for (delivery, what) in [("d-1", "closed"), ("d-2", "reopened")] {
        let (status, answer) = door.deliver("issues", delivery, &issue(6, what));
        assert_eq!(status, 202, "{what}: {answer}");
    }
    page.run(&human, &format!("tenure log {item}"));
    page.run(&human, "tenure conversation list");
    assert!(door.process.signal(tenure_testkit::Signal::TERM));
    drop(door.process.wait());
    page.check(&env);
}

//! How runs end: by signals, without a runner, with a store that does not answer.

use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;
use serde_json::Value;
use tenure_testkit::{Cmd, Scripted, Signal, poll};

use super::page::Page;
use crate::env;
use crate::run_logs::on_a_small_disk;
use crate::support::forge::forge;
use crate::support::installed::put;
use crate::support::line::{SOON, session, text};
use crate::support::preload::library;
use crate::support::run::{fake_claude, kill9, newest, pid_of, runner_of, start, until};

/// Works until it is ended, without children that would survive it.
const WORKS: &str = "keeps; init; reply working; : >$dir/said; exec sleep 1000";

const DENIED: &str = r#"say "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":\"\",\"session_id\":\"$id\",\"permission_denials\":[{\"tool_name\":\"Bash\"}]}""#;

#[test]
fn run_ends() {
    let env = env();
    let mut page = Page::new("66-run-ends", &env);
    let human = session(&env, "human");
    page.learn(&env);
    page.title("What an agent does");
    fake_claude(&env, "keeps; init; kill -9 $$");
    page.run_once(&human, "tenure run claude wp:1 --prompt 'fix it'", None);
    fake_claude(&env, &format!("keeps; init; {DENIED}"));
    page.run_once(&human, "tenure run claude wp:2 --prompt 'fix it'", None);
    let opencode = env.dir().join("bin/opencode");
    let step = r#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"unknown"}}"#;
    put(
        &opencode,
        &format!(
            "#!/bin/sh\ncase \"$*\" in run*) ;; *) echo '[]'; exit 0;; esac\ni=0; while [ $i -lt 30 ]; do echo '{step}'; i=$((i + 1)); done\n\
             exec sleep 1000\n"
        ),
    );
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&opencode, mode).expect("it was just made");
    page.run_once(&human, "tenure run opencode wp:3 --prompt 'fix it'", None);
    page.title("A runner that gets a signal, or is killed");
    let said = fake_claude(&env, WORKS).join("said");
    let begin = |item: &str| {
        std::fs::remove_file(&said).ok();
        let window = start(&human, &format!("claude {item}"));
        let run = until(&env, "it runs", |run| {
            run["item"] == item && run["pid"].is_u64() && run["native_id"].is_string()
        });
        poll(SOON, "it has said that", || said.exists().then_some(()));
        (window, run)
    };
    let typed = |item: &str| format!("tenure run claude {item} --prompt 'do it'");
    let (window, run) = begin("wp:4");
    let runner = runner_of(&run).to_string();
    human.run(Cmd::new("kill").args(["-TERM", &runner])).ok();
    page.show(human.pid(), &typed("wp:4"), window.wait(), None);
    let (window, _) = begin("wp:5");
    poll(SOON, "the window shows it", || {
        window.stderr().contains("run r-").then_some(())
    });
    assert!(window.signal(Signal::INT));
    page.show(human.pid(), &typed("wp:5"), window.wait(), None);
    page.learn(&env);
    let (window, run) = begin("wp:6");
    let (id, agent) = (text(&run["id"]), pid_of(&run));
    window.kill9();
    kill9(&human, runner_of(&run));
    page.learn(&env);
    page.run(&human, "tenure status");
    kill9(&human, agent);
    page.run(&human, "tenure status");
    page.run(&human, &format!("tenure runs show {id}"));
    let log = env.state().join("runs").join(&id);
    std::fs::remove_dir_all(log).expect("it is ours");
    page.run(&human, &format!("tenure runs resume {id}"));
    let (window, run) = begin("wp:7");
    let agent = pid_of(&run);
    window.kill9();
    kill9(&human, runner_of(&run));
    kill9(&human, agent);
    forge(&env, "UPDATE runs SET begun_at = NULL WHERE item = 'wp:7'");
    page.run(&human, &format!("tenure runs show {}", text(&run["id"])));
    page.title("A shell that ignores the end of its children");
    fake_claude(&env, "keeps; init; ok 'done'");
    let line = "tenure run claude wp:8 --prompt 'fix it'";
    let typed_line = format!("env --ignore-signal=CHLD {line}");
    let said = human.run(Cmd::shell(&format!("exec {typed_line}")));
    page.show(human.pid(), &typed_line, said, None);
    page.title("A conversation whose run does not stop");
    fake_claude(&env, WORKS);
    let (window, run) = begin("wp:9");
    let runner = runner_of(&run).to_string();
    let drops = "tenure conversation drop wp:9 --stop";
    human.run(Cmd::new("kill").args(["-STOP", &runner])).ok();
    page.learn(&env);
    let hurried = library(&env, "hurried_clock");
    let said = human.run(
        Cmd::new("tenure")
            .args(drops.split(' ').skip(1))
            .env("LD_PRELOAD", hurried),
    );
    page.show(human.pid(), drops, said, Some("timed_out"));
    let waits = human.start(Cmd::new("tenure").args(drops.split(' ').skip(1)));
    poll(SOON, "it catches signals", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", waits.pid)).ok()?;
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
        (caught & 2 != 0).then_some(())
    });
    assert!(waits.signal(Signal::INT));
    page.show(human.pid(), drops, waits.wait(), Some("interrupted"));
    human.run(Cmd::new("kill").args(["-CONT", &runner])).ok();
    drop(window.wait());
    page.check(&env);
}

#[test]
fn run_ends_unrecorded() {
    let env = env();
    let mut page = Page::new("66-run-unrecorded", &env);
    let human = session(&env, "human");
    page.learn(&env);
    page.title("A store that does not answer when a run ends");
    let dir = fake_claude(
        &env,
        "keeps; init; reply working; hold $dir/flag; ok 'all done'",
    );
    put(&dir.join("flag"), "");
    let words = ["run", "claude", "wp:1", "--prompt", "do it"];
    let hurried = library(&env, "hurried_clock");
    let window = human.start(Cmd::new("tenure").args(words).env("LD_PRELOAD", hurried));
    until(&env, "it runs", |run| {
        run["item"] == "wp:1" && run["pid"].is_u64() && run["native_id"].is_string()
    });
    page.learn(&env);
    let held = Connection::open(env.state().join("tenure.db")).expect("it is a database");
    held.execute_batch("BEGIN IMMEDIATE").expect("it is free");
    std::fs::remove_file(dir.join("flag")).expect("it was just made");
    let typed = "tenure run claude wp:1 --prompt 'do it'";
    page.show(human.pid(), typed, window.wait(), None);
    drop(held);
    page.run(&human, "tenure runs --item wp:1");
    page.check(&env);
}

/// What stands in a log for what is missing in it.
#[test]
fn logs() {
    let env = env();
    let mut page = Page::new("66-run-logs", &env);
    let human = session(&env, "human");
    page.learn(&env);
    page.title("A log without its middle");
    let line = "x".repeat(9_999);
    let mine = Scripted::new(
        &env,
        "mine",
        &format!("init; yes {line} | head -n 600 >&2; done_ 'all of it'"),
    );
    page.run_once(&human, "tenure run mine wp:1 --prompt 'fix it'", None);
    let id = text(&newest(&env)["id"]);
    let errors = env.state().join("runs").join(&id).join("errors.txt");
    page.learn(&env);
    let grep = format!("grep tenure.dropped {}", errors.display());
    let said = human.run(Cmd::shell(&grep));
    let dropped: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    page.replace(&dropped["bytes"].to_string(), "2494464");
    page.show(human.pid(), &grep, said, None);
    mine.does(
        "init; work first
         i=0; while [ $i -lt 100 ]; do say \"{\\\"type\\\":\\\"noise\\\",\\\"text\\\":\\\"$(printf '%0100000d' 7)\\\"}\"; i=$((i + 1)); sleep 0.01; done
         work last; done_ 'all of it'",
    );
    let Some((said, log)) = on_a_small_disk(&env, "true") else {
        return;
    };
    page.learn(&env);
    let runs = env.state().join("runs");
    let run = log.file_name().expect("a run").to_string_lossy();
    page.replace(
        &format!("{}/{run}", log.parent().expect("a folder").display()),
        &runs.join(&*run).display().to_string(),
    );
    // How much is missing depends on when the disk was full.
    let missing = said.stderr.split(" MiB in the middle").next();
    let missing = missing.and_then(|before| before.rsplit(' ').next());
    let missing = missing.expect("it says so").to_owned();
    page.replace(&format!("{missing} MiB"), "9 MiB");
    let typed = "tenure run mine wp:1 --prompt 'do it'";
    page.show(human.pid(), typed, said, None);
    let grep = format!("grep tenure.dropped {}", log.join("output.jsonl").display());
    let said = human.run(Cmd::shell(&grep));
    let dropped: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    page.replace(&dropped["bytes"].to_string(), "7471104");
    page.show(human.pid(), &grep, said, None);
    page.check(&env);
}

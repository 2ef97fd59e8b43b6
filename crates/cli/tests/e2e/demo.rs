//! What a newcomer tries first: the demo, the help, completions and manual pages; and the README's picture of the demo.

use std::path::Path;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Background, Cmd, Env, Output, Signal, picture, poll};

use crate::env;
use crate::support::output::{one_object, verbs};

const CHAPTERS: [&str; 7] = [
    "three agents run: tenure ps",
    "the one that waits for you is killed with kill -9, and resumed",
    "three agents claim one item at the same moment",
    "the winner is killed with kill -9; the next claim succeeds at once",
    "the new holder is paused for longer than every timeout, but it is alive",
    "the item is taken over; the reason is logged",
    "a holder of two items is killed; another agent claims one; then it resumes",
];

/// Runs it in less than ten seconds.
fn demo(env: &Env, args: &[&str]) -> Output {
    let worker = env.agent("w");
    worker.set_patience(Duration::from_secs(10));
    let output = worker.tenure(&[&["demo"], args].concat());
    assert_nothing_is_left(env);
    output
}

/// The state directory of every process of the demo lies in this environment's TMPDIR.
fn processes_in(env: &Env) -> Vec<u32> {
    let scratch = env.dir().join("tmp/tenure-demo-");
    let scratch = scratch.to_str().expect("paths of tests are text");
    let all = std::fs::read_dir("/proc")
        .expect("there is a /proc")
        .flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let within = |pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(scratch)
    };
    pids.filter(within).collect()
}

fn assert_nothing_is_left(env: &Env) {
    poll(
        Duration::from_secs(5),
        "the demo's processes are gone",
        || processes_in(env).is_empty().then_some(()),
    );
    let left: Vec<_> = std::fs::read_dir(env.dir().join("tmp"))
        .expect("it is there")
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!env.state().exists(), "the demo used the state directory");
}

#[test]
fn the_demo_plays_its_chapters_and_leaves_nothing_behind() {
    let env = env();
    let output = demo(&env, &[]).ok();
    let chapter = |line: &&str| !line.is_empty() && !line.starts_with(' ');
    let chapters: Vec<&str> = output.stdout.lines().filter(chapter).collect();
    assert_eq!(chapters[..7], CHAPTERS, "{output}");
    assert_eq!(chapters[7..], ["nothing is left behind"], "{output}");
    assert!(output.stdout.contains("refused (exit 5)"), "{output}");
    assert!(
        output.stdout.contains("waits for you: rm -r build"),
        "{output}"
    );
    assert_eq!(output.stderr, "");
}

/// The living demo, once its dashboard can be opened.
fn alive(env: &Env) -> (Agent, Background) {
    let worker = env.agent("w");
    let demo = Cmd::new("tenure").args(["demo", "--serve"]);
    let demo = worker.start(demo.env("BROWSER", "true"));
    poll(
        Duration::from_secs(60),
        "the address of the dashboard",
        || {
            assert!(demo.is_alive(), "{}{}", demo.stdout(), demo.stderr());
            demo.stdout().contains("/#code=").then_some(())
        },
    );
    (worker, demo)
}

#[test]
fn the_living_demo_ends_with_ctrl_c_and_leaves_nothing_behind() {
    let env = env();
    let (_worker, demo) = alive(&env);
    assert!(demo.signal(Signal::INT));
    let output = demo.wait().ok();
    assert_eq!(output.stderr, "");
    assert_nothing_is_left(&env);
}

#[test]
fn what_the_living_demo_started_ends_with_it_when_it_is_killed() {
    let env = env();
    let (_worker, demo) = alive(&env);
    demo.kill9();
    poll(Duration::from_secs(20), "its processes are gone", || {
        processes_in(&env).is_empty().then_some(())
    });
}

#[test]
fn the_demo_is_one_json_object_for_programs() {
    let env = env();
    let output = demo(&env, &["--json"]).ok();
    let json = output.json();
    assert_eq!(json["v"], 1);
    assert!(json["notices"].is_array());
    assert!(
        json["demo"].as_array().is_some_and(|told| told.len() >= 10),
        "{output}"
    );
    assert_eq!(output.stdout.lines().count(), 1);
}

#[test]
fn a_demo_inside_a_session_is_not_that_session() {
    let env = env();
    let outer = env.dir().join("outer");
    let home = [("TENURE_HOME", outer.to_str())];
    let claude = env.agent("claude");
    claude.tenure_env(&home, &["register"]).ok();
    claude.tenure_env(&home, &["demo"]).ok();
    let after = claude
        .tenure_env(&home, &["ps", "-a", "--json"])
        .ok()
        .json();
    assert_eq!(after["sessions"].as_array().map(Vec::len), Some(1));
    assert_nothing_is_left(&env);
}

/// A worker that is stopped does not see that its input closed.
#[test]
fn a_demo_that_is_killed_leaves_no_process() {
    let env = env();
    let worker = env.agent("w");
    let playing = worker.start(Cmd::new("tenure").arg("demo"));
    poll(Duration::from_secs(10), "a worker is stopped", || {
        processes_in(&env)
            .iter()
            .any(|pid| is_stopped(*pid))
            .then_some(())
    });
    playing.kill9();
    let end = Instant::now() + Duration::from_secs(5);
    let left = poll(Duration::from_secs(10), "its workers are gone", || {
        let left = processes_in(&env);
        (left.is_empty() || Instant::now() > end).then_some(left)
    });
    for pid in &left {
        env.agent("cleaner")
            .run(Cmd::shell(&format!("kill -9 {pid}")))
            .ok();
    }
    assert!(left.is_empty(), "{left:?} were left");
}

fn is_stopped(pid: u32) -> bool {
    Stat::read(pid).is_some_and(|stat| stat.state == 'T')
}

#[test]
fn help_shows_the_everyday_verbs_and_all_of_them() {
    let env = env();
    let mut trimmed = insta::Settings::clone_current();
    trimmed.add_filter(r"(?m) +$", "");
    let _bound = trimmed.bind_to_scope();
    assert_snapshot!(env.tenure(&["help"]), @r"
    exit code: 0
    --- stdout
    Show which coding agents are alive and what each one works on, and stop two of them working on the
    same thing

    Usage: tenure [OPTIONS] <COMMAND>

    Commands:
      ps        List sessions: state, title, location and claims [alias: sessions]
      status    Show this session, its claims, other sessions here, and warnings
      claim     Claim an item. Fails while a live session holds it; succeeds at once if the holder died
      release   Release an item, or mark it done
      why       Explain why an item is held or free, and what you can do
      takeover  Take an item from the session that holds it; the reason is logged
      log       Show the event log: every change with who made it, how, and on what evidence
      resume    Resume an agent's conversation, with the agent's own resume command in its directory
      lock      Run a command while holding a lock: one at a time per state directory
      install   Register coding agents automatically, by adding hooks to their settings
      demo      Run a demo with real processes in a scratch directory

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Global options:
          --json               Print one JSON object on stdout
          --session <SESSION>  Act on behalf of this session: handle, id, or a unique part of either
      -q, --quiet              Print nothing on success; ps prints only the handles
      -v, --verbose            Print more detail, including the evidence behind each answer

    Examples:
      tenure ps                          list sessions: state, location, claims
      tenure claim issue:acme/web#42     claim an item; fails while a live session holds it
      tenure release issue:acme/web#42   release it (--done marks it finished)
      tenure why issue:acme/web#42       explain why an item is held, and what you can do

    Run `tenure help --all` for every command, `tenure help COMMAND` for one.
    --- stderr
    ");
    let all = env.tenure(&["help", "--all"]).ok().stdout;
    for verb in verbs(&env) {
        let is_listed = all
            .lines()
            .any(|line| line.starts_with(&format!("  {verb} ")));
        assert!(is_listed, "{verb}: {all}");
    }
    assert_snapshot!(env.tenure(&["help", "exit-codes"]), @r"
    exit code: 0
    --- stdout
      0  done
      1  refused, or the answer is no (done, already held, free, not alive); not a failure
      2  usage error: unknown option, malformed value
      3  held by another session
      4  not found: no session here, or nothing by that name
      5  lost: another session has the claim now
      6  invalid: a check failed, or the session is ambiguous
      7  timed out waiting
      8  store unavailable, damaged or too new
      9  unknown: tenure cannot determine whether the session is alive
     70  unexpected failure, including a panic
    125  lock, claim and run with a command: it was not started, or it lost its claim; other codes are the command's own
    126  with CMD: it is not executable
    127  with CMD: it was not found
    --- stderr
    ");
    assert_eq!(env.tenure(&["help"]), env.tenure(&["--help"]));
}

#[test]
fn help_and_version_are_one_json_object_too() {
    let env = env();
    for words in [
        &["--help", "--json"][..],
        &["claim", "--json", "--help"],
        &["--version", "--json"],
    ] {
        one_object(&env.tenure(words).ok());
    }
}

/// scripts/release builds with TENURE_COMMIT; a build of a clone has no commit.
#[test]
fn the_version_has_a_number_a_commit_and_a_target() {
    let env = env();
    let number = env!("CARGO_PKG_VERSION");
    let build = env.tenure(&["--version", "--json"]).ok().json()["version"].clone();
    assert_eq!(build["number"], number);
    let target = build["target"].as_str().expect("a target");
    assert!(target.starts_with(std::env::consts::ARCH), "{target}");
    let commit = match build["commit"].as_str() {
        Some(commit) => format!("commit {commit}"),
        None => "unknown commit".to_owned(),
    };
    let said = format!("tenure {number} ({commit}, {target})\n");
    for flag in ["--version", "-V"] {
        assert_eq!(env.tenure(&[flag]).ok().stdout, said);
    }
}

#[test]
fn every_verb_explains_itself_with_examples_of_itself() {
    let env = env();
    for verb in verbs(&env) {
        for asked in [[&verb, "--help"], ["help", &verb]] {
            let help = env.tenure(&asked).ok();
            let examples = help.stdout.split_once("Examples:\n");
            assert!(
                examples.is_some_and(|(_, them)| them.contains(&format!("  tenure {verb}"))),
                "{verb} shows no example of itself: add one to the after_help of its Args, in \
                 crates/cli/src/verbs/{verb}\n{help}"
            );
        }
        for more in [&[][..], &["--json"]] {
            let [flag, word] = [[verb.as_str(), "--help"], ["help", verb.as_str()]]
                .map(|asked| env.tenure(&[&asked, more].concat()).ok().stdout);
            assert_eq!(flag.trim_end(), word.trim_end(), "{verb}");
        }
    }
}

#[test]
fn every_shell_completes_every_verb_and_every_verb_has_a_page() {
    let env = env();
    let verbs = verbs(&env);
    for shell in ["bash", "zsh", "fish"] {
        let script = env.tenure(&["completions", shell]).ok().stdout;
        let asks = format!("tenure __complete {shell} -- ");
        assert!(
            script.contains(&asks),
            "{shell} does not ask tenure\n{script}"
        );
        let line = ["", "tenure "][usize::from(shell == "bash")];
        let offered = env.tenure(&["__complete", shell, "--", line]).ok().stdout;
        let offered: Vec<&str> = offered.split(['\n', '\t']).collect();
        let missing: Vec<_> = verbs
            .iter()
            .filter(|verb| !offered.contains(&verb.as_str()))
            .collect();
        assert!(missing.is_empty(), "{shell} does not complete {missing:?}");
        assert!(
            !offered.contains(&"__demo-worker"),
            "{shell} completes what nobody should type"
        );
    }
    let pages = env.dir().join("man");
    env.tenure(&["man", "--dir", pages.to_str().unwrap()]).ok();
    for verb in &verbs {
        let page = env.tenure(&["man", verb]).ok().stdout;
        assert!(
            page.contains(".SH SYNOPSIS") && page.contains("tenure"),
            "{verb} has no manual page: its row is in crates/cli/src/verbs/mod.rs\n{page}"
        );
        let written = std::fs::read_to_string(pages.join(format!("tenure-{verb}.1"))).unwrap();
        assert_eq!(written.trim_end(), page.trim_end(), "{verb}");
    }
    assert!(std::fs::read_dir(&pages).unwrap().count() > verbs.len());
}

#[test]
fn the_picture_of_the_readme_is_what_the_demo_prints() {
    let printed = env().tenure(&["demo"]).ok().stdout;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(picture::FILE);
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == picture::of_demo(&printed),
        "docs/demo.svg is out of date: run scripts/picture\n{printed}"
    );
}

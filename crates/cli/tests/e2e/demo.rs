//! What a newcomer tries first: the demo, the help, completions and manual pages.

use std::time::{Duration, Instant};

use insta::assert_snapshot;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Cmd, Env, Output, poll};

use crate::env;
use crate::support::output::{one_object, verbs};

const CHAPTERS: [&str; 5] = [
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
fn the_demo_plays_its_five_chapters_and_leaves_nothing_behind() {
    let env = env();
    let output = demo(&env, &[]).ok();
    let chapter = |line: &&str| !line.is_empty() && !line.starts_with(' ');
    let chapters: Vec<&str> = output.stdout.lines().filter(chapter).collect();
    assert_eq!(chapters[..5], CHAPTERS, "{output}");
    assert_eq!(chapters[5..], ["nothing is left behind"], "{output}");
    assert!(output.stdout.contains("refused (exit 5)"), "{output}");
    assert_eq!(output.stderr, "");
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
    Shows which coding agents are really alive and what each is working on, and keeps two off the same
    thing

    Usage: tenure [OPTIONS] <COMMAND>

    Commands:
      ps        Show sessions: which are live, what each works on, where it is, and what it holds
                [alias: sessions]
      status    Show where this session stands: who it is, what it holds, who else is here, what needs
                attention
      claim     Take an item: refused while a living session has it, granted at once when its holder is
                dead
      release   Give an item back, or finish it
      why       Explain why an item is held or free, and which command would change that
      takeover  Take an item from whoever holds it, with a reason, on record
      log       Show what happened: every change with who, by what means, on what evidence
      resume    Start an agent again on what it was doing: its own resume command, in its directory
      lock      Run a command while holding a lock: one at a time among all users of this state
                directory
      install   Make coding agents tell tenure what they do, by hooks in their settings
      demo      Show tenure at work, with real processes in a scratch directory

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Everywhere:
          --json               Print exactly one JSON object on stdout
          --session <SESSION>  Act for this session: its handle, its id, or any unique part of either
      -q, --quiet              Print nothing on success; ps prints the handles alone
      -v, --verbose            Say more: what decided, and on what evidence

    Examples:
      tenure ps                          who is alive, where, and what each holds
      tenure claim issue:acme/web#42     take an item; refused while a living session has it
      tenure release issue:acme/web#42   give it back (--done: it is finished)
      tenure why issue:acme/web#42       why an item is held, and what would free it

    More: tenure help --all lists every verb by job, tenure help VERB explains one.
    --- stderr
    ");
    assert_snapshot!(env.tenure(&["help", "--all"]), @r"
    exit code: 0
    --- stdout
    See:
      ps           Show sessions: which are live, what each works on, where it is, and what it holds
      status       Show where this session stands: who it is, what it holds, who else is here, what needs attention
      who          Show who else works in a repository, in any of its worktrees
      whoami       Show which session this is, and what decided that
      show         Show everything about one session
      goto         Go to the window that a session runs in
      alive        Tell whether a session lives: exit 0 yes, 1 no, 9 nobody can tell
      wait         Wait until a session ends, or is idle
      log          Show what happened: every change with who, by what means, on what evidence

    Work on an item:
      claim        Take an item: refused while a living session has it, granted at once when its holder is dead
      release      Give an item back, or finish it
      renew        Renew a session's lease, or declare a time of silence
      guard        Tell whether this session may write: exit 0 yes, 1 free, 3 held by another, 4 no session, 5 lost
      handoff      Hand an item to another live session
      takeover     Take an item from whoever holds it, with a reason, on record
      claims       List items and who holds them
      why          Explain why an item is held or free, and which command would change that

    Lock and write:
      lock         Run a command while holding a lock: one at a time among all users of this state directory
      locks        Show every lock: held or free, by whom, since when, how many wait
      transcript   Show, check or append to a session's transcript

    Be a session:
      register     Make a process a session, or find the session that it is
      adopt        Make a session of an agent that runs without hooks
      resume       Start an agent again on what it was doing: its own resume command, in its directory
      dismiss      Take sessions that were cut off from the list of what can be resumed
      end          End a session: everything that it holds is free
      tell         Tell a session something: it hears it at its next call
      rename       Give a session a title, which stays until it is renamed again
      meta         Keep small values with a session: a team name, a run id
      verify       Check that this is the session it is taken for: exit 0, or 6 with every disagreement
      hook         Take note of an agent's event; called by the agent, never by hand
      statusline   Print one line for an agent's status line: session, claims, warnings; called by the agent

    Work together:
      mission      Take part in shared work: join a mission, say what you focus on, see who does what

    Run agents:
      conversation Keep which conversation continues for an agent and an item

    Set up:
      install      Make coding agents tell tenure what they do, by hooks in their settings
      uninstall    Take tenure's hooks out of the settings of coding agents again
      config       Show every setting and where it came from
      schema       Print the JSON Schema of every answer, error and event
      completions  Print a shell's completion script
      man          Print a manual page, or write all of them
      demo         Show tenure at work, with real processes in a scratch directory
      help         Explain a verb, list all of them, or list the exit codes

    tenure help VERB explains one; tenure help exit-codes lists the exit codes
    --- stderr
    ");
    assert_snapshot!(env.tenure(&["claim", "--help"]), @r"
    exit code: 0
    --- stdout
    Take an item: refused while a living session has it, granted at once when its holder is dead

    With a command: it runs as a session of its own that holds the item exactly while it lives.

    Usage: tenure claim [OPTIONS] [KEY]... [-- <CMD>...]

    Arguments:
      [KEY]...
              The item, such as issue:acme/web#42, #42, wp:041/WP03 or path:src/db/**

      [CMD]...
              The command to run while holding the item

    Options:
          --any
              Take the first of several items that is free; - reads them from stdin, one a line

          --all
              Take all of several items, or none

          --wait <TIME>
              Wait in line for at most this long

          --note <TEXT>
              What it is taken for; others see it

          --once
              Refuse what this session already holds: two subagents of one session are one holder

          --reopen
              Take up a finished item again

          --require-quiet
              Refuse while processes of a dead holder still run (the default with --any)

          --allow-survivors
              With --any: take an item although processes of its dead holder still run

          --request-id <ID>
              Your own name for this request: a retry gets the same answer

          --reason <TEXT>
              Reason, logged (required when --session names another session)

          --on-lost <WHAT>
              With a command: what to do when the item is taken over meanwhile

              Possible values:
              - term: End the command
              - warn: Say so and let it run

              [default: term]

          --conflict-exit <N>
              With a command: the exit code when the item is held or the wait times out

              [default: 125]

      -h, --help
              Print help (see a summary with '-h')

    Everywhere:
          --json
              Print exactly one JSON object on stdout

          --session <SESSION>
              Act for this session: its handle, its id, or any unique part of either

      -q, --quiet
              Print nothing on success; ps prints the handles alone

      -v, --verbose
              Say more: what decided, and on what evidence

    Examples:
      tenure claim issue:acme/web#42
      tenure claim '#42' --note 'fix login'          completed from the git remote
      tenure claim '#42' --wait 5m                   wait in line for it
      tenure claim --any '#41' '#42' '#43'           the first that is free
      tenure claim --all path:src/** path:docs/**    all of them or none
      tenure claim wp:041/WP03 -- make deploy        held while the command runs
    --- stderr
    ");
    assert_snapshot!(env.tenure(&["help", "exit-codes"]), @r"
    exit code: 0
    --- stdout
      0  done
      1  refused, or no, for a reason of its own (done, already held, free, not alive); never a failure
      2  usage: unknown flag, malformed value
      3  held by another
      4  not found: no session, no such thing
      5  lost: the claim is another's now
      6  invalid: a check failed, ambiguous or contradictory identity
      7  timed out waiting
      8  store unavailable, damaged or too new
      9  cannot tell (an answer was asked for, and liveness is unknown)
     70  unexpected failure, panics included
    125  running a command (lock, claim -- CMD): it was not run or lost its claim; other codes are its own
    126  running a command: it is not executable
    127  running a command: it was not found
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

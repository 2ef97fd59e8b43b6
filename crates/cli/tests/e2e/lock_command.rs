//! `lock NAME -- CMD` and `lock NAME --hold` as their users see them: waiting, exit codes, signals, names.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, Output, Signal, poll};

use crate::env;
use crate::support::line::{SOON, crew, handle, session};
use crate::support::lock::{
    Lock, attempt, free, held, kill9, lock, refused, report, shown, waits, while_there,
};
use crate::support::skip::skipped;
use crate::support::waiter::ends;

#[test]
fn a_wait_for_a_lock_that_times_out_names_the_holder() {
    let (env, [ann]) = crew(["ann"]);
    let lock = Lock::runs(&env, &ann, "a");
    for (line, code, kind) in [
        ("a", 125, "held"),
        ("a --wait 0s", 125, "held"),
        ("a --wait 50ms", 125, "timed_out"),
        ("a --conflict-exit 75", 75, "held"),
        ("a --conflict-exit 75 --wait 50ms", 75, "timed_out"),
    ] {
        let why = refused(&attempt(&env, line), code, kind);
        assert!(why.contains(&handle(&ann)), "{why}");
        assert!(why.contains(&lock.wrapper.pid.to_string()), "{why}");
        assert!(why.contains("bash -c mkfifo"), "{why}");
    }
    for wait in ["-1s", "1", "soon", ""] {
        let args = ["lock", "a", "--wait", wait, "--json", "--", "true"];
        let said = env.tenure(&args);
        assert!([2, 125].contains(&said.code), "{wait:?}: {said}");
    }
    let began = Instant::now();
    refused(&attempt(&env, "a --wait 300ms"), 125, "timed_out");
    assert!(began.elapsed() >= Duration::from_millis(300));
    lock.ends().ok();
}

#[test]
fn an_endless_wait_for_a_lock_names_the_holder_after_a_second() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), env.agent("bob"));
    let first = Lock::runs(&env, &ann, "a");
    let waiter = waits(&env, &bob, "a", lock("a --wait forever", "echo mine"));
    let said = poll(SOON, "it says what it waits for", || {
        Some(waiter.stderr()).filter(|said| !said.is_empty())
    });
    for part in [
        "waiting for the lock a",
        &handle(&ann),
        &first.wrapper.pid.to_string(),
        "bash -c",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.lines().count(), 1, "once: {said}");
    assert_eq!(waiter.stdout(), "");
    first.ends().ok();
    assert_eq!(ends(waiter).ok().stdout, "mine\n");
    // A waiter that gets it within the second prints nothing.
    assert_eq!(
        ends(bob.start(lock("a --wait forever", "true")))
            .ok()
            .stderr,
        ""
    );
}

#[test]
fn a_waiter_gets_the_lock_when_its_holder_is_killed() {
    let env = env();
    let (ann, bob) = (env.agent("ann"), env.agent("bob"));
    for patience in ["forever", "5m"] {
        let first = Lock::runs(&env, &ann, "a");
        let waiter = waits(
            &env,
            &bob,
            "a",
            lock(&format!("a --wait {patience}"), "echo mine"),
        );
        kill9(&ann, first.command);
        assert_eq!(ends(waiter).ok().stdout, "mine\n");
        std::fs::remove_file(first.flag.with_extension("flag.pipe")).unwrap();
    }
}

#[test]
fn a_waiter_that_is_told_to_end_ends() {
    let env = env();
    let (ann, bob) = (env.agent("ann"), env.agent("bob"));
    let first = Lock::runs(&env, &ann, "a");
    for (wait, signal) in [("forever", Signal::TERM), ("5m", Signal::INT)] {
        let waiter = waits(
            &env,
            &bob,
            "a",
            lock(&format!("a --wait {wait}"), "echo never"),
        );
        waiter.signal(signal);
        let said = ends(waiter).fails(128 + signal.as_raw());
        assert_eq!(said.stdout, "");
        assert_eq!(shown(&env, "a")["waiting"], 0);
    }
    first.ends().ok();
}

#[test]
fn the_exit_code_and_stdout_are_the_commands() {
    let env = env();
    let plain = env.dir().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let cases: [(i32, &[&str]); 6] = [
        (0, &["true"]),
        (1, &["false"]),
        (42, &["sh", "-c", "exit 42"]),
        (127, &["no-such-program-anywhere"]),
        (126, &[plain.to_str().unwrap()]),
        (137, &["sh", "-c", "kill -9 $$"]),
    ];
    for (code, command) in cases {
        let args = [
            &["lock", "a", "--conflict-exit", "9", "--json", "--"],
            command,
        ]
        .concat();
        let said = env.tenure(&args).fails(code);
        match report(&said) {
            report if [126, 127].contains(&code) => assert_eq!(report["error"]["kind"], "command"),
            report => assert_eq!(report["command"]["exit"], code, "{said}"),
        }
        free(&env, "a");
    }
    let said = env.tenure(&[
        "lock",
        "a",
        "--json",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; exit 3",
    ]);
    assert_eq!((said.code, said.stdout.as_str()), (3, "out\n"));
    assert!(said.stderr.starts_with("err\n"), "{said}");
    assert_eq!(report(&said)["lock"]["name"], "a");
    let said = env
        .tenure(&["lock", "a", "--", "sh", "-c", "echo err >&2"])
        .ok();
    assert_eq!(said.stderr, "err\n", "nothing of ours without --json");
}

#[test]
fn a_signal_to_the_wrapper_reaches_the_command() {
    let env = env();
    let ann = env.agent("ann");
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
    ] {
        let flag = env.dir().join(name);
        std::fs::write(&flag, "").unwrap();
        let polite = format!("trap 'echo bye; exit 6' {name}; {}", while_there(&flag));
        let wrapper = ann.start(lock("a", &polite));
        poll(SOON, "it runs", || {
            wrapper.stdout().contains("runs").then_some(())
        });
        wrapper.signal(signal);
        let said = ends(wrapper).fails(6);
        assert!(said.stdout.ends_with("bye\n"), "{said}");
        free(&env, "a");
    }
}

#[test]
fn a_held_lock_is_said_in_one_line_and_given_back_when_stdin_closes() {
    let env = env();
    let ann = env.agent("ann");
    let flag = env.dir().join("flag");
    for killed in [false, true] {
        std::fs::write(&flag, "").unwrap();
        let line = format!(
            "while [ -e {} ]; do sleep 0.02; done | {{ exec tenure lock a --hold; }}",
            flag.display()
        );
        let holder = ann.start(Cmd::shell(&line));
        let word = poll(SOON, "it says that it holds it", || {
            holder.stdout().ends_with('\n').then(|| holder.stdout())
        });
        assert_eq!(word.lines().count(), 1);
        let word: Value = serde_json::from_str(&word).unwrap();
        assert_eq!(
            (&word["v"], &word["lock"]["name"], &word["lock"]["held"]),
            (&json!(1), &json!("a"), &json!(true))
        );
        held(&env, "a");
        let second = env.tenure(&["lock", "a", "--hold", "--conflict-exit", "75", "--json"]);
        refused(&second, 75, "held");
        assert_eq!(second.stdout, "");
        if killed {
            let pid = word["lock"]["pid"]
                .as_u64()
                .and_then(|pid| u32::try_from(pid).ok());
            kill9(&ann, pid.unwrap());
            free(&env, "a");
        }
        std::fs::remove_file(&flag).unwrap();
        if !killed {
            assert_eq!(ends(holder).ok().stdout.lines().count(), 1);
            free(&env, "a");
        }
    }
}

#[test]
fn a_name_is_refused_or_is_a_lock_of_its_own() {
    let env = env();
    let long = "x".repeat(5000);
    let bad = [
        "",
        ".",
        "..",
        "a/..",
        "../a",
        "/etc/x",
        "a//b",
        "a/",
        " ",
        "a b",
        "a\nb",
        "a\u{1b}[31m",
        "a%b",
        "ä",
        &long,
    ];
    for name in bad {
        let said = env.tenure(&["lock", name, "--json", "--", "true"]);
        let why = refused(&said, 125, "usage");
        assert!(why.len() < 400 && !why.contains(['\n', '\u{1b}']), "{why}");
        assert!(
            !env.tenure(&["lock", name, "--hold"])
                .stdout
                .contains("held")
        );
    }
    assert_eq!(env.tenure(&["locks"]).ok().stdout, "no locks\n");
    let ann = env.agent("ann");
    let longest = "y".repeat(200);
    let good = [
        "a",
        "a.who",
        "a.who.journal",
        "a/b",
        "a.b",
        "a=b",
        "A",
        &longest,
    ];
    for name in good {
        let lock = Lock::runs(&env, &ann, name);
        held(&env, name);
        let all = env.tenure(&["locks", "--held", "--json"]).ok().json()["locks"].clone();
        let names: Vec<&Value> = all
            .as_array()
            .unwrap()
            .iter()
            .map(|lock| &lock["name"])
            .collect();
        assert_eq!(names, [name]);
        assert_eq!(all[0]["holder"]["pid"], lock.wrapper.pid);
        for other in good.iter().filter(|other| **other != name) {
            free(&env, other);
        }
        lock.ends().ok();
    }
    assert_eq!(
        env.tenure(&["locks", "--json"]).ok().json()["locks"]
            .as_array()
            .map(Vec::len),
        Some(good.len())
    );
}

#[test]
fn f_k12_a_lock_directory_that_is_none_is_refused_and_stays() {
    let env = env();
    let ann = env.agent("ann");
    free(&env, "a");
    let (locks, aside) = (env.state().join("locks"), env.dir().join("aside"));
    std::fs::rename(&locks, &aside).unwrap();
    let unusable = |said: &Output| {
        let why = refused(said, 125, "store_unavailable");
        assert!(why.contains(locks.to_str().unwrap()), "{why}");
    };
    symlink(&aside, &locks).unwrap();
    unusable(&attempt(&env, "a"));
    env.tenure(&["locks"]).fails(8);
    std::fs::remove_file(&locks).unwrap();
    std::fs::write(&locks, "precious").unwrap();
    unusable(&attempt(&env, "a"));
    env.tenure(&["locks"]).fails(8);
    assert_eq!(std::fs::read(&locks).unwrap(), b"precious");
    std::fs::remove_file(&locks).unwrap();
    std::fs::rename(&aside, &locks).unwrap();
    let read_only = "mount --bind $TENURE_HOME/locks $TENURE_HOME/locks
        mount -o remount,bind,ro $TENURE_HOME/locks
        exec tenure lock new --json -- echo ran";
    let how = if rustix::process::geteuid().is_root() {
        "-m"
    } else {
        "-rm"
    };
    let said = ann.run(Cmd::new("unshare").args([how, "sh", "-euc", read_only]));
    unusable(&said);
    assert_eq!(said.stdout, "");
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs an example twice: with a lock that is free, and with one that is held.
#[track_caller]
fn example_works(env: &Env, ann: &Agent, program: &str) {
    let line = |name: &str| Cmd::shell(&format!("exec {program} {name}"));
    let said = ann.run(line("free")).ok();
    assert_eq!(said.stdout, "free is held\nfree is free again\n", "{said}");
    free(env, "free");
    let lock = Lock::runs(env, ann, "taken");
    let said = ann.run(line("taken"));
    assert_eq!(said.code, 1, "{said}");
    assert!(
        said.stdout.is_empty() && said.stderr.contains("the lock taken is held"),
        "{said}"
    );
    lock.ends().ok();
}

fn works(agent: &Agent, program: &str) -> bool {
    let line = format!("{program} >/dev/null 2>&1");
    agent.run(Cmd::shell(&line)).code == 0
}

#[test]
fn the_example_in_python_works() {
    let env = env();
    let ann = env.agent("ann");
    if !works(&ann, "python3 -c 'import json, subprocess'") {
        return skipped("python3 does not work here");
    }
    let file = examples().join("lock.py");
    example_works(&env, &ann, &format!("python3 -B {}", file.display()));
}

/// Where node does not read types by itself, they are taken out: the example has none but annotations.
#[test]
fn the_example_in_typescript_works() {
    let env = env();
    let ann = env.agent("ann");
    if !works(&ann, "node --version") {
        return skipped("node does not work here");
    }
    let file = examples().join("lock.ts");
    if works(&ann, "node --experimental-strip-types -e 0") {
        return example_works(
            &env,
            &ann,
            &format!(
                "node --experimental-strip-types --no-warnings {}",
                file.display()
            ),
        );
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let plain = env.dir().join("lock.mjs");
    let types = [
        ": string[]",
        ": string",
        ": number",
        ": Promise<Lock>",
        ": Promise<void>",
        ": unknown",
        ": ChildProcess",
    ];
    let stripped = types.iter().fold(text, |text, part| text.replace(part, ""));
    let stripped = stripped.replace("import { type ChildProcess, spawn }", "import { spawn }");
    std::fs::write(&plain, stripped).unwrap();
    example_works(&env, &ann, &format!("node {}", plain.display()));
}

#[test]
fn a_second_lock_by_the_program_that_holds_it_says_so() {
    let env = env();
    let ann = env.agent("ann");
    let (go, pipe) = (env.dir().join("go"), env.dir().join("pipe"));
    let line = format!(
        "mkfifo {pipe}; tenure lock a --hold <{pipe} >{pipe}.held & exec 9>{pipe}; \
         until [ -s {pipe}.held ]; do :; done; \
         tenure lock a --hold 2>{pipe}.said </dev/null; echo $?; \
         tenure lock a --wait 50ms -- true 2>>{pipe}.said; echo $?; \
         until [ -e {go} ]; do read -t 0.02 <>{pipe}.none || true; done; exec 9>&-; wait",
        pipe = pipe.display(),
        go = go.display()
    );
    ann.run(Cmd::new("mkfifo").arg(format!("{}.none", pipe.display())))
        .ok();
    let program = ann.start(Cmd::new("bash").args(["-c", &line]));
    poll(SOON, "both were refused", || {
        (program.stdout() == "125\n125\n").then_some(())
    });
    let said = std::fs::read_to_string(format!("{}.said", pipe.display())).unwrap();
    let own = shown(&env, "a")["holder"]["pid"].to_string();
    let words = format!("you hold it: pid {own}, since 20");
    assert_eq!(said.matches(&words).count(), 2, "{said}");
    let other = refused(&attempt(&env, "a"), 125, "held");
    assert!(
        !other.contains("you hold it") && other.contains(&own),
        "{other}"
    );
    std::fs::write(&go, "").unwrap();
    ends(program).ok();
}

#[test]
fn after_tenure_is_killed_the_process_that_has_the_lock_is_named() {
    let env = env();
    let ann = session(&env, "ann");
    let lock = Lock::runs(&env, &ann, "a");
    assert_eq!(shown(&env, "a")["holder"]["pid"], lock.wrapper.pid);
    kill9(&ann, lock.wrapper.pid);
    poll(SOON, "the command is named", || {
        (shown(&env, "a")["holder"]["pid"] == lock.command).then_some(())
    });
    assert_eq!(shown(&env, "a")["pids"], json!([lock.command]));
    let said = refused(&attempt(&env, "a"), 125, "held");
    assert!(said.contains(&format!("pid {}", lock.command)), "{said}");
    let listed = env.tenure(&["locks"]).ok().stdout;
    assert!(listed.contains(&lock.command.to_string()), "{listed}");
    std::fs::remove_file(&lock.flag).unwrap();
    poll(SOON, "it is free", || {
        (shown(&env, "a")["held"] == false).then_some(())
    });
}

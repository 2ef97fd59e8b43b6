//! `transcript append`: whole lines, all or nothing, also when appenders are killed.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use serde_json::json;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Background, Cmd, poll};

use crate::env;
use crate::support::line::{SOON, events, handle, run, session};
use crate::support::skip::skipped;
use crate::support::transcript::{append, claude, fails, file_of, line_of};
use crate::support::waiter::ends;

#[test]
fn lines_are_appended_whole_or_not_at_all() {
    let env = env();
    let (ann, bob) = (claude(&env, "aaa"), session(&env, "bob"));
    let (own, me) = (file_of(&env, "aaa"), handle(&ann));
    let before = line_of("aaa");
    let said = append(&ann, &me, "{\"n\":1}\n{\"n\":2}\n").ok().json()["transcript"].clone();
    assert_eq!(
        (&said["offset"], &said["lines"]),
        (&json!(before.len()), &json!(2))
    );
    let now = format!("{before}{{\"n\":1}}\n{{\"n\":2}}\n");
    for bad in ["", "{\"n\":3}", "{\"n\":3}\n{\"n\":4}", "{\"n\":\0}\n"] {
        fails(&append(&ann, &me, bad), 2, "usage");
    }
    fails(&append(&ann, "nobody-zzzz", "{}\n"), 4, "no_such_session");
    fails(&append(&bob, &handle(&bob), "{}\n"), 4, "not_found");
    let stranger = append(&bob, &me, "{}\n");
    fails(&stranger, 2, "reason_needed");
    assert_eq!(fs::read_to_string(&own).unwrap(), now);
    let args = ["transcript", "append", &me, "--durable", "--reason", "test"];
    bob.tenure_stdin(&args, "{}\n").ok();
    assert_eq!(fs::read_to_string(&own).unwrap(), format!("{now}{{}}\n"));
    let log = events(&bob, "--limit 1000");
    assert!(
        log.iter().any(|event| event.to_string().contains("test")),
        "logged: {log:?}"
    );
}

/// What stands at the path of a transcript, and why nothing may be appended there.
#[test]
fn nothing_is_appended_to_what_is_not_the_sessions_own_whole_file() {
    let env = env();
    let (ann, _bob) = (claude(&env, "aaa"), claude(&env, "bbb"));
    let (own, theirs, me) = (file_of(&env, "aaa"), file_of(&env, "bbb"), handle(&ann));
    let refuses = |why: &str| {
        let said = fails(&append(&ann, &me, "{}\n"), 6, "invalid");
        assert!(
            said.contains(why) && said.contains(own.to_str().unwrap()),
            "{said}"
        );
        assert_eq!(
            fs::read_to_string(&theirs).unwrap(),
            line_of("bbb"),
            "{why}"
        );
    };
    fs::remove_file(&own).unwrap();
    symlink(&theirs, &own).unwrap();
    refuses("symbolic link");
    fs::remove_file(&own).unwrap();
    symlink(env.dir().join("nowhere"), &own).unwrap();
    refuses("symbolic link");
    assert!(!env.dir().join("nowhere").exists());
    fs::remove_file(&own).unwrap();
    fs::hard_link(&theirs, &own).unwrap();
    refuses("hard link");
    fs::remove_file(&own).unwrap();
    fs::create_dir(&own).unwrap();
    refuses("not a regular file");
    fs::remove_dir(&own).unwrap();
    ann.run(Cmd::new("mkfifo").arg(own.to_str().unwrap())).ok();
    refuses("not a regular file");
    fs::remove_file(&own).unwrap();
    fs::write(&own, "{}\n{\"torn").unwrap();
    refuses("incomplete line");
    assert_eq!(fs::read_to_string(&own).unwrap(), "{}\n{\"torn");
    fs::remove_file(&own).unwrap();
    append(&ann, &me, "{}\n").ok();
    assert_eq!(fs::read_to_string(&own).unwrap(), "{}\n");
}

#[test]
fn f_k14_an_append_under_the_files_own_lock_fails_at_once_and_says_so() {
    let env = env();
    let ann = claude(&env, "aaa");
    let (own, me) = (file_of(&env, "aaa"), handle(&ann));
    let inner = format!("echo '{{}}' | tenure transcript append {me} --wait 5m --json");
    let path = own.to_str().unwrap();
    let within = Cmd::new("tenure").args(["lock", "--path", path, "--", "sh", "-c", &inner]);
    fails(&ends(ann.start(within)), 6, "nested");
    let lock = format!(
        "tenure lock --path {path} -- sh -c 'echo ready; while [ -e {path} ]; do sleep 0.02; done'"
    );
    let lock = ann.start(Cmd::shell(&format!("exec {lock}")));
    poll(SOON, "it is held", || {
        lock.stdout().contains("ready").then_some(())
    });
    let args = ["transcript", "append", &me, "--wait", "50ms", "--json"];
    fails(&ann.tenure_stdin(&args, "{}\n"), 7, "timed_out");
    fs::remove_file(&own).unwrap();
    ends(lock).ok();
    fs::remove_dir(own.parent().unwrap()).unwrap();
    let said = append(&ann, &me, "{}\n");
    // No lock stands in the way; the file is gone.
    fails(&said, 4, "not_found");
}

#[test]
fn every_line_of_sixteen_who_append_at_once_is_whole_and_there() {
    let env = env();
    let ann = claude(&env, "aaa");
    let (own, me) = (file_of(&env, "aaa"), handle(&ann));
    let appenders: Vec<Background> = (0..16)
        .map(|who| {
            let line = format!(
                "for part in 0 1 2 3 4; do for n in 0 1 2 3 4 5 6 7 8 9; do \
                 echo '{{\"who\":{who},\"n\":'1$part$n'}}'; done | \
                 tenure transcript append {me} --wait 1m || exit 1; done"
            );
            ann.start(Cmd::shell(&line))
        })
        .collect();
    for appender in appenders {
        appender.wait().ok();
    }
    let text = fs::read_to_string(&own).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines.len(), 16 * 50);
    for who in 0..16 {
        let mine = lines
            .iter()
            .filter(|line| line.contains(&format!("\"who\":{who},")));
        let expected: Vec<String> = (0..50)
            .map(|n| format!("{{\"who\":{who},\"n\":1{n:02}}}"))
            .collect();
        assert!(
            mine.copied().eq(expected.iter().map(String::as_str)),
            "{who}: in order and whole"
        );
    }
    for ten in lines.chunks(10) {
        let who = ten[0].split(',').next().unwrap();
        assert!(
            ten.iter().all(|line| line.starts_with(who)),
            "one append is in one piece"
        );
    }
}

/// A line of about this many bytes.
fn long_line(mark: &str, length: usize) -> String {
    format!(
        "{{\"mark\":\"{mark}\",\"text\":\"{}\"}}\n",
        "x".repeat(length)
    )
}

#[test]
fn an_append_that_a_kill_cut_short_is_whole_or_gone_after_the_next() {
    let env = env();
    let ann = claude(&env, "aaa");
    let (own, me) = (file_of(&env, "aaa"), handle(&ann));
    let input = env.dir().join("input");
    let began = Instant::now();
    append(&ann, &me, "{}\n").ok();
    let whole = began.elapsed();
    for round in 0..30_u32 {
        let lines: String = (0..4)
            .map(|_| long_line(&format!("r{round}"), 400_000))
            .collect();
        fs::write(&input, lines).unwrap();
        let line = format!("exec tenure transcript append {me} <{}", input.display());
        let appender = ann.start(Cmd::shell(&line));
        let moment = Instant::now() + whole * round / 15;
        poll(SOON, "the moment", || {
            (Instant::now() >= moment).then_some(())
        });
        appender.kill9();
        append(&ann, &me, &format!("{{\"after\":{round}}}\n")).ok();
        let text = fs::read_to_string(&own).unwrap();
        let of_round = text
            .lines()
            .filter(|line| line.contains(&format!("\"r{round}\"")))
            .count();
        assert!(
            [0, 4].contains(&of_round),
            "{of_round} of 4 lines in round {round}"
        );
        run(&ann, 0, &format!("transcript verify {me}"));
    }
}

#[test]
fn an_append_beyond_the_limit_on_file_sizes_writes_nothing() {
    let env = env();
    let ann = claude(&env, "aaa");
    let (own, me) = (file_of(&env, "aaa"), handle(&ann));
    let before: String = (0..20)
        .map(|n| long_line(&n.to_string(), 400_000))
        .collect();
    fs::write(&own, &before).unwrap();
    let limit = before.len() as u64 / 1024 + 20;
    let added = long_line("first", 50_000) + &long_line("second", 50_000);
    let input = env.dir().join("input");
    fs::write(&input, &added).unwrap();
    for (signal, durable) in [("trap '' XFSZ;", ""), ("", ""), ("", "--durable")] {
        let line = format!(
            "{signal} ulimit -c 0; ulimit -f {limit}; exec tenure transcript append {me} {durable} --json <{}",
            input.display()
        );
        let said = ann.run(Cmd::new("bash").args(["-c", &line]));
        fails(&said, 8, "store_unavailable");
        assert!(fs::read_to_string(&own).unwrap() == before, "unchanged");
    }
    append(&ann, &me, &added).ok();
    assert!(fs::read_to_string(&own).unwrap() == format!("{before}{added}"));
}

/// The appender stops itself when it is about to flush what it wrote.
#[test]
fn an_append_to_a_file_that_is_removed_meanwhile_is_not_acknowledged() {
    let env = env();
    let ann = claude(&env, "aaa");
    let (own, me) = (file_of(&env, "aaa"), handle(&ann));
    if ann.run(Cmd::shell("strace -o /dev/null true")).code != 0 {
        return skipped("strace does not work here");
    }
    let (input, trace) = (env.dir().join("input"), env.dir().join("trace"));
    fs::write(&input, "{}\n").unwrap();
    let line = format!(
        "exec strace -o {} -P {} -e trace=fsync -e inject=fsync:signal=STOP:when=1 \
         tenure transcript append {me} --durable --json <{}",
        trace.display(),
        own.display(),
        input.display()
    );
    let appender = ann.start(Cmd::shell(&line));
    let stopped = poll(SOON, "it stands", || {
        assert!(
            appender.is_alive(),
            "{}{}",
            appender.stdout(),
            appender.stderr()
        );
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut kids = pids.filter_map(|pid: u32| Some((pid, Stat::read(pid)?)));
        let kid = kids.find(|(_, stat)| stat.parent == appender.pid)?;
        let standing = fs::read_to_string(&trace)
            .unwrap_or_default()
            .contains("SIGSTOP");
        (standing && "tT".contains(kid.1.state)).then_some(kid.0)
    });
    fs::remove_file(&own).unwrap();
    let theirs = line_of("other");
    fs::write(&own, &theirs).unwrap();
    ann.run(Cmd::new("kill").args(["-CONT".to_owned(), stopped.to_string()]))
        .ok();
    let said = ends(appender);
    let why = fails(&said, 6, "invalid");
    assert!(why.contains("removed or replaced"), "{why}");
    assert_eq!(fs::read_to_string(&own).unwrap(), theirs);
}

#[test]
fn a_torn_line_is_repaired_when_no_live_process_writes() {
    let env = env();
    let (ann, bob) = (claude(&env, "aaa"), session(&env, "bob"));
    let (own, me) = (file_of(&env, "aaa"), handle(&ann));
    let whole = fs::read_to_string(&own).unwrap();
    let repair = |code: i32| run(&ann, code, &format!("transcript repair {me}"));
    assert_eq!(repair(0)["transcript"]["repaired"], false);
    fs::write(&own, format!("{whole}{{\"n\":")).unwrap();
    let said = append(&ann, &me, "{}\n");
    fails(&said, 6, "invalid");
    let hint = said.json()["error"]["hints"][0]["args"].clone();
    assert_eq!(hint, json!(["repair", me]), "{said}");
    let pipe = env.dir().join("pipe");
    let line = format!(
        "mkfifo {0}; exec 9>>{1}; echo open; read x <{0}",
        pipe.display(),
        own.display()
    );
    let writer = ann.start(Cmd::new("bash").args(["-c", &line]));
    poll(SOON, "it is open", || {
        (writer.stdout() == "open\n").then_some(())
    });
    let busy = repair(3);
    assert_eq!(busy["error"]["pids"], json!([writer.pid]), "{busy}");
    fs::write(&pipe, "go\n").unwrap();
    ends(writer).ok();
    run(&bob, 2, &format!("transcript repair {me}"));
    let done = repair(0)["transcript"].clone();
    let aside = done["quarantine"].as_str().unwrap();
    assert_eq!(fs::read_to_string(aside).unwrap(), "{\"n\":");
    assert_eq!(fs::read_to_string(&own).unwrap(), whole);
    assert_eq!(done["offset"], whole.len());
    append(&ann, &me, "{}\n").ok();
    let log = events(&ann, "--limit 1000");
    assert!(
        log.iter().any(|event| event.to_string().contains(aside)),
        "{log:?}"
    );
}

//! Who holds a lock, and who is shown to: by the kernel's word alone.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};
use tenure_host::kernel_lock::{LockDir, LockName, Sharing};
use tenure_testkit::{Cmd, Signal, poll};

use crate::env;
use crate::support::line::{SOON, handle, session, text};
use crate::support::lock::{
    Lock, attempt, free, held, kill9, lock, refused, shown, waits, while_there,
};
use crate::support::waiter::ends;

#[test]
fn f_k01_the_lock_is_free_at_once_when_wrapper_and_command_are_killed() {
    let env = env();
    let ann = env.agent("ann");
    for _ in 0..3 {
        let lock = Lock::runs(&env, &ann, "a");
        held(&env, "a");
        lock.wrapper.kill9();
        kill9(&ann, lock.command);
        free(&env, "a");
        std::fs::remove_file(lock.flag.with_extension("flag.pipe")).unwrap();
    }
    let lock = Lock::runs(&env, &ann, "a");
    kill9(&ann, lock.command);
    ends(lock.wrapper).fails(137);
    free(&env, "a");
}

#[test]
fn f_k03_f_k14_a_lock_within_itself_is_an_error_at_once() {
    let env = env();
    let ann = env.agent("ann");
    let file = env.dir().join("file");
    let by_path = format!("--path {}", file.display());
    for name in ["a", by_path.as_str()] {
        for inner in [
            format!("tenure lock {name} --wait forever --json -- true"),
            format!("sh -c 'tenure lock {name} --wait forever --json -- true'"),
            format!("tenure lock b -- tenure lock {name} --wait forever --json -- true"),
            format!("tenure lock {name} --shared --wait forever --json -- true"),
            format!("tenure lock {name} --hold --wait forever --json"),
        ] {
            let said = ends(ann.start(lock(name, &inner)));
            let why = refused(&said, 125, "nested");
            assert!(why.contains("never end"), "{why}");
        }
    }
    ann.run(lock("a", "tenure lock b -- echo both")).ok();
    free(&env, "a");
}

#[test]
fn f_k05_what_is_in_lock_file_and_record_never_changes_who_holds_it() {
    let env = env();
    let ann = env.agent("ann");
    let locks = env.state().join("locks");
    free(&env, "a");
    let files: Vec<PathBuf> = std::fs::read_dir(&locks)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(files.len(), 2, "a lock and its record: {files:?}");
    let other = json!({"lock": "b", "session": "ann-zzzz", "pid": 1, "command": "x",
        "since": "2026-11-15T00:00:00Z", "shared": false})
    .to_string();
    for content in ["", "{\"lock\":\"a", "\0\u{7f}garbage", &other, "[]"] {
        let fill = || {
            files
                .iter()
                .for_each(|file| std::fs::write(file, content).unwrap());
        };
        fill();
        free(&env, "a");
        fill();
        let free = shown(&env, "a");
        assert_eq!(
            (&free["held"], &free["holder"]),
            (&json!(false), &Value::Null)
        );
        let lock = Lock::runs(&env, &ann, "a");
        fill();
        held(&env, "a");
        let shown = shown(&env, "a");
        assert_eq!(shown["held"], true, "{shown}");
        assert_eq!(shown["pids"], json!([lock.wrapper.pid]));
        assert_eq!(
            shown["holder"],
            Value::Null,
            "nobody vouches for {content:?}"
        );
        std::fs::remove_file(lock.flag.with_extension("flag.pipe")).unwrap();
        lock.ends().ok();
    }
    for file in &files {
        std::fs::remove_file(file).unwrap();
    }
    let record = files
        .iter()
        .find(|file| **file != locks.join("n-a"))
        .unwrap();
    std::fs::create_dir(record).unwrap();
    let lock = Lock::runs(&env, &ann, "a");
    held(&env, "a");
    assert_eq!(shown(&env, "a")["held"], true);
    lock.ends().ok();
}

#[test]
fn f_k07_a_holder_that_stands_still_keeps_the_lock() {
    let env = env();
    let ann = env.agent("ann");
    let lock = Lock::runs(&env, &ann, "a");
    lock.wrapper.signal(Signal::STOP);
    ann.run(Cmd::new("kill").args(["-STOP".to_owned(), lock.command.to_string()]))
        .ok();
    refused(&attempt(&env, "a --wait 300ms"), 125, "timed_out");
    ann.run(Cmd::new("kill").args(["-CONT".to_owned(), lock.command.to_string()]))
        .ok();
    lock.wrapper.signal(Signal::CONT);
    lock.ends().ok();
    free(&env, "a");
}

#[test]
fn f_k08_killing_the_wrapper_leaves_the_lock_with_its_command() {
    let env = env();
    let ann = env.agent("ann");
    let lock = Lock::runs(&env, &ann, "a");
    lock.wrapper.kill9();
    refused(&attempt(&env, "a --wait 100ms"), 125, "timed_out");
    assert_eq!(shown(&env, "a")["held"], true);
    std::fs::remove_file(&lock.flag).unwrap();
    attempt(&env, "a --wait 20s").ok();
}

#[test]
fn f_k08_a_daemon_that_the_command_left_behind_does_not_keep_the_lock() {
    let env = env();
    let ann = env.agent("ann");
    let flag = env.dir().join("flag");
    std::fs::write(&flag, "").unwrap();
    let out = env.dir().join("daemon");
    let daemon = format!(
        "{}; tenure lock a --json -- echo mine; echo $?",
        while_there(&flag)
    );
    let script = env.dir().join("daemon.sh");
    std::fs::write(&script, daemon).unwrap();
    let leave = format!(
        "setsid bash {} </dev/null >{} 2>&1 &",
        script.display(),
        out.display()
    );
    ends(ann.start(lock("a", &leave))).ok();
    let said = || std::fs::read_to_string(&out).unwrap_or_default();
    poll(SOON, "the daemon runs", || {
        said().contains("runs").then_some(())
    });
    free(&env, "a");
    assert_eq!(shown(&env, "a")["held"], false);
    std::fs::remove_file(&flag).unwrap();
    let told = poll(SOON, "it took the lock itself", || {
        // Read once: it is written meanwhile.
        let said = said();
        let is_over = said.ends_with('\n') && said.lines().last()?.parse::<u8>().is_ok();
        let is_granted = said.ends_with("\n0\n");
        assert!(
            is_granted || !is_over,
            "it does not hold the lock, so it may take it: {said}"
        );
        is_granted.then_some(said)
    });
    assert!(told.contains("mine"), "{told}");
}

#[test]
fn f_k13_one_file_has_one_lock_however_it_is_spelt() {
    let env = env();
    let ann = env.agent("ann");
    let dir = env.dir().join("real");
    std::fs::create_dir_all(dir.join("sub")).unwrap();
    symlink(&dir, env.dir().join("link")).unwrap();
    for exists in [false, true] {
        if exists {
            std::fs::write(dir.join("f"), "").unwrap();
            symlink(dir.join("f"), dir.join("alias")).unwrap();
        }
        let lock = Lock::runs(&env, &ann, &format!("--path {}/f", dir.display()));
        let spellings = [
            "link/f",
            "real/sub/../f",
            "real//./f",
            "link/sub/../f",
            "real/alias",
        ];
        for spelling in &spellings[..if exists { 5 } else { 4 }] {
            let path = env.dir().join(spelling);
            held(&env, &format!("--path {}", path.display()));
        }
        for (dir, file) in [
            ("real", "f"),
            ("real", "./f"),
            ("link/sub", "../f"),
            (".", "link/f"),
        ] {
            let args = ["lock", "--path", file, "--json", "--", "true"];
            let said = ann.tenure_in(&env.dir().join(dir), &args);
            refused(&said, 125, "held");
        }
        free(&env, &format!("--path {}/g", dir.display()));
        let whole = dir.join("f").display().to_string();
        assert_eq!(shown(&env, &whole)["held"], true);
        std::fs::remove_file(format!("{}.pipe", lock.flag.display())).unwrap();
        lock.ends().ok();
    }
}

#[test]
fn a_shared_lock_keeps_out_only_those_who_do_not_share() {
    let env = env();
    let (ann, bob) = (env.agent("ann"), env.agent("bob"));
    let one = Lock::runs(&env, &ann, "a --shared");
    let two = Lock::runs(&env, &bob, "a --shared --wait 5s");
    let pids = shown(&env, "a")["pids"].clone();
    let both = [one.wrapper.pid, two.wrapper.pid];
    assert!(
        both.iter()
            .all(|pid| pids.as_array().unwrap().contains(&json!(pid))),
        "{pids}"
    );
    held(&env, "a");
    two.ends().ok();
    held(&env, "a");
    let shown = shown(&env, "a");
    assert_eq!(shown["pids"], json!([one.wrapper.pid]));
    assert_ne!(shown["holder"]["pid"], json!(both[1]), "it has ended");
    one.ends().ok();
    let whole = Lock::runs(&env, &ann, "a");
    held(&env, "a --shared");
    whole.ends().ok();
}

#[test]
fn every_lock_is_shown_with_its_holder_and_those_who_wait() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), env.agent("bob"));
    assert_eq!(env.tenure(&["locks"]).ok().stdout, "no locks\n");
    free(&env, "b");
    let lock_a = Lock::runs(&env, &ann, "a");
    let waiting = [
        waits(&env, &bob, "a", lock("a --wait forever", "true")),
        waits(&env, &bob, "a", lock("a --wait 5m", "true")),
    ];
    let a = shown(&env, "a");
    assert_eq!(
        (&a["held"], &a["waiting"]),
        (&json!(true), &json!(2)),
        "{a}"
    );
    assert_eq!(a["holder"]["session"], handle(&ann).as_str());
    assert_eq!(a["holder"]["pid"], lock_a.wrapper.pid);
    assert!(
        text(&a["holder"]["command"]).starts_with("bash -c mkfifo"),
        "{a}"
    );
    assert!(text(&a["holder"]["since"]).ends_with('Z'), "{a}");
    let b = shown(&env, "b");
    assert_eq!(
        (&b["held"], &b["holder"], &b["waiting"]),
        (&json!(false), &Value::Null, &json!(0))
    );
    let people = env.tenure(&["locks", "--held"]).ok().stdout;
    assert!(
        people.contains(&handle(&ann)) && !people.contains("free"),
        "{people}"
    );
    for waiter in &waiting {
        waiter.kill9();
    }
    poll(SOON, "nobody waits", || {
        (shown(&env, "a")["waiting"] == 0).then_some(())
    });
    lock_a.ends().ok();
    assert_eq!(shown(&env, "a")["holder"], Value::Null);
}

/// The dead one's record is still there when a holder that leaves none has the lock.
#[test]
fn a_dead_holder_is_never_shown_as_a_holder() {
    let env = env();
    let ann = env.agent("ann");
    let lock = Lock::runs(&env, &ann, "a");
    lock.wrapper.kill9();
    kill9(&ann, lock.command);
    let a = shown(&env, "a");
    assert_eq!(
        (&a["held"], &a["holder"], &a["pids"]),
        (&json!(false), &Value::Null, &json!([]))
    );
    let locks = LockDir::open(&env.state().join("locks")).unwrap();
    let _mine = locks
        .try_lock(&LockName::plain("a").unwrap(), Sharing::Exclusive)
        .unwrap();
    let a = shown(&env, "a");
    assert_eq!(
        (&a["held"], &a["pids"]),
        (&json!(true), &json!([std::process::id()]))
    );
    assert_eq!(a["holder"], Value::Null, "that was the dead one");
    let why = refused(&attempt(&env, "a"), 125, "held");
    assert!(!why.contains(&lock.wrapper.pid.to_string()), "{why}");
    assert!(why.contains(&std::process::id().to_string()), "{why}");
}

//! Bad input, bad places and bad stores: the documented code, a way out, and nothing changed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use serde_json::Value;
use tenure_testkit::{Agent, Cmd, Env, Output, poll};

use crate::env;
use crate::support::line::{SOON, crew, handle, run, session};
use crate::support::mount::{as_root, with_mounts};

const NOBODY: u32 = 65534;

/// What people and programs must get of a failure.
#[track_caller]
fn explained(text: &Output, json: &Output, code: i32, kind: &str) {
    assert_eq!(text.code, code, "{text}");
    assert_eq!(text.stdout, "", "{text}");
    let count = |start: &str| {
        let lines = text.stderr.lines();
        lines.filter(|line| line.starts_with(start)).count()
    };
    assert_eq!(count("error: "), 1, "one error: on stderr\n{text}");
    assert!(count("hint: ") >= 1, "no hint: on stderr\n{text}");
    assert_eq!(json.code, code, "{json}");
    let object = json.json();
    let error = &object["error"];
    assert_eq!(object["v"], 1, "{json}");
    assert!(object["notices"].is_array(), "{json}");
    assert_eq!(error["kind"], kind, "{json}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.len() > 8 && !message.ends_with(':'), "{json}");
    let hints = error["hints"].as_array().expect("hints");
    assert!(!hints.is_empty(), "no hints\n{json}");
}

/// Runs a line (its words stand between bars) for people and for programs, and both must be refused.
#[track_caller]
fn refused_with(agent: &Agent, env: &[(&str, Option<&str>)], code: i32, kind: &str, line: &str) {
    let words: Vec<&str> = line.split('|').collect();
    let text = agent.tenure_env(env, &words);
    let json = agent.tenure_env(env, &[&words[..], &["--json"]].concat());
    explained(&text, &json, code, kind);
}

#[track_caller]
fn refused(agent: &Agent, code: i32, kind: &str, line: &str) {
    refused_with(agent, &[], code, kind, line);
}

/// The store, byte for byte.
#[derive(PartialEq)]
struct Stored([Option<Vec<u8>>; 2]);

impl Stored {
    fn of(env: &Env) -> Stored {
        Stored(["tenure.db", "tenure.db-wal"].map(|name| fs::read(env.state().join(name)).ok()))
    }

    #[track_caller]
    fn assert_unchanged(&self, env: &Env) {
        assert!(*self == Stored::of(env), "the store was changed");
    }
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

#[test]
fn f_c17_malformed_keys_are_refused_by_every_verb_and_change_nothing() {
    let (env, [ann]) = crew(["ann"]);
    let before = Stored::of(&env);
    let long = format!("wp:{}", "x".repeat(510));
    for key in [
        "", "x", ":", "wp:", ":x", "WP:1", "wp: x", "wp:x ", "#", "#x",
    ] {
        refused(&ann, 2, "malformed", &format!("claim|{key}"));
    }
    for key in [
        "wp:a\nb",
        "wp:a\tb",
        "wp:\u{7f}",
        "wp:a\u{200b}b",
        "#42",
        "issue:42",
        &long,
    ] {
        refused(&ann, 2, "malformed", &format!("claim|{key}"));
    }
    for verb in [
        "release",
        "guard",
        "why",
        "log",
        "handoff|--to|x",
        "takeover|--reason|x",
    ] {
        refused(&ann, 2, "malformed", &format!("{verb}|wp:a\nb"));
    }
    before.assert_unchanged(&env);
    run(&ann, 0, &format!("claim {}", &long[..512]));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let (_env, [ann]) = crew(["ann"]);
    let text = ann.tenure_shell("tenure claim \"$(printf 'wp:\\377')\"");
    let json = ann.tenure_shell("tenure claim --json \"$(printf 'wp:\\377')\"");
    explained(&text, &json, 2, "usage");
}

#[test]
fn a_name_that_fits_no_session_or_several_is_refused() {
    let (env, [ann, other]) = crew(["ann", "ann"]);
    run(&ann, 0, "claim wp:1");
    let before = Stored::of(&env);
    let unknown =
        ["zed-0000", "%", "_", "ann-____", "ANN"].map(|name| (name, 4, "no_such_session"));
    for (name, code, kind) in unknown
        .into_iter()
        .chain([("ann-", 6, "ambiguous"), ("", 2, "usage")])
    {
        for line in ["show|", "alive|", "whoami|--session|", "handoff|wp:1|--to|"] {
            refused(&ann, code, kind, &format!("{line}{name}"));
        }
        refused(&ann, code, kind, &format!("tell|{name}|hello"));
        refused(
            &ann,
            code,
            kind,
            &format!("release|wp:1|--reason|x|--session|{name}"),
        );
        refused(
            &other,
            code,
            kind,
            &format!("takeover|wp:1|--reason|x|--from|{name}"),
        );
    }
    before.assert_unchanged(&env);
    let error = &run(&ann, 6, "show ann-")["error"];
    for one in [handle(&ann), handle(&other)] {
        let candidates = error["candidates"].as_array().expect("candidates");
        assert!(candidates.contains(&Value::from(one)), "{error}");
    }
}

#[test]
fn acting_for_a_stranger_takes_a_reason() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let stranger = handle(&ann);
    let before = Stored::of(&env);
    for line in [
        "claim|wp:1",
        "release|wp:1",
        "end",
        "guard|wp:1",
        "meta|set|a|b",
    ] {
        refused(
            &bob,
            2,
            "reason_needed",
            &format!("{line}|--session|{stranger}"),
        );
    }
    let renew = format!("renew|--session|{stranger}");
    refused(&bob, 2, "own_session_only", &renew);
    before.assert_unchanged(&env);
}

#[test]
fn a_pid_that_is_dead_or_no_pid_is_refused() {
    let (env, [ann]) = crew(["ann"]);
    let child = ann.start(Cmd::new("sleep").arg("1000"));
    let gone = child.pid;
    child.kill9();
    assert_eq!(child.wait().code, 137);
    let before = Stored::of(&env);
    refused(
        &ann,
        4,
        "not_found",
        &format!("register|--agent|w|--pid|{gone}"),
    );
    for pid in ["0", "-1", "abc", "", "4294967295", "1.5"] {
        refused(&ann, 2, "usage", &format!("register|--agent|w|--pid|{pid}"));
    }
    before.assert_unchanged(&env);
}

#[test]
fn another_users_process_is_refused() {
    let (env, [ann]) = crew(["ann"]);
    let other = as_root().then(|| {
        let args = ["--reuid=65534", "--clear-groups", "sleep", "1000"];
        let other = ann.start(Cmd::new("setpriv").args(args));
        poll(SOON, "it became another user's", || {
            let status = fs::read_to_string(format!("/proc/{}/status", other.pid)).ok()?;
            status.contains("Name:\tsleep").then_some(())
        });
        other
    });
    let before = Stored::of(&env);
    let pid = other.as_ref().map_or(1, |other| other.pid);
    refused(
        &ann,
        6,
        "invalid",
        &format!("register|--agent|w|--pid|{pid}"),
    );
    before.assert_unchanged(&env);
}

#[test]
fn absurd_durations_are_refused_wherever_they_come_from() {
    let (env, [ann]) = crew(["ann"]);
    let before = Stored::of(&env);
    for length in ["-5m", "100y", "", "5", "abc", "9999999d"] {
        refused(
            &ann,
            2,
            "usage",
            &format!("renew|--reason|x|--for|{length}"),
        );
        refused(
            &ann,
            2,
            "usage",
            &format!("renew|--reason|x|--for={length}"),
        );
    }
    let told = ann.tenure(&["renew", "--reason", "x", "--for", "-5m"]);
    assert!(told.stderr.contains("-5m"), "it names the value\n{told}");
    for name in ["TENURE_LEASE", "TENURE_LOCK_DELAY", "TENURE_STALLED_AFTER"] {
        for length in ["abc", "-5m", "100y", "5"] {
            refused_with(&ann, &[(name, Some(length))], 2, "config", "claim|wp:1");
        }
        let told = ann.tenure_env(&[(name, Some("abc"))], &["ps"]).fails(2);
        assert!(told.stderr.contains(name), "it names the variable\n{told}");
    }
    before.assert_unchanged(&env);
}

/// What is wrong with a command line, and what the answer must name.
const WRONG: [(&str, &str); 12] = [
    ("ps|--bogus", "--bogus"),
    ("frobnicate", "frobnicate"),
    ("claim", "KEY"),
    ("claim|wp:1|-x", "-x"),
    ("takeover|wp:1", "--reason"),
    ("takeover|wp:1|--reason|x|--from|a|--epoch|1", "--epoch"),
    ("guard|wp:1|--epoch|-1", "-1"),
    ("guard|wp:1|--epoch|x", "--epoch"),
    ("ps|--limit|many", "many"),
    ("completions|tcl", "tcl"),
    ("meta", "command"),
    ("--quiet", "command"),
];

#[test]
fn a_wrong_command_line_is_told_what_is_wrong_with_it() {
    let (env, [ann]) = crew(["ann"]);
    let before = Stored::of(&env);
    for (line, word) in WRONG {
        let told = run(&ann, 2, &line.replace('|', " "));
        let message = told["error"]["message"].as_str().unwrap_or_default();
        let names = message.to_lowercase().contains(&word.to_lowercase());
        assert!(names, "{line} should name {word}: {message}");
        assert!(!message.contains("__"), "{line}: {message}");
        refused(&ann, 2, "usage", line);
    }
    before.assert_unchanged(&env);
}

#[test]
fn f_d09_a_test_can_never_reach_the_real_state_directory() {
    let env = env();
    let ann = env.agent("ann");
    let real = env.home().join(".local/state/tenure");
    for home in [None, Some(""), Some(shown(&real))] {
        refused_with(&ann, &[("TENURE_HOME", home)], 8, "store_unavailable", "ps");
    }
    let made = fs::read_dir(env.home()).unwrap().count();
    assert_eq!(made, 0, "something was made in HOME");
}

#[test]
fn a_missing_state_directory_is_made_for_its_owner_alone() {
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    for mask in ["000", "022", "077", "777"] {
        let env = env();
        let home = env.dir().join("a/b/state");
        let agent = env.agent("w");
        let line = format!(
            "umask {mask}; export TENURE_HOME={}
             tenure register --agent w --pid $PPID && tenure claim wp:1",
            home.display()
        );
        agent.tenure_shell(&line).ok();
        assert_eq!(mode(&home), 0o700, "umask {mask}");
        for entry in fs::read_dir(&home).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "umask {mask}: {}", path.display());
        }
    }
}

#[test]
fn a_state_directory_that_cannot_be_trusted_is_refused_and_left_alone() {
    let env = env();
    let ann = env.agent("ann");
    let at = |name: &str| env.dir().join(name);
    let make = |name: &str, mode: u32| {
        fs::create_dir(at(name)).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    };
    fs::write(at("file"), "precious").unwrap();
    make("real", 0o700);
    symlink(at("real"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    make("group", 0o770);
    make("world", 0o707);
    make("theirs", 0o700);
    let mut places = vec![
        ("file", "not a directory"),
        ("file/below", "ot a directory"),
        ("link", "symbolic link"),
        ("dangling", "symbolic link"),
        ("group", "0770"),
        ("world", "0707"),
    ];
    if as_root() {
        chown(at("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
        places.push(("theirs", "65534"));
    }
    for (place, why) in places {
        let home = at(place);
        let home = [("TENURE_HOME", Some(shown(&home)))];
        for line in ["ps", "register", "claim|wp:1"] {
            refused_with(&ann, &home, 8, "store_unavailable", line);
        }
        let told = ann.tenure_env(&home, &["ps"]);
        assert!(told.stderr.contains(shown(env.dir())), "{place}: {told}");
        assert!(told.stderr.contains(why), "{place}: {told}");
    }
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "precious");
    assert!(!at("nowhere").exists());
    for empty in ["real", "group", "world", "theirs"] {
        let written = fs::read_dir(at(empty)).unwrap().count();
        assert_eq!(written, 0, "{empty} was written to");
    }
}

#[test]
fn a_read_only_store_refuses_to_change_and_loses_nothing() {
    let (env, [ann]) = crew(["ann"]);
    run(&ann, 0, "claim wp:before");
    let before = Stored::of(&env);
    let read_only = "mount --bind $TENURE_HOME $TENURE_HOME
        mount -o remount,bind,ro $TENURE_HOME
        exec tenure claim wp:1";
    let text = ann.run(with_mounts(read_only));
    let json = ann.run(with_mounts(&format!("{read_only} --json")));
    explained(&text, &json, 8, "store_unavailable");
    let why = text.stderr.to_lowercase();
    assert!(
        why.contains("read-only") || why.contains("readonly"),
        "{text}"
    );
    before.assert_unchanged(&env);
    run(&ann, 0, "claim wp:1");
}

/// Claims on a disk that fills up, and again when there is room; each answer lies in a file.
const FULL: &str = "
    mkdir -p $TENURE_HOME; mount -t tmpfs -o size=900k,mode=700 tmpfs $TENURE_HOME
    tenure register --agent w --pid $$
    tenure claim wp:before
    dd if=/dev/zero of=$TENURE_HOME/filler bs=512 2>/dev/null || true
    n=0
    while tenure claim wp:full/$n --json >$OUT/refused; do
      n=$((n+1)); test $n -lt 2000
    done
    echo $n >$OUT/granted
    tenure claim wp:full/$n 2>$OUT/told || echo $? >$OUT/code
    rm $TENURE_HOME/filler
    tenure claim wp:again
    tenure claims --json --limit 3000 >$OUT/after";

#[test]
fn f_d08_a_full_disk_is_an_error_that_changes_nothing_and_passes_with_room() {
    let env = env();
    let out = env.dir().join("out");
    fs::create_dir(&out).unwrap();
    let full = with_mounts(FULL).env("OUT", shown(&out));
    env.agent("ann").run(full).ok();
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let json = |name: &str| -> Value { serde_json::from_str(&read(name)).unwrap() };
    let error = &json("refused")["error"];
    assert_eq!(error["kind"], "store_full", "{error}");
    assert_eq!(read("code").trim(), "8");
    let told = read("told");
    assert!(
        told.contains("error: ") && told.contains("hint: "),
        "{told}"
    );
    let after = json("after");
    let claims = after["claims"].as_array().unwrap();
    let granted: usize = read("granted").trim().parse().unwrap();
    assert_eq!(claims.len(), granted + 2, "{after}");
    for key in ["wp:before", "wp:again"] {
        assert!(
            claims.iter().any(|claim| claim["key"] == key),
            "{key}: {after}"
        );
    }
}

#[test]
fn f_d08_a_store_is_not_half_made_on_a_full_disk() {
    let env = env();
    let script = "
        mkdir -p $TENURE_HOME; mount -t tmpfs -o size=16k,mode=700 tmpfs $TENURE_HOME
        tenure register --unverified --agent cron && exit 99
        tenure register --unverified --agent cron --json && exit 98
        mount -o remount,size=4m $TENURE_HOME
        tenure register --unverified --agent cron --json";
    let output = env.agent("ann").run(with_mounts(script)).ok();
    let answers: Vec<&str> = output.stdout.lines().collect();
    let [refused, made] = answers[..] else {
        panic!("two answers\n{output}")
    };
    let full = ["\"store_full\"", "\"store_unavailable\""];
    assert!(full.iter().any(|kind| refused.contains(kind)), "{output}");
    assert!(output.stderr.contains("error: "), "{output}");
    assert!(output.stderr.contains("hint: "), "{output}");
    assert!(made.contains("\"registered\":\"new\""), "{output}");
}

/// A store with a session and a claim.
fn used() -> (Env, Agent) {
    let env = env();
    let ann = session(&env, "ann");
    run(&ann, 0, "claim wp:1");
    (env, ann)
}

/// Every verb refuses the store as it is now, and leaves every byte of it.
#[track_caller]
fn refused_as_it_is(env: &Env, ann: &Agent, kind: &str) {
    let files = || -> Vec<_> {
        let all = fs::read_dir(env.state()).expect("it is there").flatten();
        let names = all.map(|entry| entry.file_name());
        names
            .filter(|name| !shown(Path::new(name)).ends_with("-shm"))
            .collect()
    };
    let (before, names) = (Stored::of(env), files());
    for line in [
        "ps",
        "register",
        "claim|wp:2",
        "why|wp:1",
        "log",
        "release|wp:1",
        "whoami",
    ] {
        refused(ann, 8, kind, line);
    }
    before.assert_unchanged(env);
    assert_eq!(files(), names, "files came or went");
    let told = ann.tenure(&["ps"]).fails(8);
    let file = env.state().join("tenure.db");
    assert!(
        told.stderr.contains(shown(&file)),
        "it names the file\n{told}"
    );
}

#[test]
fn f_d01_a_damaged_store_is_refused_kept_and_explained() {
    let damages: [fn(&mut Vec<u8>); 5] = [
        Vec::clear,
        |bytes| *bytes = b"{\"sessions\": []}\n".to_vec(),
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| bytes.truncate(60),
        |bytes| bytes[18] ^= 4,
    ];
    let (env, ann) = used();
    let file = env.state().join("tenure.db");
    let sound = fs::read(&file).unwrap();
    for damage in damages {
        let mut bytes = sound.clone();
        damage(&mut bytes);
        fs::write(&file, &bytes).unwrap();
        refused_as_it_is(&env, &ann, "store_damaged");
    }
    fs::write(&file, &sound).unwrap();
    run(&ann, 0, "guard wp:1 --epoch 1");
}

#[test]
fn f_d02_a_lost_database_is_not_replaced_by_an_empty_one_while_its_log_is_there() {
    let (env, ann) = used();
    let (file, aside) = (env.state().join("tenure.db"), env.dir().join("aside.db"));
    fs::rename(&file, &aside).unwrap();
    refused_as_it_is(&env, &ann, "store_damaged");
    fs::rename(&aside, &file).unwrap();
    run(&ann, 0, "guard wp:1 --epoch 1");
}

/// A fresh store whose header says that its schema has this number.
fn of_schema(number: u32) -> (Env, Agent, Vec<u8>) {
    let env = env();
    let ann = env.agent("ann");
    // It is made by a verb that may write without a session, and has nothing to write here.
    let _made = ann.tenure(&["mission", "use", "--clear", "--for", "user"]);
    let mut bytes = fs::read(env.state().join("tenure.db")).expect("it was just made");
    bytes[60..64].copy_from_slice(&number.to_be_bytes());
    (env, ann, bytes)
}

#[test]
fn f_d11_a_store_of_a_newer_version_is_refused_with_the_version_needed() {
    let (env, ann, _) = of_schema(0);
    let newer = rusqlite::Connection::open(env.state().join("tenure.db")).unwrap();
    newer
        .execute_batch(
            "PRAGMA user_version = 998; \
             UPDATE meta SET value = '998' WHERE name IN ('schema', 'min_writer'); \
             PRAGMA wal_checkpoint(TRUNCATE)",
        )
        .unwrap();
    // Its log stays while somebody has it open.
    refused_as_it_is(&env, &ann, "store_too_new");
    drop(newer);
    let told = ann.tenure(&["ps"]).fails(8);
    assert!(told.stderr.contains("hint: install tenure "), "{told}");
}

#[test]
fn f_d11_a_store_whose_header_and_tables_disagree_is_damaged() {
    let (env, ann, bytes) = of_schema(999);
    fs::write(env.state().join("tenure.db"), &bytes).unwrap();
    refused_as_it_is(&env, &ann, "store_damaged");
}

//! `transcript append` beside the agent, which writes to the same file and takes no lock.

use std::fs;
use std::path::Path;

use serde_json::json;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Cmd, Env, Output, poll};

use crate::env;
use crate::support::line::{SOON, events, handle, run};
use crate::support::skip::skipped;
use crate::support::transcript::{append, claude, fails, file_of, line_of};
use crate::support::waiter::ends;

/// How many lines the agent writes.
const LINES: usize = 4000;

fn agents_line(n: usize) -> String {
    format!("{{\"sessionId\":\"aaa\",\"n\":{n}}}\n")
}

/// A line of about this many bytes.
fn long_line(length: usize) -> String {
    format!("{{\"text\":\"{}\"}}\n", "x".repeat(length))
}

/// A shell line: the agent appends its lines, a few at a time and without our lock, while appends of ours
/// fail again and again. After each eighth of its lines it waits until one more of ours has failed, so that
/// there are always some. Says how many of ours failed.
fn both(me: &str, own: &Path, input: &Path, limit: &str, scratch: &Path) -> String {
    let (own, input, scratch) = (own.display(), input.display(), scratch.display());
    format!(
        r#"echo 0 >{scratch}/failures
        (
            n=0 eighths=0 failures=0
            while [ $n -lt {LINES} ]; do
                for part in 1 2 3 4; do
                    echo '{{"sessionId":"aaa","n":'$n'}}' || echo "the agent could not write" >>{scratch}/hurt
                    n=$((n+1))
                done
                /bin/true
                [ $((n * 8 / {LINES})) = $eighths ] && continue
                eighths=$((eighths+1))
                while [ $failures -lt $eighths ]; do
                    /bin/true
                    read -r failures <{scratch}/failures
                done
            done >>{own}
        ) &
        writer=$!
        failed=0
        while kill -0 $writer 2>/dev/null; do
            ( {limit} exec tenure transcript append {me} --wait 1m ) <{input} >{scratch}/out 2>{scratch}/err
            code=$?
            [ $code = 8 ] || {{ echo "exit $code"; cat {scratch}/out {scratch}/err; }} >>{scratch}/hurt
            failed=$((failed+1))
            echo $failed >{scratch}/more && mv {scratch}/more {scratch}/failures
        done
        wait $writer
        cp {own} {scratch}/end
        echo $failed"#
    )
}

/// Asserts that every line of the agent is there, whole and in order, and nothing else.
#[track_caller]
fn nothing_is_lost(scratch: &Path, before: &str, said: &Output) {
    let hurt = fs::read_to_string(scratch.join("hurt")).unwrap_or_default();
    assert_eq!(hurt, "", "{said}");
    let failed: usize = said.stdout.trim().parse().expect("a number");
    assert!(failed > 5, "{said}");
    let end = fs::read_to_string(scratch.join("end")).expect("the agent ended");
    let after = end.strip_prefix(before).expect("what was there stays");
    let there: Vec<&str> = after.lines().collect();
    let expected: Vec<String> = (0..LINES).map(agents_line).collect();
    let expected: Vec<&str> = expected.iter().map(|line| line.trim_end()).collect();
    assert_eq!(there.len(), expected.len(), "lines of the agent");
    assert!(
        there == expected,
        "each line of the agent, whole and in order"
    );
}

fn scratch(env: &Env) -> std::path::PathBuf {
    let dir = env.dir().join("scratch");
    fs::create_dir(&dir).expect("the environment is ours");
    dir
}

#[test]
fn appends_that_a_full_disk_refuses_take_no_line_of_the_agent() {
    let env = env();
    let ann = claude(&env, "aaa");
    let (own, me, scratch) = (file_of(&env, "aaa"), handle(&ann), scratch(&env));
    let input = scratch.join("input");
    fs::write(&input, long_line(6_000_000)).unwrap();
    let dir = own.parent().unwrap().display();
    let mounted = format!("mount -t tmpfs -o size=4m tenure-test {dir}");
    let unshare = |line: &str| ann.run(Cmd::new("unshare").args(["-Urm", "bash", "-c", line]));
    let tried = unshare(&mounted);
    if tried.code != 0 {
        return skipped("no file system can be mounted here");
    }
    let first = line_of("aaa");
    let both = both(&me, &own, &input, "", &scratch);
    let said = unshare(&format!(
        "{mounted} && echo '{}' >{} && {both}",
        first.trim(),
        own.display()
    ));
    nothing_is_lost(&scratch, &first, &said.ok());
}

#[test]
fn appends_that_the_limit_on_file_sizes_refuses_take_no_line_of_the_agent() {
    let env = env();
    let ann = claude(&env, "aaa");
    let (own, me, scratch) = (file_of(&env, "aaa"), handle(&ann), scratch(&env));
    let input = scratch.join("input");
    fs::write(&input, long_line(100_000)).unwrap();
    // The store and the journal stay below the limit; the transcript does not.
    let before: String = (0..20).map(|_| long_line(400_000)).collect();
    fs::write(&own, &before).unwrap();
    let limit = before.len() / 1024 + 60;
    let limit = format!("trap '' XFSZ; ulimit -c 0; ulimit -f {limit};");
    let both = both(&me, &own, &input, &limit, &scratch);
    let said = ann.run(Cmd::new("bash").args(["-c", &both]));
    nothing_is_lost(&scratch, &before, &said.ok());
}

/// Runs an append that stops itself when it has reserved room; returns it and the stopped process.
fn stopped_after_reserving(
    ann: &Agent,
    scratch: &Path,
    own: &Path,
    line: &str,
) -> (tenure_testkit::Background, u32) {
    let trace = scratch.join("trace");
    // One of an earlier round would say that this one stands.
    fs::write(&trace, "").expect("the environment is ours");
    let line = format!(
        "ulimit -c 0; exec strace -o {} -P {} -e trace=fallocate -e inject=fallocate:signal=STOP:when=1 {line}",
        trace.display(),
        own.display(),
    );
    let appender = ann.start(Cmd::new("bash").args(["-c", &line]));
    let stopped = poll(SOON, "it stands", || {
        let said = || format!("{}{}", appender.stdout(), appender.stderr());
        assert!(appender.is_alive(), "{}", said());
        let all = fs::read_dir("/proc").expect("/proc").flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut kids = pids.filter_map(|pid: u32| Some((pid, Stat::read(pid)?)));
        let kid = kids.find(|(_, stat)| stat.parent == appender.pid)?;
        let text = fs::read_to_string(&trace).unwrap_or_default();
        (text.contains("stopped by SIGSTOP") && "tT".contains(kid.1.state)).then_some(kid.0)
    });
    (appender, stopped)
}

/// The agent's lines use up, between our check and our write, what the limit on file sizes leaves.
#[test]
fn an_append_that_is_cut_short_is_reported_with_its_place_and_finished_by_the_next() {
    let env = env();
    let ann = claude(&env, "aaa");
    let (own, me, scratch) = (file_of(&env, "aaa"), handle(&ann), scratch(&env));
    if ann.run(Cmd::shell("strace -o /dev/null true")).code != 0 {
        return skipped("strace does not work here");
    }
    let before: String = (0..20).map(|_| long_line(400_000)).collect();
    let added = long_line(50_000) + &long_line(50_000);
    let input = scratch.join("input");
    fs::write(&input, &added).unwrap();
    let limit = before.len() / 1024 + 1024 + 120;
    for durable in ["", "--durable"] {
        fs::write(&own, &before).unwrap();
        let line = format!(
            "bash -c 'ulimit -f {limit}; exec tenure transcript append {me} {durable} --json <{}'",
            input.display()
        );
        let (appender, stopped) = stopped_after_reserving(&ann, &scratch, &own, &line);
        let room = limit * 1024 - before.len();
        let agents = long_line(room - 70_000);
        let mut writer = fs::OpenOptions::new().append(true).open(&own).unwrap();
        std::io::Write::write_all(&mut writer, agents.as_bytes()).unwrap();
        ann.run(Cmd::new("kill").args(["-CONT".to_owned(), stopped.to_string()]))
            .ok();
        let said = ends(appender);
        let why = fails(&said, 8, "store_unavailable");
        let torn = limit * 1024 - before.len() - agents.len();
        assert!(why.contains(&torn.to_string()), "{why}");
        let place = json!({"offset": before.len() + agents.len(), "written": torn, "length": added.len(), "resumable": true});
        assert_eq!(said.json()["error"]["torn"], place, "{said}");
        let text = fs::read_to_string(&own).unwrap();
        assert!(
            text == format!("{before}{agents}{}", &added[..torn]),
            "nothing is cut off"
        );
        let found = run(&ann, 6, &format!("transcript verify {me}"))["transcript"].clone();
        assert_eq!(found["problems"][0]["kind"], "torn");
        append(&ann, &me, "{}\n").ok();
        let text = fs::read_to_string(&own).unwrap();
        assert!(
            text == format!("{before}{agents}{added}{{}}\n"),
            "it is finished"
        );
    }
}

#[test]
fn f_t01_lines_that_verify_would_report_are_refused_and_nothing_is_written() {
    let env = env();
    let ann = claude(&env, "aaa");
    let (own, me) = (file_of(&env, "aaa"), handle(&ann));
    let refused = |lines: &[u8], number: u64, kind: &str| {
        let input = env.dir().join("input");
        fs::write(&input, lines).unwrap();
        let line = format!(
            "exec tenure transcript append {me} --json <{}",
            input.display()
        );
        let said = ann.run(Cmd::shell(&line));
        fails(&said, 6, "invalid");
        let first = &said.json()["error"]["problems"][0];
        assert_eq!(
            (&first["line"], &first["kind"]),
            (&json!(number), &json!(kind)),
            "{said}"
        );
        assert_eq!(fs::read_to_string(&own).unwrap(), line_of("aaa"), "{said}");
    };
    refused(b"{}\nnot json\n", 2, "malformed");
    refused(b"{}\n[1]\n{}\n", 2, "malformed");
    refused(b"{\"text\":\"\xff\xfe\"}\n", 1, "malformed");
    refused(b"{}\n{}\n\n", 3, "malformed");
    assert_eq!(contaminations(&ann), 0);
    refused(line_of("bbb").as_bytes(), 1, "foreign");
    refused(b"{}\n{\"session_id\":\"bbb\"}\n", 2, "foreign");
    assert_eq!(contaminations(&ann), 2);
    append(&ann, &me, &line_of("aaa")).ok();
    run(&ann, 0, &format!("transcript verify {me}"));
}

fn contaminations(ann: &Agent) -> usize {
    let all = events(ann, "--limit 1000").into_iter();
    all.filter(|event| event["kind"] == "contamination").count()
}

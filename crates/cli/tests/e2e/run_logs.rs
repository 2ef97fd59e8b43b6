//! The log of a run: bounded while the agent floods, while the disk is full, and after the run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::{Agent, Env, Scripted, poll};

use crate::env;
use crate::support::line::SOON;
use crate::support::mount::with_mounts;
use crate::support::run::{newest, outcome, run, runner_of, start, until};
use crate::support::skip::skipped;

const LONG: Duration = Duration::from_secs(240);

/// How much a flood is; the long tier asks for a gigabyte.
fn flood() -> u64 {
    let asked = std::env::var("TENURE_FLOOD_BYTES").ok();
    asked.map_or(80_000_000, |text| text.parse().expect("a number"))
}

fn log_of(run: &Value) -> PathBuf {
    PathBuf::from(run["log"].as_str().expect("a log"))
}

/// The most memory of its own that a process was seen to have until it ended, in bytes. What it maps of files is not
/// counted: of a program with its debug symbols that depends on the page cache.
fn peak(pid: u32) -> u64 {
    let mut peak = 0;
    poll(LONG, "the runner ends", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let Some(line) = line else { return Some(()) };
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a size");
        peak = peak.max(kib << 10);
        None
    });
    peak
}

/// Runs an agent that waits before it floods, so that its runner can be found.
fn runs_a_flood(env: &Env, ann: &Agent, mine: &Scripted) -> (u64, tenure_testkit::Output) {
    mine.keep("flag");
    let window = start(ann, "mine wp:1");
    let run = until(env, "it runs", |run| run["native_id"] == "c-1");
    let runner = runner_of(&run);
    std::fs::remove_file(mine.file("flag")).expect("it is there");
    let peak = peak(runner);
    (peak, window.wait())
}

#[test]
fn a_flood_leaves_the_beginning_and_the_end() {
    let env = env();
    let bytes = flood();
    let line = "{\\\"type\\\":\\\"noise\\\",\\\"text\\\":\\\"$(printf '%0100000d' 7)\\\"}";
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "init; work first; hold $dir/flag; yes \"{line}\" | head -c {bytes}; echo; work last; done_ dry"
        ),
    );
    let ann = env.agent("ann");
    ann.set_patience(LONG);
    let (peak, said) = runs_a_flood(&env, &ann, &mine);
    let said = said.ok();
    assert_eq!(said.stdout, "dry\n");
    assert!(
        said.stderr
            .contains("MiB in the middle of the log were dropped"),
        "{said}"
    );
    assert!(peak < 16 << 20, "the runner needed {peak} bytes");
    let log = log_of(&newest(&env)).join("output.jsonl");
    let length = std::fs::metadata(&log).unwrap().len();
    assert!(length <= 64 << 20, "{length} bytes");
    let text = std::fs::read(&log).unwrap();
    let text = String::from_utf8_lossy(&text);
    assert!(text.starts_with("{\"type\":\"init\""), "{}", &text[..100]);
    assert!(text.contains("\"first\"") && text.contains("\"last\""));
    assert!(text.contains("\"tenure.dropped\"") && text.trim_end().ends_with("\"dry\"}"));
}

#[test]
fn a_flood_without_a_line_end_needs_no_memory() {
    let env = env();
    let bytes = flood();
    let mine = Scripted::new(
        &env,
        "mine",
        &format!("init; hold $dir/flag; head -c {bytes} /dev/zero | tr '\\0' x; echo; done_ dry"),
    );
    let ann = env.agent("ann");
    ann.set_patience(LONG);
    let (peak, said) = runs_a_flood(&env, &ann, &mine);
    assert_eq!(said.ok().stdout, "dry\n");
    assert!(peak < 16 << 20, "the runner needed {peak} bytes");
}

#[test]
fn what_a_run_left_running_does_not_write_to_its_log_any_more() {
    let env = env();
    let child = "echo $$ >$dir/child; while [ -e $dir/flag ]; do echo noise; sleep 0.01; done; : >$dir/over";
    let mine = Scripted::new(
        &env,
        "mine",
        &format!(
            "export dir; init; setsid sh -c '{child}' & while [ ! -s $dir/child ]; do sleep 0.02; done; done_ made"
        ),
    );
    mine.keep("flag");
    let ann = env.agent("ann");
    let said = run(&ann, "mine wp:1 --leave").ok();
    assert!(said.stderr.contains("still running: pid"), "{said}");
    let log = log_of(&newest(&env)).join("output.jsonl");
    let length = || std::fs::metadata(&log).unwrap().len();
    let before = length();
    let output = |pid: &str| std::fs::metadata(format!("/proc/{pid}/fd/1")).map(|file| file.len());
    let pid = mine.wrote("child").unwrap();
    let wrote = output(pid.trim()).unwrap();
    poll(SOON, "it writes on", || {
        (output(pid.trim()).unwrap() > wrote).then_some(())
    });
    assert_eq!(length(), before);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("\"made\""), "{text}");
    std::fs::remove_file(mine.file("flag")).unwrap();
    poll(SOON, "it ends", || mine.wrote("over"));
}

/// A disk of this size for the logs of runs, and a run on it; its log is copied to `$OUT`.
pub fn on_a_small_disk(env: &Env, prepare: &str) -> Option<(tenure_testkit::Output, PathBuf)> {
    let out = env.dir().join("out");
    std::fs::create_dir(&out).expect("the environment is writable");
    let ann = env.agent("ann");
    let mount =
        "mkdir -p $TENURE_HOME/runs; mount -t tmpfs -o size=4m,mode=700 tmpfs $TENURE_HOME/runs";
    if ann.run(with_mounts(mount)).code != 0 {
        skipped("no file system can be mounted here");
        return None;
    }
    let script = format!(
        "{mount}; {prepare}
         tenure run mine wp:1 --prompt 'do it' && code=0 || code=$?
         cp -r $TENURE_HOME/runs/r-* $OUT/
         exit $code"
    );
    let out_text = out
        .to_str()
        .expect("the environment is writable")
        .to_owned();
    let said = ann.run(with_mounts(&script).env("OUT", out_text));
    let log = std::fs::read_dir(&out)
        .expect("the environment is writable")
        .next();
    Some((
        said,
        log.map_or(out, |log| log.expect("the environment is writable").path()),
    ))
}

fn read(dir: &Path, name: &str) -> String {
    let bytes = std::fs::read(dir.join(name)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_run_whose_log_fills_the_disk_goes_on_and_its_log_names_what_is_missing() {
    let env = env();
    Scripted::new(
        &env,
        "mine",
        "init; work first
         i=0; while [ $i -lt 100 ]; do say \"{\\\"type\\\":\\\"noise\\\",\\\"text\\\":\\\"$(printf '%0100000d' 7)\\\"}\"; i=$((i + 1)); sleep 0.01; done
         work last; done_ 'all of it'",
    );
    let Some((said, log)) = on_a_small_disk(&env, "true") else {
        return;
    };
    assert_eq!(said.ok().stdout, "all of it\n");
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "done");
    let text = read(&log, "output.jsonl");
    assert!(text.starts_with("{\"type\":\"init\""), "{text:.100}");
    assert!(text.contains("\"last\"") && text.contains("\"all of it\""));
    let dropped = text
        .lines()
        .find(|line| line.contains("\"tenure.dropped\""))
        .unwrap_or_else(|| panic!("nothing says what is missing"));
    let dropped: Value = serde_json::from_str(dropped).unwrap();
    assert_eq!(dropped["why"], "the disk is full");
    let bytes = dropped["bytes"].as_u64().unwrap();
    assert!((5_000_000..10_000_000).contains(&bytes), "{bytes}");
}

#[test]
fn a_run_that_starts_on_a_full_disk_goes_on_and_is_recorded() {
    let env = env();
    Scripted::new(
        &env,
        "mine",
        "init; work first; head -c 9000000 /dev/zero | tr '\\0' '\\n'; work last; done_ 'all of it'",
    );
    // Room for the order and the prompt, and none to reserve.
    let fill = "head -c 4100000 /dev/zero >$TENURE_HOME/runs/filler";
    let Some((said, log)) = on_a_small_disk(&env, fill) else {
        return;
    };
    let said = said.ok();
    assert_eq!(said.stdout, "all of it\n");
    assert_eq!(outcome(&env), "done");
    assert!(said.stderr.contains("log"), "{said}");
    let text = read(&log, "output.jsonl");
    assert!(text.contains("\"tenure.dropped\""), "{} bytes", text.len());
}

#[test]
fn an_end_that_neither_the_disk_nor_the_store_takes_is_recorded_when_there_is_room() {
    let env = env();
    let mine = Scripted::new(
        &env,
        "mine",
        "init; cat /dev/zero >$TENURE_HOME/filler 2>/dev/null; work last; done_ 'all of it'; ready $dir/done",
    );
    let ann = env.agent("ann");
    let mount = "mkdir -p $TENURE_HOME; mount -t tmpfs -o size=8m,mode=700 tmpfs $TENURE_HOME";
    if ann.run(with_mounts(mount)).code != 0 {
        return skipped("no file system can be mounted here");
    }
    let script = format!(
        "{mount}; tenure run mine wp:1 --prompt 'do it' & window=$!
         while [ ! -e {done} ]; do sleep 0.02; done
         sleep 0.3
         rm $TENURE_HOME/filler
         wait $window && code=0 || code=$?
         tenure runs --json >&2
         exit $code",
        done = mine.file("done").display()
    );
    ann.set_patience(LONG);
    let said = ann.run(with_mounts(&script)).ok();
    assert_eq!(said.stdout, "all of it\n", "{said}");
    assert!(said.stderr.contains("\"outcome\":\"done\""), "{said}");
}

//! What a run costs beside the bare agent, what setting conversations costs when many do it at once, and lists of runs
//! in stores that have many.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tenure_core::ignore::Ignore;
use tenure_testkit::poll;

use super::Bench;
use super::process::{bare_args, register};
use crate::Failed;
use crate::counts::Counts;
use crate::place::BenchStore;
use crate::program::{ProgramCall, Surroundings};
use crate::report::{Budget, Measurement, Unit, divide};
use crate::sample::Sample;
use crate::seeded::{SMALL, Seeded, cut_log};

const GROUP: &str = "run";
/// How much more than `claim KEY -- CMD` a run may add to a program.
const ADDED: Budget = Budget::AtMost(3.0);
/// What window and runner may have together.
const MAX_MEBIBYTES: Budget = Budget::AtMost(20.0);
/// How much slower many runs may make a list.
const PAST: Budget = Budget::AtMost(1.3);
/// How many set a conversation at once.
const SETTERS: u32 = 50;
const FEW: u32 = 1_000;
const MANY: u32 = 100_000;

/// What is judged of counts.
type Of = fn(&Counts) -> u64;

/// A place with an agent that is described in the settings: `sh agent.sh`.
struct RunBench<'a> {
    bench: &'a Bench,
    place: BenchStore,
    around: Surroundings,
    dir: PathBuf,
}

impl<'a> RunBench<'a> {
    fn make(bench: &'a Bench, name: &str) -> Result<Self, Failed> {
        let dir = bench.dir(name)?;
        let place = Seeded::fresh(&dir.join("state"), SMALL)?.place;
        let around = Surroundings::make(&dir, place.dir())?;
        let script = dir.join("agent.sh");
        fs_err::write(
            &script,
            "echo '{\"session_id\":\"c-1\"}'; while [ -e \"$0.hold\" ]; do sleep 0.02; done; echo '{\"result\":\"ok\"}'\n",
        )?;
        let settings = dir.join("home/.config/tenure");
        fs_err::create_dir_all(&settings)?;
        let script = script.to_string_lossy();
        fs_err::write(
            settings.join("config.toml"),
            format!(
                "[agents.mine]\ncommand = [\"/bin/sh\", {script:?}]\n\
                 resume = [\"/bin/sh\", {script:?}, \"{{id}}\"]\nid = \"/session_id\"\ndone = \"/result\"\n"
            ),
        )?;
        Ok(Self {
            bench,
            place,
            around,
            dir,
        })
    }

    fn tenure(&self, args: &[&str]) -> ProgramCall {
        self.around
            .call(&self.bench.programs.tenure, args.iter().copied())
    }

    fn run(&self) -> ProgramCall {
        let item = "issue:bench/run#1";
        self.tenure(&["run", "mine", item, "--prompt", "do it"])
    }

    fn script(&self) -> String {
        self.dir.join("agent.sh").to_string_lossy().into_owned()
    }
}

pub(super) fn rows(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let field = RunBench::make(bench, "run")?;
    let mut rows = added(&field)?;
    rows.push(memory(&field)?);
    rows.push(setters(&field)?);
    rows.extend(lists(bench)?);
    Ok(rows)
}

/// What a run, and a claim for as long as a command lasts, add to the same program.
fn added(field: &RunBench<'_>) -> Result<Vec<Measurement>, Failed> {
    let script = field.script();
    let bare = field.around.call(Path::new("/bin/sh"), [script.clone()]);
    let claim = field.tenure(&["claim", "issue:bench/held#1", "--", "/bin/sh", &script]);
    let run = field.run();
    let (mut nothing, mut claims, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..field.bench.times(100) {
        nothing.push(bare.timed()?);
        claims.push(claim.timed()?);
        runs.push(run.timed()?);
    }
    let (nothing, claims, runs) = (Sample::of(nothing), Sample::of(claims), Sample::of(runs));
    let what = "tenure run adds : tenure claim KEY -- CMD adds, to a bare agent";
    let mut timed = Measurement::ratio(GROUP, what, &runs, &claims, Budget::None);
    let more = |sample: &Sample| sample.median() - nothing.median();
    timed.number = divide(more(&runs), more(&claims));
    timed.add("bare", nothing.json());
    let mut rows = vec![timed];
    field
        .bench
        .say("run: counting instructions and system calls");
    let count = |call: &ProgramCall| Counts::of_all(call, &field.dir, || cut_log(&field.place));
    let (bare, claim, run) = (count(&bare)?, count(&claim)?, count(&run)?);
    let judged: [(&str, Of); 2] = [
        ("instructions", |counts| counts.instructions),
        ("system calls", |counts| counts.system_calls),
    ];
    for (name, of) in judged {
        let (none, one, other) = (of(&bare), of(&claim), of(&run));
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let more = |count: u64| count.saturating_sub(none) as f64;
        let mut row = Measurement {
            group: GROUP,
            what: format!("{what}, {name} of all processes"),
            ours: run.shown(),
            baseline: claim.shown(),
            number: divide(more(other), more(one)),
            unit: Unit::Times,
            budget: ADDED,
            more: Default::default(),
        };
        row.add("run", run.json());
        row.add("claim", claim.json());
        row.add("bare", bare.json());
        rows.push(row);
    }
    Ok(rows)
}

/// A child that is ended with this.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.0.kill().ignore("it may have ended by itself");
        self.0.wait().ignore("only its end matters");
    }
}

/// What window and runner have at most while the agent works.
fn memory(field: &RunBench<'_>) -> Result<Measurement, Failed> {
    const PATIENCE: Duration = Duration::from_secs(20);
    let hold = PathBuf::from(format!("{}.hold", field.script()));
    fs_err::write(&hold, "")?;
    let mut window = ChildGuard(field.run().command()?.spawn()?);
    let runner = poll(PATIENCE, "the agent works", || {
        let runner = children(window.0.id()).into_iter().next()?;
        let agent = children(runner).into_iter().next()?;
        let name = std::fs::read_to_string(format!("/proc/{agent}/comm")).ok()?;
        (name.trim() == "sh" && !children(agent).is_empty()).then_some(runner)
    });
    let (window_kib, runner_kib) = (MemoryUse::of(window.0.id())?, MemoryUse::of(runner)?);
    fs_err::remove_file(&hold)?;
    if !window.0.wait()?.success() {
        return Err("the run failed".into());
    }
    let pss = window_kib.pss + runner_kib.pss;
    let rss = window_kib.rss + runner_kib.rss;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let number = pss as f64 / 1024.0;
    let mut row = Measurement {
        group: GROUP,
        what: "memory that a run's window and runner add (Pss: a page that n processes share counts 1/n in each; \
               beside it RSS, which counts the program twice)"
            .into(),
        ours: format!("{} KiB + {} KiB", window_kib.pss, runner_kib.pss),
        baseline: format!("RSS {rss} KiB"),
        number,
        unit: Unit::Mebibytes,
        budget: MAX_MEBIBYTES,
        more: Default::default(),
    };
    for (name, kib) in [("window", &window_kib), ("runner", &runner_kib)] {
        row.add(&format!("{name}_rss_kib"), kib.rss);
        row.add(&format!("{name}_pss_kib"), kib.pss);
        row.add(&format!("{name}_private_kib"), kib.private);
    }
    Ok(row)
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let text = text.unwrap_or_default();
    let pids = text.split_whitespace();
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

/// The memory that a process has, in KiB.
struct MemoryUse {
    /// With the pages that others have, too.
    rss: u64,
    /// With its part of the pages that others have, too.
    pss: u64,
    /// What no other process has.
    private: u64,
}

impl MemoryUse {
    fn of(pid: u32) -> Result<Self, Failed> {
        let status = fs_err::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        let kib = |name: &str| -> Result<u64, Failed> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.map(|line| line.trim().trim_end_matches(" kB").parse());
            Ok(kib.ok_or_else(|| format!("no {name}"))??)
        };
        Ok(Self {
            rss: kib("Rss:")?,
            pss: kib("Pss:")?,
            private: kib("Private_Clean:")? + kib("Private_Dirty:")?,
        })
    }
}

/// Processes that set conversations at once, beside as many that write by hand.
fn setters(field: &RunBench<'_>) -> Result<Measurement, Failed> {
    let who = register(&field.place)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..field.bench.times(50) {
        let set = |n: u32| {
            let (item, id) = (format!("issue:bench/set#{n}"), format!("id-{round}-{n}"));
            field.tenure(&["conversation", "set", "mine", &item, &id])
        };
        ours.push(at_once((0..SETTERS).map(set))?);
        let bare = |n: u32| {
            let key = format!("issue:bench/bare#{round}-{n}");
            let args = bare_args(&field.place, &who, &["claim", &key]);
            field.around.call(&field.bench.programs.bare, args)
        };
        theirs.push(at_once((0..SETTERS).map(bare))?);
        cut_log(&field.place)?;
    }
    let (ours, theirs) = (Sample::of(ours), Sample::of(theirs));
    let what =
        "50 conversation set at once : 50 bare SQLite claims at once, until the last is done";
    let mut row = Measurement::ratio(GROUP, what, &ours, &theirs, Budget::None);
    let per_second = |sample: &Sample| f64::from(SETTERS) * 1e6 / sample.median();
    row.add("per_second", per_second(&ours));
    row.add("bare_per_second", per_second(&theirs));
    row.ours = format!("{}, {:.0}/s", row.ours, per_second(&ours));
    row.baseline = format!("{}, {:.0}/s", row.baseline, per_second(&theirs));
    Ok(row)
}

/// Starts all of them and waits for the last.
fn at_once(calls: impl Iterator<Item = ProgramCall>) -> Result<Duration, Failed> {
    let began = Instant::now();
    let mut started = Vec::new();
    for call in calls {
        started.push(ChildGuard(
            call.command()?.stderr(Stdio::inherit()).spawn()?,
        ));
    }
    for one in &mut started {
        if !one.0.wait()?.success() {
            return Err("one of them failed".into());
        }
    }
    Ok(began.elapsed())
}

/// Lists of runs in a store that has many, beside one that has few.
fn lists(bench: &Bench) -> Result<Vec<Measurement>, Failed> {
    let few = RunBench::make(bench, "runs-few")?;
    let many = RunBench::make(bench, "runs-many")?;
    for (field, count) in [(&few, FEW), (&many, MANY)] {
        field.run().run()?;
        copy_runs(&field.place, count)?;
    }
    let mut rows = Vec::new();
    for (name, args) in [
        ("tenure runs", &["runs"][..]),
        (
            "tenure runs --item",
            &["runs", "--item", "issue:bench/item#7"],
        ),
    ] {
        let (small, large) = (few.tenure(args), many.tenure(args));
        let (mut ours, mut baseline) = (Vec::new(), Vec::new());
        for _ in 0..bench.times(100) {
            ours.push(large.timed()?);
            baseline.push(small.timed()?);
        }
        let (ours, baseline) = (Sample::of(ours), Sample::of(baseline));
        let what = format!("{name}, 100,000 runs : 1,000 runs");
        rows.push(Measurement::ratio(GROUP, what, &ours, &baseline, PAST));
    }
    Ok(rows)
}

/// Fills a store that has one run with copies of it: a hundred for each item.
fn copy_runs(place: &BenchStore, count: u32) -> Result<(), Failed> {
    let conn = Connection::open(place.database())?;
    let mut statement = conn.prepare("SELECT name FROM pragma_table_info('runs')")?;
    let names: Result<Vec<String>, _> = statement.query_map([], |row| row.get(0))?.collect();
    let copied = |name: &String| match name.as_str() {
        "id" => "'r-' || replace(replace(printf('%010d', i), '0', 'z'), '1', 'b')".to_owned(),
        "item" | "root" => "'issue:bench/item#' || (i / 100)".to_owned(),
        "dir" => "'/work/' || i".to_owned(),
        "created_at" | "begun_at" | "ended_at" => format!("{name} - i * 1000"),
        _ => name.clone(),
    };
    let names = names?;
    let values: Vec<String> = names.iter().map(copied).collect();
    conn.execute(
        &format!(
            "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
             INSERT INTO runs ({}) SELECT {} FROM n, runs",
            names.join(", "),
            values.join(", ")
        ),
        [],
    )?;
    drop(statement);
    drop(conn);
    cut_log(place)
}

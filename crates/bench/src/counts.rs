//! What repeats from run to run: instructions, system calls and memory.
//!
//! A missing tool is an error, and so is a run that fails under its tool: a number that is not there looks like a good
//! one. A hook that its watchdog ended did less than its work. It still exits 0, so its count is refused and
//! it is run again. The rest of what a loaded machine changes is refused by comparison: a count is taken once two runs
//! agree on it.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::poll;

use crate::Failed;
use crate::program::ProgramCall;

/// How often a program is run until two runs agree.
const MAX_RUNS: usize = 30;

/// What one run of a program costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Instructions in user space of all its threads, as callgrind counts them.
    pub instructions: u64,
    /// System calls of its main thread. A hook's watchdog makes some more, but how many depends on the time.
    pub system_calls: u64,
}

impl Counts {
    /// Counts a program; `before` prepares each run.
    pub fn of(
        call: &ProgramCall,
        scratch: &Path,
        before: impl FnMut() -> Result<(), Failed>,
    ) -> Result<Self, Failed> {
        Self::of_effect(call, scratch, before, || Ok(()))
    }

    /// Counts a program whose effect `after` looks for; a run without it is refused.
    pub fn of_effect(
        call: &ProgramCall,
        scratch: &Path,
        mut before: impl FnMut() -> Result<(), Failed>,
        mut after: impl FnMut() -> Result<(), Failed>,
    ) -> Result<Self, Failed> {
        let mut counted = |count: &dyn Fn() -> Result<CountResult, Failed>| {
            let whole = || {
                before()?;
                Ok(match (count()?, after()) {
                    (CountResult::Counted(_), Err(why)) => CountResult::Refused(why.to_string()),
                    (run, _) => run,
                })
            };
            agreed(whole).map_err(|error| format!("{call}: {error}"))
        };
        let valgrind = tool("TENURE_VALGRIND", "valgrind")?;
        let strace = tool("TENURE_STRACE", "strace")?;
        Ok(Self {
            instructions: counted(&|| instructions(&valgrind, call, scratch))?,
            system_calls: counted(&|| system_calls(&strace, call, scratch))?,
        })
    }

    /// Counts a program with all threads, and with all programs that it starts.
    pub fn of_all(
        call: &ProgramCall,
        scratch: &Path,
        mut before: impl FnMut() -> Result<(), Failed>,
    ) -> Result<Self, Failed> {
        before()?;
        let instructions = instructions_of_all(call, &scratch.join("callgrind"))?;
        before()?;
        let strace = tool("TENURE_STRACE", "strace")?;
        let out = scratch.join("strace");
        let output = under_strace(&strace, &["-f"], call, &out)?;
        succeeded("strace", &output)?;
        Ok(Self {
            instructions,
            system_calls: calls_in(&out),
        })
    }

    /// For people: instructions and system calls.
    pub fn shown(&self) -> String {
        let millions = per_million(self.instructions);
        format!("{millions:.2} M instr, {} syscalls", self.system_calls)
    }

    /// As the file has it.
    pub fn json(&self) -> Value {
        json!({
            "instructions": self.instructions,
            "system_calls": self.system_calls,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn per_million(count: u64) -> f64 {
    count as f64 / 1e6
}

/// One run under a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CountResult {
    Counted(u64),
    /// The program did not do its work, and said why.
    Refused(String),
}

/// Runs until two counts agree, and returns the smaller of them.
fn agreed(mut run: impl FnMut() -> Result<CountResult, Failed>) -> Result<u64, Failed> {
    let mut counts: Vec<u64> = Vec::new();
    let mut refused = Refusals::default();
    for _ in 0..MAX_RUNS {
        match run()? {
            CountResult::Counted(count) => {
                if let Some(other) = counts.iter().find(|other| is_same(**other, count)) {
                    return Ok(count.min(*other));
                }
                counts.push(count);
            }
            CountResult::Refused(why) => refused.add(why),
        }
    }
    Err(format!("no two of {MAX_RUNS} runs agree: counted {counts:?}{refused}").into())
}

/// Whether two counts differ by less than half a percent: some hash tables have another order in each process.
fn is_same(one: u64, other: u64) -> bool {
    one.abs_diff(other) <= one.max(other) / 200
}

#[derive(Debug, Default)]
struct Refusals {
    count: usize,
    last: String,
}

impl Refusals {
    fn add(&mut self, why: String) {
        self.count += 1;
        self.last = why;
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            0 => Ok(()),
            count => write!(f, ", refused {count}, the last: {}", self.last),
        }
    }
}

/// The program of a tool: as scripts/tools brings it, else as it is installed.
fn tool(variable: &str, name: &str) -> Result<PathBuf, Failed> {
    if let Some(path) = std::env::var_os(variable).map(PathBuf::from) {
        if path.is_file() {
            return Ok(path);
        }
        return Err(format!("{variable} names {}, which is not there", path.display()).into());
    }
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&dirs).map(|dir| dir.join(name));
    let found = found.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| format!("there is no {name}, and {variable} does not name one").into())
}

fn words(program: &Path, rest: &[&str]) -> Vec<OsString> {
    let program = [program.as_os_str().to_owned()];
    let rest = rest.iter().map(|word| OsString::from(*word));
    program.into_iter().chain(rest).collect()
}

fn succeeded(tool: &str, output: &Output) -> Result<(), Failed> {
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} under {tool}: {said}", output.status).into())
}

/// Why a run does not count although it succeeded: it complained, or an event was not recorded.
fn refusal(call: &ProgramCall, outages: u64, output: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    if !said.trim().is_empty() {
        return Some(said.trim().to_owned());
    }
    (call.outages() != outages).then(|| "an event was not recorded".to_owned())
}

/// How many instructions a run takes.
fn instructions(
    valgrind: &Path,
    call: &ProgramCall,
    scratch: &Path,
) -> Result<CountResult, Failed> {
    let log = scratch.join("callgrind.log");
    let outages = call.outages();
    let output = under_callgrind(valgrind, &[], call, &log)?;
    succeeded("callgrind", &output)?;
    if let Some(why) = refusal(call, outages, &output) {
        return Ok(CountResult::Refused(why));
    }
    let said = fs_err::read_to_string(&log)?;
    let count = collected(&said).ok_or_else(|| format!("callgrind said: {said}"))?;
    Ok(CountResult::Counted(count))
}

fn under_callgrind(
    valgrind: &Path,
    more: &[&str],
    call: &ProgramCall,
    log: &Path,
) -> Result<Output, Failed> {
    let log = format!("--log-file={}", log.display());
    let wrapper = ["--tool=callgrind", "--callgrind-out-file=/dev/null", &log];
    let mut command = call.under(&words(valgrind, &[&wrapper, more].concat()))?;
    Ok(command.stderr(Stdio::piped()).output()?)
}

/// The count in what callgrind says.
fn collected(said: &str) -> Option<u64> {
    let found = said.lines().find_map(|line| line.split_once("Collected :"));
    found?.1.trim().parse().ok()
}

/// How many instructions a run takes with all programs that it starts: each writes a file.
fn instructions_of_all(call: &ProgramCall, dir: &Path) -> Result<u64, Failed> {
    if dir.exists() {
        fs_err::remove_dir_all(dir)?;
    }
    fs_err::create_dir_all(dir)?;
    let valgrind = tool("TENURE_VALGRIND", "valgrind")?;
    let output = under_callgrind(
        &valgrind,
        &["--trace-children=yes"],
        call,
        &dir.join("%p.%n"),
    )?;
    succeeded("callgrind", &output)?;
    let mut all = 0;
    for entry in fs_err::read_dir(dir)? {
        // A process that becomes another program begins anew, and says nothing of what came before.
        all += collected(&fs_err::read_to_string(entry?.path())?).unwrap_or(0);
    }
    if all == 0 {
        return Err("callgrind counted nothing".into());
    }
    Ok(all)
}

/// How many system calls the main thread of a run makes.
fn system_calls(strace: &Path, call: &ProgramCall, scratch: &Path) -> Result<CountResult, Failed> {
    let out = scratch.join("strace");
    let outages = call.outages();
    let output = under_strace(strace, &[], call, &out)?;
    succeeded("strace", &output)?;
    if let Some(why) = refusal(call, outages, &output) {
        return Ok(CountResult::Refused(why));
    }
    Ok(CountResult::Counted(calls_in(&out)))
}

fn under_strace(
    strace: &Path,
    more: &[&str],
    call: &ProgramCall,
    out: &Path,
) -> Result<Output, Failed> {
    if out.exists() {
        fs_err::remove_file(out)?;
    }
    // -D: the program stays our own child, with the same processes above it as always.
    let name = out.to_string_lossy();
    let wrapper = ["-D", "-c", "-o", &name];
    let mut command = call.under(&words(strace, &[&wrapper, more].concat()))?;
    Ok(command.stderr(Stdio::piped()).output()?)
}

/// The total in the table that strace writes once the program has ended.
fn calls_in(table: &Path) -> u64 {
    poll(Duration::from_secs(30), "strace writes its table", || {
        let table = std::fs::read_to_string(table).ok()?;
        let total = table.lines().find(|line| line.ends_with(" total"))?;
        let mut columns = total.split_ascii_whitespace();
        columns.nth(3)?.parse().ok()
    })
}

/// How much memory a run has at most, in KiB.
pub fn peak_kib(call: &ProgramCall) -> Result<u64, Failed> {
    let time = tool("TENURE_TIME", "time")?;
    let output = call
        .under(&words(&time, &["-f", "%M"]))?
        .stderr(Stdio::piped())
        .output()?;
    succeeded("time", &output)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    let count = last.trim().parse();
    count.map_err(|_| format!("time said: {said}").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Surroundings;

    fn runs(runs: Vec<CountResult>) -> impl FnMut() -> Result<CountResult, Failed> {
        let mut runs = runs.into_iter().cycle();
        move || runs.next().ok_or_else(|| "no run".into())
    }

    #[test]
    fn a_count_is_taken_once_two_runs_agree() {
        let three = [5_000, 1_000, 1_004].map(CountResult::Counted).to_vec();
        assert_eq!(agreed(runs(three)).unwrap(), 1_000);
    }

    #[test]
    fn runs_that_never_agree_have_no_count() {
        let mut count = 1_000;
        let error = agreed(|| {
            count *= 2;
            Ok(CountResult::Counted(count))
        });
        assert!(error.unwrap_err().to_string().contains("no two of"));
    }

    #[test]
    fn a_run_that_timed_out_is_not_counted() {
        let late = CountResult::Refused("tenure: the hook timed out".to_owned());
        let some = vec![late.clone(), CountResult::Counted(1_000), late.clone()];
        assert_eq!(agreed(runs(some)).unwrap(), 1_000);
        let error = agreed(runs(vec![late])).unwrap_err().to_string();
        assert!(error.contains("refused 30"), "{error}");
        assert!(error.contains("the hook timed out"), "{error}");
    }

    /// A tool that counts 1,000 instructions in everything.
    fn fake_valgrind(dir: &Path) -> PathBuf {
        let path = dir.join("valgrind");
        let script = "#!/bin/sh\nfor word; do\n case $word in\n \
             --log-file=*) echo '== Collected : 1000' >\"${word#*=}\"; shift ;;\n \
             --*) shift ;;\n *) break ;;\n esac\ndone\nexec \"$@\"\n";
        fs_err::write(&path, script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(&path, mode).unwrap();
        path
    }

    #[test]
    fn a_hook_that_did_not_record_its_event_is_refused_although_it_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        fs_err::create_dir(&state).unwrap();
        let around = Surroundings::make(dir.path(), &state).unwrap();
        let valgrind = fake_valgrind(dir.path());
        let run = |script: &str| {
            let call = around.call(Path::new("/bin/sh"), ["-c", script]);
            instructions(&valgrind, &call, dir.path())
        };
        assert_eq!(run("true").unwrap(), CountResult::Counted(1_000));
        let outage = "echo '{\"kind\":\"hook_timed_out\"}' >>$TENURE_HOME/outages.log";
        assert!(matches!(run(outage).unwrap(), CountResult::Refused(_)));
        let late = "echo 'tenure: the event did not arrive in time' >&2";
        assert!(matches!(run(late).unwrap(), CountResult::Refused(_)));
        assert_eq!(run("true").unwrap(), CountResult::Counted(1_000));
        assert!(run("exit 3").is_err());
    }
}

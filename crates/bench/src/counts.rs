//! What repeats from run to run: instructions, system calls and memory, where the tools are installed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::poll;

use crate::Failed;
use crate::program::Call;

/// What one run of a program costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions in user space, as callgrind counts them.
    pub instructions: Option<u64>,
    /// System calls of all its threads.
    pub system_calls: Option<u64>,
    /// The most memory that it had, in KiB.
    pub peak_kib: Option<u64>,
}

impl Counts {
    /// Runs a program once under each tool; `before` prepares each run.
    pub fn of(
        call: &Call,
        scratch: &Path,
        mut before: impl FnMut() -> Result<(), Failed>,
    ) -> Result<Self, Failed> {
        let mut counts = Self::default();
        if is_installed("valgrind") {
            before()?;
            counts.instructions = instructions(call)?;
        }
        if is_installed("strace") {
            before()?;
            counts.system_calls = system_calls(call, &scratch.join("strace"))?;
        }
        if is_installed("/usr/bin/time") {
            before()?;
            counts.peak_kib = peak(call)?;
        }
        Ok(counts)
    }

    /// The same for a program and all that it starts.
    pub fn of_all(
        call: &Call,
        scratch: &Path,
        mut before: impl FnMut() -> Result<(), Failed>,
    ) -> Result<Self, Failed> {
        let mut counts = Self::default();
        if is_installed("valgrind") {
            before()?;
            counts.instructions = instructions_of_all(call, &scratch.join("callgrind"))?;
        }
        if is_installed("strace") {
            before()?;
            counts.system_calls = system_calls(call, &scratch.join("strace"))?;
        }
        Ok(counts)
    }

    /// For people: instructions and system calls.
    pub fn shown(&self) -> String {
        let millions = |count: u64| format!("{:.2} M instr", per_million(count));
        let parts = [
            self.instructions.map(millions),
            self.system_calls.map(|count| format!("{count} syscalls")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            "not counted".into()
        } else {
            parts.join(", ")
        }
    }

    /// As the file has it.
    pub fn json(&self) -> Value {
        json!({
            "instructions": self.instructions,
            "system_calls": self.system_calls,
            "peak_kib": self.peak_kib,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn per_million(count: u64) -> f64 {
    count as f64 / 1e6
}

fn is_installed(tool: &str) -> bool {
    let mut command = std::process::Command::new(tool);
    let quiet = command.arg("--version").stdin(Stdio::null());
    let status = quiet.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|word| (*word).to_owned()).collect()
}

/// How many instructions a run takes; none where the program does not run under callgrind.
fn instructions(call: &Call) -> Result<Option<u64>, Failed> {
    let wrapper = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
    ];
    let output = call
        .under(&words(&wrapper))
        .stderr(Stdio::piped())
        .output()?;
    if !output.status.success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said
        .lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, count)| count.trim().parse().ok());
    count
        .map(Some)
        .ok_or_else(|| format!("callgrind said: {said}").into())
}

/// The same with all that it starts: each process writes a file.
fn instructions_of_all(call: &Call, dir: &Path) -> Result<Option<u64>, Failed> {
    if dir.exists() {
        fs_err::remove_dir_all(dir)?;
    }
    fs_err::create_dir_all(dir)?;
    let log = format!("--log-file={}/%p.%n", dir.display());
    let wrapper = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--trace-children=yes",
        &log,
    ];
    if !call.under(&words(&wrapper)).status()?.success() {
        return Ok(None);
    }
    let mut all = 0;
    for entry in fs_err::read_dir(dir)? {
        let said = fs_err::read_to_string(entry?.path())?;
        let counts = said
            .lines()
            .filter_map(|line| line.split_once("Collected :"))
            .filter_map(|(_, count)| count.trim().parse::<u64>().ok());
        all += counts.sum::<u64>();
    }
    Ok((all > 0).then_some(all))
}

/// How many system calls a run makes.
fn system_calls(call: &Call, out: &Path) -> Result<Option<u64>, Failed> {
    if out.exists() {
        fs_err::remove_file(out)?;
    }
    // -D: the program stays our own child, with the same processes above it as always.
    let name = out.to_string_lossy();
    let wrapper = ["strace", "-D", "-f", "-c", "-o", &name];
    if !call.under(&words(&wrapper)).status()?.success() {
        return Ok(None);
    }
    // The tracer writes after the program has ended.
    let count = poll(Duration::from_secs(30), "strace writes its table", || {
        let table = std::fs::read_to_string(out).ok()?;
        let total = table.lines().find(|line| line.ends_with(" total"))?;
        let mut columns = total.split_ascii_whitespace();
        columns.nth(3)?.parse().ok()
    });
    Ok(Some(count))
}

/// How much memory a run has at most, in KiB.
fn peak(call: &Call) -> Result<Option<u64>, Failed> {
    let wrapper = words(&["/usr/bin/time", "-f", "%M"]);
    let output = call.under(&wrapper).stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    let count = last.trim().parse();
    count
        .map(Some)
        .map_err(|_| format!("time said: {said}").into())
}

//! What the measurements were made on, and how busy it was.

use serde_json::{Value, json};

/// The load of the machine, as the kernel says it: of the last 1, 5 and 15 minutes.
pub fn load() -> String {
    let text = fs_err::read_to_string("/proc/loadavg").unwrap_or_default();
    let numbers: Vec<&str> = text.split_ascii_whitespace().take(3).collect();
    numbers.join(" ")
}

/// How many processors there are for us.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

/// The kernel and the processor.
pub fn names() -> (String, String) {
    let kernel = fs_err::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = fs_err::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned());
    (kernel.trim().to_owned(), model.unwrap_or_default())
}

/// All of it, for the file.
pub fn json(load_before: &str) -> Value {
    let (kernel, cpu) = names();
    json!({
        "cores": cores(),
        "cpu": cpu,
        "kernel": kernel,
        "load_before": load_before,
        "load_after": load(),
    })
}

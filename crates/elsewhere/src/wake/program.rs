//! The receiver's own program, as the receiver runs it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tenure_core::ignore::Ignore;
use tenure_core::process::Process;
use tenure_host::env::Environment;
use tenure_host::{clock, pause, system};

/// What it needs of the receiver's environment: its own files, and how to find it.
const KEPT: &[&str] = &[
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
];
/// How long it may run.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// Starts a command of the agent whose process this is, in the agent's directory; none if its environment cannot be read.
/// `own` is the variable that names the agent's own directory.
pub fn start(
    process: &Process,
    program: &str,
    own: Option<&str>,
    line: Vec<OsString>,
) -> io::Result<Child> {
    let environment = Environment::of(process.pid)
        .ok_or_else(|| io::Error::other("the agent's environment cannot be read"))?;
    let its_own = PathBuf::from(system::executable(process.pid));
    let is_it = its_own.file_name().is_some_and(|name| name == program);
    let program = if is_it { its_own } else { program.into() };
    let mut command = Command::new(program);
    command.env_clear();
    for name in KEPT.iter().copied().chain(own) {
        if let Some(value) = environment.var(name) {
            command.env(name, value);
        }
    }
    if let Ok(dir) = system::working_dir(process.pid) {
        command.current_dir(dir);
    }
    command
        .args(line)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Waits until it has ended; one that takes too long is ended, with what it started.
pub fn finish(mut child: Child) {
    let until = clock::instant() + ENDS_WITHIN;
    while matches!(child.try_wait(), Ok(None)) {
        if clock::instant() >= until {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                kill_process_group(group, Signal::KILL).ignore("it has just ended");
            }
            break;
        }
        pause::sleep(LOOKS_EVERY);
    }
    child.wait().ignore("the message waits for the next event");
}

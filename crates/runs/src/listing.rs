//! The conversations that an agent lists by a command of its own, for agents whose files do not
//! show them.
//!
//! The command runs in the directory of the conversation, with the environment of a run. Its output
//! counts only if it succeeds in time: an agent that fails, hangs or cannot be started gives no
//! answer. It takes seconds, so it is run only if a run depends on it.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::process::Signal;
use tenure_core::ignore::Ignore;
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::{process, read};

use super::agent::signal_group;
use super::environment::Variables;
use super::files::RunFiles;
use super::program;

/// How long an agent may take to list its conversations.
const WITHIN: Duration = Duration::from_secs(60);
/// The longest list that is read.
const MAX_LENGTH: u64 = 64 << 20;

/// The output of the command; none if it did not succeed.
pub(super) fn printed(
    command: &[&str],
    variables: &Variables,
    dir: &Path,
    files: &RunFiles,
    machine: &Machine,
) -> Option<String> {
    let mut words: Vec<OsString> = command.iter().map(OsString::from).collect();
    let path = variables.get(OsStr::new("PATH")).map(AsRef::as_ref);
    program::resolve(&mut words, path, dir, &[]).ok()?;
    let file = files.listing();
    let printed = run(&words, variables, dir, &file, machine)
        .then(|| read::text(&file, MAX_LENGTH).ok())
        .flatten();
    fs_err::remove_file(&file).ignore("the file is private, and is removed with the log");
    printed
}

fn run(
    words: &[OsString],
    variables: &Variables,
    dir: &Path,
    file: &Path,
    machine: &Machine,
) -> bool {
    let into = fs_err::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file);
    let (Ok(into), Some((program, arguments))) = (into, words.split_first()) else {
        return false;
    };
    let started = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(variables)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(std::fs::File::from(into))
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let Ok(mut child) = started else {
        return false;
    };
    let found = process::identify(child.id(), machine.observer()).ok();
    let watch = found.as_ref().and_then(ProcessWatch::open);
    // Without a watch it has already exited, and its status is available.
    let in_time = watch.is_none_or(|watch| watch.wait(WITHIN).is_ok_and(|gone| gone));
    if !in_time && let Some(process) = &found {
        signal_group(process, Signal::KILL).ignore("only another user's process cannot be killed");
    }
    let status = child.wait();
    in_time && status.is_ok_and(|status| status.success())
}

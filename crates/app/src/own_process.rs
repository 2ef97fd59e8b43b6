//! Which process the agent itself is, seen from a hook that it started.
//!
//! It is the nearest ancestor that is the agent: by its executable or script, by the agent's own
//! pid variable if that pid is an ancestor, or by the agent's registry of live processes if it
//! names exactly that process. It is never the shell that ran the hook, and never an agent above
//! another one. A wrong process is worse than none. For a program that cannot be recognised, the
//! ancestors of the hook are gathered, and [`tenure_core::program`] decides.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tenure_agents::Adapter;
use tenure_core::agent;
use tenure_core::process::Ancestor;
use tenure_core::program::{self, Program};
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_host::{process, read};

use crate::witness::registry;
use tenure_host::env::var as env;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookCaller {
    /// The agent's own process.
    Agent(Box<Ancestor>),
    /// One of these processes, or none.
    Program(Program),
    /// Not found; only its lease keeps the session alive.
    NotFound,
    /// Another agent ran the hook. Agents run each other's hooks, so the hook's argument decides
    /// nothing.
    Another,
}

/// Finds the agent's own process.
pub fn find(adapter: &Adapter, machine: &Machine, named: Option<u32>) -> HookCaller {
    if adapter.is_any_program {
        let ends = |ancestor: &Ancestor| program::decides(ancestor, named);
        return HookCaller::Program(Program {
            above: process::above(machine.observer(), ends),
            pid: named,
        });
    }
    let signs = Signs::of(adapter);
    let mut is_another = false;
    let nearest = process::nearest(machine.observer(), |ancestor| {
        if signs.fit(ancestor) {
            return true;
        }
        is_another = agent::agent_of(&ancestor.looks).is_some();
        is_another
    });
    match nearest {
        Some(_) if is_another => HookCaller::Another,
        Some(found) => HookCaller::Agent(Box::new(found)),
        None => HookCaller::NotFound,
    }
}

/// The user, by number.
pub fn user() -> String {
    rustix::process::getuid().as_raw().to_string()
}

/// Whether this process of the agent was started as a spare that waits for work, whatever it does
/// now.
pub fn is_spare(adapter: &Adapter, process: &Ancestor) -> bool {
    let spec = agent::recognise(&process.looks);
    spec.is_some_and(|spec| spec.name == adapter.name && agent::is_spare(spec, &process.looks))
}

struct Signs<'a> {
    adapter: &'a Adapter,
    pid: Option<u32>,
}

impl<'a> Signs<'a> {
    fn of(adapter: &'a Adapter) -> Self {
        let pid = adapter.pid_variable.and_then(env);
        let pid = pid.and_then(|text| text.to_str()?.parse().ok());
        Self { adapter, pid }
    }

    fn fit(&self, ancestor: &Ancestor) -> bool {
        let by_looks =
            agent::agent_of(&ancestor.looks).is_some_and(|spec| spec.name == self.adapter.name);
        by_looks
            || self.pid == Some(ancestor.process.pid)
            || registry::entry_here(self.adapter, &ancestor.process).is_some()
    }
}

/// Adds TENURE_SESSION to the environment of the agent's tools, if the agent supports that.
///
/// Other hooks of the same event append to the same file at the same time, so a line is appended
/// and the file is never rewritten, which would lose their lines. A shell uses the last assignment,
/// so an older line of ours may stay. If this fails, ancestry identifies the session without the
/// variable.
pub fn export(adapter: &Adapter, token: &str) -> io::Result<()> {
    let named = adapter.env_file_variable.and_then(env);
    match named.filter(|file| !file.is_empty()) {
        Some(file) => put_line(&PathBuf::from(file), token),
        None => Ok(()),
    }
}

fn put_line(file: &Path, token: &str) -> io::Result<()> {
    const OURS: &[u8] = b"export TENURE_SESSION=";
    const MAX_LENGTH: u64 = 4 << 20;
    let line = [OURS, token.as_bytes(), b"\n"].concat();
    let before = match read::whole(file, MAX_LENGTH) {
        Ok(before) => before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut lines = before.split_inclusive(|byte| *byte == b'\n');
    let last = lines.rfind(|one| one.starts_with(OURS));
    if last == Some(line.as_slice()) {
        return Ok(());
    }
    let mut open = fs_err::OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(file)?;
    open.write_all(&[end_of_line(&before), &line].concat())
}

/// What must be added to a text before another line can follow.
fn end_of_line(text: &[u8]) -> &'static [u8] {
    match text.last() {
        None | Some(b'\n') => b"",
        Some(_) => b"\n",
    }
}

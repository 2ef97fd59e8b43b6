//! What a dead session left running: processes that carry its variables or belong to its process session.
//!
//! A holder can be dead while its shell tool still runs and writes. Survivors are looked for in the
//! environments of this user's processes. A process below a living agent is that agent's, whatever
//! variables it inherited, and is not counted.
//!
//! What cannot be read is said: an answer that is not certain carries its doubt. Right after an exec the
//! kernel may show an empty environment for a moment; such a process is read again.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tenure_core::agent;
use tenure_core::process::{Observer, RunState, Signs, Survivor, Survivors};

use crate::stat::View;
use crate::{caller, pause, process, system};

/// How much of a command line is shown.
const COMMAND_LIMIT: usize = 120;

/// How often an environment that reads as empty is read again.
const READS: usize = 5;

/// Looks through this user's processes.
pub fn find(signs: &Signs, observer: &Observer) -> Survivors {
    let mut answer = Survivors::default();
    if !observer.proc_is_own {
        answer.doubt = Some("/proc shows another pid namespace than this one".into());
        return answer;
    }
    let entries = match std::fs::read_dir("/proc") {
        Ok(entries) => entries,
        Err(error) => {
            answer.doubt = Some(format!("/proc cannot be listed: {error}"));
            return answer;
        }
    };
    let own_uid = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
        let Some(pid) = pid.filter(|pid| *pid != std::process::id()) else {
            continue;
        };
        if entry.metadata().map(|found| found.uid()).ok() != Some(own_uid) {
            continue;
        }
        match shows(pid, signs) {
            Ok(false) => {}
            Ok(true) if is_an_agents(pid, observer) => {}
            Ok(true) => answer.found.push(Survivor {
                pid,
                command: command(pid),
            }),
            Err(why) => {
                answer
                    .doubt
                    .get_or_insert(format!("process {pid} cannot be read: {why}"));
            }
        }
    }
    answer.found.sort_by_key(|survivor| survivor.pid);
    answer
}

/// Whether a living process shows one of the signs.
fn shows(pid: u32, signs: &Signs) -> Result<bool, String> {
    let View::Present(seen) = system::view(pid) else {
        return Ok(false);
    };
    let gone = seen.stat.state == RunState::Zombie;
    let older = seen.start.ticks + u64::from(seen.start.shifted) < signs.since.ticks;
    if gone || older || signs.leader == pid {
        return Ok(false);
    }
    if signs.leader == seen.stat.session {
        return Ok(true);
    }
    let environment = match environment(pid) {
        Ok(environment) => environment,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            return Ok(false);
        }
        Err(error) => return Err(error.to_string()),
    };
    let has = |name: &str, value: &str| {
        let wanted = format!("{name}={value}");
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted.as_bytes())
    };
    let native = signs.natives.iter().any(|(name, value)| has(name, value));
    Ok(native || has(caller::SESSION_VARIABLE, &signs.token))
}

fn environment(pid: u32) -> std::io::Result<Vec<u8>> {
    let path = format!("/proc/{pid}/environ");
    for _ in 0..READS {
        let found = std::fs::read(&path)?;
        let is_program =
            std::fs::read_link(Path::new("/proc").join(pid.to_string()).join("exe")).is_ok();
        if !found.is_empty() || !is_program {
            return Ok(found);
        }
        pause::for_a_while(Duration::from_millis(1));
    }
    Ok(Vec::new())
}

/// Whether a living agent is above the process, or is it.
fn is_an_agents(pid: u32, observer: &Observer) -> bool {
    let (chain, _) = process::chain_from(pid, observer);
    chain
        .iter()
        .any(|above| agent::recognise(&above.looks).is_some())
}

fn command(pid: u32) -> String {
    let looks = process::looks(pid);
    let words = looks.argv.join(" ");
    let text = if words.is_empty() { looks.comm } else { words };
    let shown: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(COMMAND_LIMIT)
        .collect();
    shown
}

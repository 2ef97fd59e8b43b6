//! What a dead session left running: processes with its variables or in its process session.
//!
//! A holder can be dead while its shell tool still runs and writes. Survivors are found by the
//! environments of this user's processes. A process below a live agent belongs to that agent,
//! whatever variables it inherited, and is not counted.
//!
//! Unreadable processes are reported with the answer, because each may be a survivor. Right after
//! an exec the kernel may briefly show an empty environment; such a process is read again.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tenure_core::agent::{self, Role};
use tenure_core::process::{
    Carrier, Carriers, Leader, Observer, RunState, Signs, StartTicks, Survivor, Survivors,
};

use crate::stat::View;
use crate::unseen::Unseen;
use crate::{caller, pause, process, system};

/// How much of a command line is shown.
const COMMAND_LIMIT: usize = 120;

/// How often an environment that reads as empty is read again.
const READS: usize = 5;

/// Goes through this user's processes once; returns one answer per session.
pub fn find(signs: &[Signs], observer: &Observer) -> Vec<Survivors> {
    let mut answers = vec![Survivors::default(); signs.len()];
    let looked = each_process(observer, |pid| match Suspect::of(pid, signs) {
        Ok(Some(suspect)) => suspect.add_to(&mut answers, signs, observer),
        Ok(None) => {}
        Err(why) => doubt_all(&mut answers, &cannot_read(pid, &why)),
    });
    if let Err(why) = looked {
        doubt_all(&mut answers, &why);
    }
    answers
}

/// Goes through this user's processes once and returns, for each run, those that carry its variable
/// and did not start before it. Which programs they are does not matter: only the run's agent gave
/// them the variable.
pub fn carrying(runs: &[(String, StartTicks)], observer: &Observer) -> Vec<Carriers> {
    let mut answers = vec![Carriers::default(); runs.len()];
    let signs = runs.iter().map(|(run, since)| Signs {
        tokens: Vec::new(),
        natives: vec![(caller::RUN_VARIABLE, run.clone())],
        leaders: vec![Leader {
            // No process has this number.
            pid: u32::MAX,
            start: *since,
        }],
    });
    let signs: Vec<Signs> = signs.collect();
    let looked = each_process(observer, |pid| {
        let found = Suspect::of(pid, &signs);
        for (answer, sign) in answers.iter_mut().zip(&signs) {
            let doubt = match &found {
                Ok(None) => None,
                Ok(Some(suspect)) if !sign.may_be_of(suspect.start) => None,
                Ok(Some(suspect)) => match suspect.shows(sign) {
                    Some(true) => {
                        answer.found.extend(suspect.carrier(observer));
                        None
                    }
                    Some(false) => None,
                    None => Some(suspect.environment.as_ref().err().cloned()),
                },
                Err(why) => Some(Some(why.clone())),
            };
            if let Some(why) = doubt {
                let why = why.unwrap_or_default();
                answer.doubt.get_or_insert_with(|| cannot_read(pid, &why));
            }
        }
    });
    if let Err(why) = looked {
        for answer in &mut answers {
            answer.doubt.get_or_insert_with(|| why.clone());
        }
    }
    answers
}

/// What works in a directory and may have been left there since a time by something that hid its variables: it has no
/// terminal, its process session began since then too, no live agent is above it, it shows no run's variable, and it
/// does not run this program.
pub fn working_in(dir: &Path, since: StartTicks, observer: &Observer) -> Vec<Survivor> {
    let mut found = Vec::new();
    let mut users = HashSet::new();
    let own = system::executable(std::process::id());
    let began = Leader {
        pid: u32::MAX,
        start: since,
    };
    let looked = each_process(observer, |pid| {
        let View::Present(seen) = system::view(pid) else {
            return;
        };
        let is_new = |leader: u32| match system::view(leader) {
            View::Present(seen) => began.is_older_than(seen.start),
            // Its first process has ended.
            View::Absent | View::Thread { .. } => true,
            View::Unreadable(_) => false,
        };
        let stat = &seen.stat;
        let may_be = stat.state != RunState::Zombie
            && !stat.has_terminal
            && began.is_older_than(seen.start)
            && (stat.session == pid || is_new(stat.session));
        if system::executable(pid) == own {
            let (chain, _) = process::chain_from(pid, observer);
            users.extend(chain.iter().map(|above| above.process.pid));
        } else if may_be && is_in(pid, dir) && !is_of_a_run(pid) && !is_an_agents(pid, observer) {
            found.push(Survivor {
                pid,
                command: command(pid),
            });
        }
    });
    if looked.is_err() {
        // They are only named: nothing depends on them.
    }
    found.retain(|one: &Survivor| !users.contains(&one.pid));
    found
}

fn is_of_a_run(pid: u32) -> bool {
    let prefix = format!("{}=", caller::RUN_VARIABLE);
    let environment = environment(pid).unwrap_or_default();
    let mut entries = environment.split(|byte| *byte == 0);
    entries.any(|entry| entry.starts_with(prefix.as_bytes()))
}

fn is_in(pid: u32, dir: &Path) -> bool {
    let cwd = fs_err::read_link(format!("/proc/{pid}/cwd"));
    cwd.is_ok_and(|cwd| cwd.starts_with(dir))
}

/// Visits this user's processes but our own; an error where some of them may have been left out.
fn each_process(observer: &Observer, mut visit: impl FnMut(u32)) -> Result<(), String> {
    if !observer.proc_is_own {
        return Err(Unseen::ForeignProc.to_string());
    }
    let unlisted = |error: std::io::Error| Unseen::Unlisted(error).to_string();
    let own_uid = rustix::process::geteuid().as_raw();
    for entry in fs_err::read_dir("/proc").map_err(unlisted)? {
        let entry = entry.map_err(unlisted)?;
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
        let Some(pid) = pid.filter(|pid| *pid != std::process::id()) else {
            continue;
        };
        if entry.metadata().map(|found| found.uid()).ok() == Some(own_uid) {
            visit(pid);
        }
    }
    Ok(())
}

fn doubt_all(answers: &mut [Survivors], why: &str) {
    for answer in answers {
        answer.doubt.get_or_insert_with(|| why.to_owned());
    }
}

fn cannot_read(pid: u32, why: &str) -> String {
    let why = why.to_owned();
    Unseen::Unreadable { pid, why }.to_string()
}

/// A live process that may be a survivor.
struct Suspect {
    pid: u32,
    start: StartTicks,
    session: u32,
    environment: Result<Vec<u8>, String>,
}

impl Suspect {
    /// Checks a process that is young enough to have been left by one of them; an error if it is alive and
    /// cannot be inspected.
    fn of(pid: u32, signs: &[Signs]) -> Result<Option<Self>, String> {
        let seen = match system::view(pid) {
            View::Present(seen) => seen,
            View::Absent | View::Thread { .. } => return Ok(None),
            View::Unreadable(why) => return Err(why),
        };
        let young = |sign: &Signs| sign.may_be_of(seen.start);
        if seen.stat.state == RunState::Zombie || !signs.iter().any(young) {
            return Ok(None);
        }
        let environment = match environment(pid) {
            Ok(environment) => Ok(environment),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                return Ok(None);
            }
            Err(error) => Err(error.to_string()),
        };
        Ok(Some(Self {
            pid,
            start: seen.start,
            session: seen.stat.session,
            environment,
        }))
    }

    /// Adds it to the answers whose signs it shows.
    fn add_to(&self, answers: &mut [Survivors], signs: &[Signs], observer: &Observer) {
        let mut is_an_agents_known = None;
        for (answer, sign) in answers.iter_mut().zip(signs) {
            let is_leader = sign.leaders.iter().any(|leader| leader.pid == self.pid);
            if is_leader || !sign.may_be_of(self.start) {
                continue;
            }
            match self.shows(sign) {
                Some(false) => {}
                Some(true) => {
                    let agents =
                        *is_an_agents_known.get_or_insert_with(|| is_an_agents(self.pid, observer));
                    if !agents {
                        answer.found.push(Survivor {
                            pid: self.pid,
                            command: command(self.pid),
                        });
                    }
                }
                None => {
                    let why = self.environment.as_ref().err().cloned().unwrap_or_default();
                    answer
                        .doubt
                        .get_or_insert_with(|| cannot_read(self.pid, &why));
                }
            }
        }
    }

    /// The same process, if it is still there.
    fn carrier(&self, observer: &Observer) -> Option<Carrier> {
        let process = process::identify(self.pid, observer).ok()?;
        if !process.start.same_start(self.start) {
            return None;
        }
        let (chain, _) = process::chain_from(self.pid, observer);
        Some(Carrier {
            process,
            command: command(self.pid),
            above: chain.into_iter().skip(1).map(|one| one.process).collect(),
        })
    }

    /// Whether it shows the signs; `None` if unknown.
    fn shows(&self, signs: &Signs) -> Option<bool> {
        let mut leaders = signs.leaders.iter();
        if leaders.any(|leader| leader.pid == self.session && leader.is_older_than(self.start)) {
            return Some(true);
        }
        let environment = self.environment.as_ref().ok()?;
        let has = |name: &str, value: &str| {
            let wanted = format!("{name}={value}");
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == wanted.as_bytes())
        };
        let native = signs.natives.iter().any(|(name, value)| has(name, value));
        let mut tokens = signs.tokens.iter();
        Some(native || tokens.any(|token| has(caller::SESSION_VARIABLE, token)))
    }
}

/// The environment with which a process was started.
pub(crate) fn environment(pid: u32) -> std::io::Result<Vec<u8>> {
    let path = format!("/proc/{pid}/environ");
    for _ in 0..READS {
        #[expect(
            clippy::disallowed_methods,
            reason = "fs_err hides the error's number, and ESRCH is an answer"
        )]
        let found = std::fs::read(&path)?;
        let is_program =
            fs_err::read_link(Path::new("/proc").join(pid.to_string()).join("exe")).is_ok();
        if !found.is_empty() || !is_program {
            return Ok(found);
        }
        pause::sleep(Duration::from_millis(1));
    }
    Ok(Vec::new())
}

/// Whether the process is an agent, an agent's daemon or helper, or runs below a live agent. A
/// process below a daemon does not belong to the agent that happened to start the daemon.
fn is_an_agents(pid: u32, observer: &Observer) -> bool {
    let (chain, _) = process::chain_from(pid, observer);
    let mut roles = chain.iter().map(|above| agent::role_of(&above.looks));
    if roles.next().flatten().is_some() {
        return true;
    }
    let deciding = roles.flatten().find(|(_, role)| *role != Role::Helper);
    deciding.is_some_and(|(_, role)| role == Role::Agent)
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

//! What a dead session left running: processes with its variables or in its process session.
//!
//! A holder can be dead while its shell tool still runs and writes. Survivors are found by the
//! environments of this user's processes; root can read those of every user and does, for a run's
//! own variable. A process below a live agent belongs to that agent, whatever variables it
//! inherited, and is not counted.
//!
//! Unreadable processes are reported with the answer, because each may be a survivor. Right after
//! an exec the kernel may briefly show an empty environment; such a process is read again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_core::agent::{self, Role};
use tenure_core::ignore::Ignore;
use tenure_core::process::{
    Leader, LeftProcess, Mark, Observer, RunState, Signs, StartTicks, Survivor, Survivors,
};

use crate::system::view::View;
use crate::unseen::Unseen;
use crate::{caller, clock, exit_traces, pause, process, system};

/// How much of a command line is shown.
/// The program that agents call as their hook.
const HOOK_PROGRAM: &str = "tenure";
/// What the kernel appends to the name of a program that was replaced.
const REPLACED: &str = " (deleted)";
const COMMAND_LIMIT: usize = 120;

/// How often an environment that reads as empty is read again.
const READS: usize = 5;

/// Goes through this user's processes once, as root through everybody's; returns one answer for each session and run.
/// What another user hides is not in doubt here ([`of_user`]).
pub fn find(signs: &[Signs], observer: &Observer) -> Vec<Survivors> {
    let mut answers = vec![Survivors::default(); signs.len()];
    let is_root = rustix::process::geteuid().is_root();
    let looked = each_process(
        observer,
        |user| is_root || is_own(user),
        |pid, user| match Suspect::of(pid, signs) {
            Ok(Some(suspect)) => suspect.add_to(&mut answers, signs, observer),
            Ok(None) => {}
            Err(why) if is_own(user) => doubt_all(&mut answers, &cannot_read(pid, &why)),
            Err(_) => {}
        },
    );
    if let Err(why) = looked {
        doubt_all(&mut answers, &why);
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
    let looked = each_process(observer, is_own, |pid, _| {
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
            found.push(shown(pid, seen.start, false));
        }
    });
    looked.ignore("they are only named: nothing depends on them");
    found.retain(|one: &Survivor| !users.contains(&one.pid));
    found
}

/// Processes of another user that began since a time, but for those that show the variable of another run. What a run
/// under that user left is among them. An error where some may have been left out.
pub fn of_user(
    user: u32,
    run: &str,
    since: StartTicks,
    observer: &Observer,
) -> Result<Vec<Survivor>, String> {
    let own = format!("{}={run}", caller::RUN_VARIABLE);
    let began = Leader {
        pid: u32::MAX,
        start: since,
    };
    let mut found = Vec::new();
    // A process that hides its memory seems to be root's, so its status is asked.
    let is_asked_for = |_| true;
    each_process(observer, is_asked_for, |pid, _| {
        if system::real_uid(pid) != Some(user) {
            return;
        }
        let is_new = match system::view(pid) {
            View::Present(seen) => {
                seen.stat.state != RunState::Zombie && began.is_older_than(seen.start)
            }
            View::Absent | View::Thread { .. } => false,
            View::Unreadable(_) => true,
        };
        if is_new && run_shown(pid).is_none_or(|shown| shown == own.as_bytes()) {
            found.push(Survivor {
                pid,
                command: command(pid),
                since: None,
                can_end: false,
            });
        }
    })?;
    Ok(found)
}

fn is_of_a_run(pid: u32) -> bool {
    run_shown(pid).is_some()
}

/// The variable of a run in the environment of a process, with its value.
fn run_shown(pid: u32) -> Option<Vec<u8>> {
    let prefix = format!("{}=", caller::RUN_VARIABLE);
    let environment = environment(pid).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let found = entries.find(|entry| entry.starts_with(prefix.as_bytes()))?;
    Some(found.to_vec())
}

fn is_in(pid: u32, dir: &Path) -> bool {
    system::working_dir(pid).is_ok_and(|cwd| cwd.starts_with(dir))
}

fn is_own(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw()
}

/// Visits the processes of these users but our own, each with its user; an error where some of them may have been
/// left out.
fn each_process(
    observer: &Observer,
    is_asked_for: impl Fn(u32) -> bool,
    mut visit: impl FnMut(u32, u32),
) -> Result<(), String> {
    if !observer.proc_is_own {
        return Err(Unseen::ForeignProc.to_string());
    }
    let unlisted = |error: std::io::Error| Unseen::Unlisted(error).to_string();
    for pid in system::pids().map_err(unlisted)? {
        let pid = pid.map_err(unlisted)?;
        if pid == std::process::id() {
            continue;
        }
        if let Ok(user) = system::owner(pid)
            && is_asked_for(user)
        {
            visit(pid, user);
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
            if sign.leaders.iter().any(|leader| leader.pid == self.pid) {
                continue;
            }
            let mark = match self.mark(sign) {
                Ok(Some(mark)) => mark,
                Ok(None) => continue,
                Err(why) => {
                    let doubt = || cannot_read(self.pid, why);
                    answer.doubt.get_or_insert_with(doubt);
                    continue;
                }
            };
            let mut is_an_agents = || {
                *is_an_agents_known.get_or_insert_with(|| {
                    is_an_agents(self.pid, observer) || is_our_hook(self.pid)
                })
            };
            if sign.agents_too || !is_an_agents() {
                answer.found.extend(self.left(mark, observer));
            }
        }
    }

    fn mark(&self, signs: &Signs) -> Result<Option<Mark>, &str> {
        let environment = self.environment.as_ref().map_err(String::as_str);
        let has = environment.map(|all| {
            move |name: &str, value: &str| {
                let wanted = format!("{name}={value}");
                let mut entries = all.split(|byte| *byte == 0);
                entries.any(|entry| entry == wanted.as_bytes())
            }
        });
        signs.mark(self.start, self.session, has)
    }

    /// The same process, if it is still there.
    fn left(&self, mark: Mark, observer: &Observer) -> Option<LeftProcess> {
        let process = process::of_anyone(self.pid, observer)?;
        if !process.start.same_start(self.start) {
            return None;
        }
        let (chain, _) = process::chain_from(self.pid, observer);
        Some(LeftProcess {
            above: chain.into_iter().skip(1).map(|one| one.process).collect(),
            shown: shown(self.pid, self.start, mark == Mark::Own),
            process,
        })
    }
}

fn shown(pid: u32, start: StartTicks, can_end: bool) -> Survivor {
    Survivor {
        pid,
        command: command(pid),
        since: (!start.shifted)
            .then(|| exit_traces::moment(start.ticks).map(clock::timestamp))
            .flatten(),
        can_end,
    }
}

/// A hook ends by itself, soon. It may be of a program that was replaced since, and the server looks at those of `tenure`.
fn is_our_hook(pid: u32) -> bool {
    let runs = |pid: u32| {
        let path = system::executable(pid);
        PathBuf::from(path.strip_suffix(REPLACED).unwrap_or(&path))
    };
    let is_own = || {
        let (own, its) = (runs(std::process::id()), runs(pid));
        its == own || its == own.with_file_name(HOOK_PROGRAM)
    };
    let words = process::looks(pid).argv;
    words.get(1).is_some_and(|verb| verb == "hook") && is_own()
}

/// The environment with which a process was started.
pub(crate) fn environment(pid: u32) -> std::io::Result<Vec<u8>> {
    for _ in 0..READS {
        let found = system::environment(pid, u64::MAX)?;
        let is_program = || !system::executable(pid).is_empty();
        if !found.is_empty() || !is_program() {
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

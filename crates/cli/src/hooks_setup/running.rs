//! Running agents that read their hooks only when they start, and the mode that each of them runs.
//!
//! The register has every mode that was installed with its time, so the start of a process tells which one it read.

use tenure_agents::install::word_of;
use tenure_app::{hooked, location};
use tenure_core::time::Timestamp;
use tenure_core::world::World;
use tenure_core::write_conflict::GuardMode;
use tenure_host::running::{self, AgentProcess};

use super::place::{InstallScope, InstallTarget};
use super::register::{Installed, Register, without_links};

/// A line for each mode other than the installed one, with the agents that run it.
pub fn notes(place: &InstallTarget, installed: GuardMode, register: &Register) -> Vec<String> {
    if !place.settings.is_read_at_start {
        return Vec::new();
    }
    let Ok(machine) = location::peeked_machine() else {
        return Vec::new();
    };
    let modes = register.modes(place.agent, &place.file());
    let mut others: Vec<(Option<GuardMode>, Vec<u32>)> = Vec::new();
    for agent in running::agents(machine.observer()) {
        if agent.agent != place.agent || !reads(&agent, place) {
            continue;
        }
        let Some(began) = agent.began() else {
            continue;
        };
        let mode = mode_at(modes, began);
        if modes.is_empty() || mode == Some(installed) {
            continue;
        }
        let pid = agent.process.process.pid;
        match others.iter_mut().find(|(other, _)| *other == mode) {
            Some((_, pids)) => pids.push(pid),
            None => others.push((mode, vec![pid])),
        }
    }
    let line = |(mode, pids): &(Option<GuardMode>, Vec<u32>)| told(*mode, pids, installed);
    others.iter().map(line).collect()
}

fn told(mode: Option<GuardMode>, pids: &[u32], installed: GuardMode) -> String {
    let (verb, it) = match pids {
        [_] => ("runs", "it"),
        _ => ("run", "them"),
    };
    let named: Vec<String> = pids.iter().map(|pid| format!("pid {pid}")).collect();
    let what = match mode {
        Some(mode) => format!("mode {}", word_of(mode)),
        None => "without these hooks".to_owned(),
    };
    format!(
        "{} still {verb} {what}; restart {it} for mode {}",
        named.join(", "),
        word_of(installed)
    )
}

/// The mode that was installed at this time.
fn mode_at(modes: &[Installed], began: Timestamp) -> Option<GuardMode> {
    let before = modes.iter().rev().find(|one| one.at <= began.0);
    before.and_then(|one| GuardMode::parse(&one.mode))
}

/// Whether this process reads the settings of this place.
fn reads(agent: &AgentProcess, place: &InstallTarget) -> bool {
    let dir = agent.dir.as_deref();
    match &place.scope {
        InstallScope::User => {
            let own = hooked::dir_of(place.settings, agent.process.process.pid, dir);
            own.is_some_and(|own| without_links(&own) == without_links(&place.dir))
        }
        InstallScope::Project(root) => {
            dir.is_some_and(|dir| std::path::Path::new(dir).starts_with(without_links(root)))
        }
        InstallScope::Plugin => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_runs_the_mode_that_was_there_when_it_started() {
        let at = |at: i64, mode: &str| Installed {
            at,
            mode: mode.to_owned(),
        };
        let modes = [at(10, "warn"), at(20, "block"), at(30, "observe")];
        for (began, expected) in [
            (9, None),
            (10, Some(GuardMode::Warn)),
            (25, Some(GuardMode::Block)),
            (31, Some(GuardMode::Observe)),
        ] {
            assert_eq!(mode_at(&modes, Timestamp(began)), expected, "{began}");
        }
        assert_eq!(
            told(Some(GuardMode::Warn), &[7, 8], GuardMode::Block),
            "pid 7, pid 8 still run mode warn; restart them for mode block"
        );
        assert_eq!(
            told(None, &[7], GuardMode::Block),
            "pid 7 still runs without these hooks; restart it for mode block"
        );
    }
}

//! What to do next if there are no sessions yet.

use crate::hooks_setup::place::{InstallScope, InstallTarget};
use crate::hooks_setup::plan::{Plan, SetupTarget, State};
use crate::hooks_setup::register::{GIT, Register};
use crate::hooks_setup::state_dir;
use crate::lines::Lines;

/// The agents of this machine.
#[derive(Default)]
struct DetectedAgents {
    /// Those that are here.
    here: Vec<String>,
    /// Those that have our hooks.
    hooked: Vec<String>,
}

/// An empty list of sessions, and the next step.
pub fn without_sessions() -> Lines {
    let mut text = Lines::from("no sessions");
    text.line(next(&found()));
    text
}

/// The agents that register by themselves, if each agent of this machine does; otherwise there is something left to
/// install.
pub fn all_hooked() -> Vec<String> {
    found().all_hooked()
}

impl DetectedAgents {
    fn all_hooked(self) -> Vec<String> {
        let is_left = |agent: &String| !self.hooked.contains(agent);
        if self.here.iter().any(is_left) {
            return Vec::new();
        }
        self.hooked
    }
}

fn next(found: &DetectedAgents) -> String {
    if !found.hooked.is_empty() {
        let agents = found.hooked.join(" or ");
        return format!("next: start {agents}; its hooks are installed, so it registers by itself");
    }
    if found.here.is_empty() {
        "next: run `tenure register` to make this shell a session, \
         or install a coding agent and run `tenure install`"
            .to_owned()
    } else {
        format!(
            "next: run `tenure install` to register {} automatically, then start one",
            found.here.join(", ")
        )
    }
}

/// What cannot be read counts as not installed: `install` reports what is wrong with it.
fn found() -> DetectedAgents {
    let mut found = DetectedAgents::default();
    let Ok(state_dir) = state_dir() else {
        return found;
    };
    let wanted = SetupTarget {
        program: "tenure".to_owned(),
        mode: None,
        state_dir,
        status_line: false,
        mcp: false,
        wake: None,
        answers: None,
    };
    for place in InstallTarget::all(&InstallScope::User, |_| true).unwrap_or_default() {
        let (agent, is_here) = (place.agent.to_owned(), place.found);
        let state = Plan::install(place, &wanted).map(|plan| plan.state);
        if matches!(state, Ok(State::Installed | State::Outdated)) {
            found.hooked.push(agent.clone());
        }
        if is_here {
            found.here.push(agent);
        }
    }
    let register = Register::peek(&wanted.state_dir);
    let edits = register.iter().flat_map(Register::edits);
    for edit in edits.filter(|edit| edit.agent != GIT) {
        if !found.hooked.contains(&edit.agent) {
            found.hooked.push(edit.agent.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn an_install_is_advised_while_an_agent_lacks_it() {
        let hooked = |here: &[&str], hooked: &[&str]| {
            let (here, hooked) = (names(here), names(hooked));
            DetectedAgents { here, hooked }.all_hooked()
        };
        assert_eq!(hooked(&["claude"], &["claude"]), ["claude"]);
        assert_eq!(hooked(&["claude", "codex"], &["claude"]), [""; 0]);
        assert_eq!(hooked(&[], &[]), [""; 0]);
    }

    #[test]
    fn the_next_step_depends_on_what_is_here() {
        let nothing = next(&DetectedAgents::default());
        assert!(nothing.contains("`tenure register`"), "{nothing}");
        let here = next(&DetectedAgents {
            here: names(&["claude", "codex"]),
            hooked: Vec::new(),
        });
        assert!(here.contains("`tenure install`"), "{here}");
        assert!(here.contains("claude, codex"), "{here}");
        let hooked = next(&DetectedAgents {
            here: names(&["claude"]),
            hooked: names(&["claude"]),
        });
        assert!(hooked.contains("start claude"), "{hooked}");
        assert!(!hooked.contains("tenure install"), "{hooked}");
    }
}

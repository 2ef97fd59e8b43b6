//! Which process a run's session is, if something else starts the agent.
//!
//! A run starts the agent's real program if it can. If it starts a wrapper, the wrapper is the session's process
//! until the agent itself is seen below it: then that is, in the same life. Pure: the processes come in as they look.

use crate::agent::{agent_of, recognise};
use crate::id::AgentName;
use crate::process::Ancestor;

/// Whether the first of these processes is the program that the last one, a run's own process, was started for. Each
/// is a child of the next.
///
/// An agent that starts another of its kind is not a wrapper: a process that looks like the agent wraps only its own
/// child, and any other process only what has no agent between.
pub fn is_program(agent: &AgentName, chain: &[Ancestor]) -> bool {
    let [program, between @ .., own] = chain else {
        return false;
    };
    let is_it =
        |one: &Ancestor| recognise(&one.looks).is_some_and(|spec| spec.name == agent.as_str());
    // A part of a program that has executed nothing is that program.
    if program.forked || !is_it(program) {
        return false;
    }
    if is_it(own) {
        between.iter().all(is_it)
    } else {
        let is_plain = |one: &Ancestor| agent_of(&one.looks).is_none();
        is_plain(own) && between.iter().all(is_plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Process, ProcessAppearance};

    /// A process by its command line.
    fn one(line: &str) -> Ancestor {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let exe = format!("/usr/bin/{}", argv[0]);
        Ancestor {
            process: Process::sample(7),
            looks: ProcessAppearance {
                comm: argv[0].clone(),
                exe,
                argv,
            },
            leads_terminal: false,
            forked: false,
        }
    }

    fn of(agent: &'static str, lines: &[&str]) -> bool {
        let chain: Vec<Ancestor> = lines.iter().map(|line| one(line)).collect();
        is_program(&AgentName::known(agent), &chain)
    }

    #[test]
    fn the_agent_below_a_wrapper_is_the_program() {
        assert!(of("codex", &["codex exec", "node /x/bin/codex.js exec"]));
        assert!(of("claude", &["claude -p", "sh -c claude -p"]));
        assert!(of(
            "claude",
            &["claude -p", "sudo -u agent claude", "timeout 9 x"]
        ));
        assert!(of(
            "qwen",
            &[
                "node /x/@qwen-code/qwen-code/cli.js",
                "node /x/.bin/qwen",
                "node /x/.bin/qwen"
            ]
        ));
    }

    #[test]
    fn an_agent_below_an_agent_is_one_of_its_own() {
        assert!(!of("claude", &["claude -p", "bash -c claude", "claude -p"]));
        assert!(!of(
            "claude",
            &["claude -p", "bash -c x", "claude -p", "sh -c claude"]
        ));
        assert!(!of("claude", &["claude -p", "codex exec", "sh -c codex"]));
        assert!(!of("codex", &["claude -p", "sh -c codex"]), "another agent");
        assert!(!of("claude", &["bash -c ls", "sh -c claude"]), "a tool");
        assert!(!of("claude", &["claude -p"]), "it is the run's own");
        assert!(!of("claude", &[]));
    }

    #[test]
    fn a_fork_of_the_wrapper_is_the_wrapper() {
        let forked = Ancestor {
            forked: true,
            ..one("sh /x/bin/claude")
        };
        let agent = AgentName::known("claude");
        assert!(!is_program(
            &agent,
            &[forked.clone(), one("sh /x/bin/claude")]
        ));
        let chain = [one("claude -p"), forked, one("sh /x/bin/claude")];
        assert!(is_program(&agent, &chain));
    }
}

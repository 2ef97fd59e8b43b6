//! Who reads an answer, and which hints that reader may see.

use tenure_core::agent::HUMAN;
use tenure_core::hint::{For, Hint};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reader {
    Person,
    /// A person at a terminal, outside any session.
    Newcomer,
    /// A model, or a program that may pass its output on to one.
    #[default]
    Program,
}

/// Commands that a person can run only inside a session.
const NEEDS_A_SESSION: &[&str] = &["takeover", "end", "claim"];

/// Decides who reads the answer. `agent` is the agent of the caller's session. `below_agent` means that the
/// caller runs, or may run, inside an agent that is not registered. A `human` session counts as a person even
/// without a terminal: a person registered that shell, so its scripts act for that person.
pub fn reader_of(agent: Option<&str>, below_agent: bool, at_terminal: bool) -> Reader {
    match agent {
        Some(HUMAN) => Reader::Person,
        None if at_terminal && !below_agent => Reader::Newcomer,
        Some(_) | None => Reader::Program,
    }
}

impl Reader {
    /// The hints that this reader may see. A newcomer must register before it can take anything.
    pub fn hints(self, all: &[Hint]) -> Vec<Hint> {
        let may_see = |hint: &&Hint| hint.audience == For::Anyone || self != Reader::Program;
        let mut shown: Vec<Hint> = all.iter().filter(may_see).cloned().collect();
        let needs_session = |hint: &Hint| {
            hint.audience == For::Person
                && hint
                    .verb
                    .is_some_and(|verb| NEEDS_A_SESSION.contains(&verb))
        };
        let registers = shown.iter().any(|hint| hint.verb == Some("register"));
        if self == Reader::Newcomer && !registers && shown.iter().any(needs_session) {
            shown.insert(0, Hint::verb("register", "first: you are not in a session"));
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_a_human_session_or_nobody_at_a_terminal_outside_any_agent() {
        let rows = [
            (Some("human"), false, true, Reader::Person),
            (Some("human"), false, false, Reader::Person),
            (Some("claude"), false, true, Reader::Program),
            (Some("claude"), false, false, Reader::Program),
            (Some("nightly"), false, true, Reader::Program),
            (None, false, true, Reader::Newcomer),
            (None, false, false, Reader::Program),
            (None, true, true, Reader::Program),
            (None, true, false, Reader::Program),
        ];
        for (agent, below_agent, at_terminal, expected) in rows {
            let reader = reader_of(agent, below_agent, at_terminal);
            assert_eq!(reader, expected, "{agent:?} {below_agent} {at_terminal}");
        }
    }

    #[test]
    fn only_a_person_is_told_to_take_over_and_a_newcomer_registers_first() {
        let why = Hint::run("why", ["wp:1"], "for details");
        let take = Hint::run("takeover", ["wp:1", "--reason", "REASON"], "to take it");
        let both = [why.clone(), take.clone()];
        let verbs = |reader: Reader, all: &[Hint]| -> Vec<_> {
            let shown = reader.hints(all);
            shown.iter().filter_map(|hint| hint.verb).collect()
        };
        assert_eq!(verbs(Reader::Program, &both), ["why"]);
        assert_eq!(verbs(Reader::Person, &both), ["why", "takeover"]);
        assert_eq!(
            verbs(Reader::Newcomer, &both),
            ["register", "why", "takeover"]
        );
        assert_eq!(verbs(Reader::Newcomer, &[why]), ["why"]);
        let uninstall = Hint::verb("uninstall", "to take it out");
        assert_eq!(verbs(Reader::Newcomer, &[uninstall]), ["uninstall"]);
        let register = Hint::verb("register", "to begin");
        assert_eq!(
            verbs(Reader::Newcomer, &[register, take]),
            ["register", "takeover"]
        );
    }
}

//! Whether a conversation may be resumed.
//!
//! Why a run ended and whether its conversation may be resumed are two questions. Here is the second: what the
//! newest run of a native id left behind ([`Left`]), and whether the agent still has the conversation
//! ([`Existence`]). A run that failed or was stopped leaves a conversation that can be resumed.

use crate::id::stored_enum;

stored_enum! {
    /// The answer.
    Fitness, "fitness" {
        /// It can be resumed.
        Resume = "resume",
        /// The agent has no such conversation.
        Unknown = "unknown",
        /// A resume ended with the provider, or the agent, refusing its history.
        Unusable = "unusable",
    }
}

stored_enum! {
    /// What the end of a run shows about the conversation that it was in.
    Left, "state of a conversation" {
        /// Nothing against a resume.
        Sound = "sound",
        /// The provider refused the history as too long. The agent compacts by itself, so one more resume is
        /// allowed.
        Overflowed = "overflowed",
        Unusable = "unusable",
        Unknown = "unknown",
    }
}

stored_enum! {
    /// What an agent's files show about a conversation.
    Existence, "existence" {
        Present = "present",
        Absent = "absent",
        CannotTell = "cannot_tell",
    }
}

/// How a resume was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeRefusal {
    /// The agent has no such conversation.
    Unknown,
    /// The history is longer than the model takes. `compacts` if the agent shortens it by itself.
    Overflow { compacts: bool },
    /// The provider refuses what is in the history.
    History,
    /// The agent cannot read its own file.
    Damaged,
}

impl Left {
    /// What a run leaves behind that was refused so; `before` is what the run before it left of the same native
    /// id. A first turn shows nothing about a history.
    pub fn by(refusal: ResumeRefusal, resumed: bool, before: Option<Left>) -> Left {
        match refusal {
            _ if !resumed => Left::Sound,
            ResumeRefusal::Unknown => Left::Unknown,
            ResumeRefusal::Overflow { compacts: true } if before != Some(Left::Overflowed) => {
                Left::Overflowed
            }
            ResumeRefusal::Overflow { .. } | ResumeRefusal::History | ResumeRefusal::Damaged => {
                Left::Unusable
            }
        }
    }
}

/// Judges a native id by what its newest run left behind, and by whether the agent has it now.
pub fn fitness(newest: Option<Left>, existence: Existence) -> Fitness {
    match (existence, newest) {
        (Existence::Absent, _) => Fitness::Unknown,
        (_, Some(Left::Unusable)) => Fitness::Unusable,
        (Existence::CannotTell, Some(Left::Unknown)) => Fitness::Unknown,
        // A file that is there now is newer evidence than an agent that did not find it before.
        _ => Fitness::Resume,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_r19_a_history_that_the_provider_refused_is_not_resumed() {
        assert_eq!(
            Left::by(ResumeRefusal::History, true, Some(Left::Sound)),
            Left::Unusable
        );
        for existence in [Existence::Present, Existence::CannotTell] {
            assert_eq!(fitness(Some(Left::Unusable), existence), Fitness::Unusable);
        }
    }

    #[test]
    fn f_r18_a_run_that_failed_or_was_stopped_keeps_its_conversation() {
        for newest in [None, Some(Left::Sound)] {
            for existence in [Existence::Present, Existence::CannotTell] {
                assert_eq!(fitness(newest, existence), Fitness::Resume);
            }
        }
    }

    #[test]
    fn a_first_turn_says_nothing_about_a_history() {
        for refusal in [
            ResumeRefusal::Unknown,
            ResumeRefusal::Overflow { compacts: false },
            ResumeRefusal::History,
            ResumeRefusal::Damaged,
        ] {
            assert_eq!(Left::by(refusal, false, None), Left::Sound, "{refusal:?}");
        }
    }

    #[test]
    fn an_overflow_counts_the_second_time_where_the_agent_compacts() {
        let overflow = ResumeRefusal::Overflow { compacts: true };
        let first = Left::by(overflow, true, Some(Left::Sound));
        assert_eq!(first, Left::Overflowed);
        assert_eq!(fitness(Some(first), Existence::CannotTell), Fitness::Resume);
        assert_eq!(Left::by(overflow, true, Some(first)), Left::Unusable);
        let alone = ResumeRefusal::Overflow { compacts: false };
        assert_eq!(Left::by(alone, true, None), Left::Unusable);
        assert_eq!(Left::by(ResumeRefusal::Damaged, true, None), Left::Unusable);
    }

    #[test]
    fn only_absence_is_evidence() {
        assert_eq!(
            fitness(Some(Left::Sound), Existence::Absent),
            Fitness::Unknown
        );
        assert_eq!(fitness(None, Existence::CannotTell), Fitness::Resume);
        let found_again = fitness(Some(Left::Unknown), Existence::Present);
        assert_eq!(found_again, Fitness::Resume);
        let not_seen = fitness(Some(Left::Unknown), Existence::CannotTell);
        assert_eq!(not_seen, Fitness::Unknown);
    }
}

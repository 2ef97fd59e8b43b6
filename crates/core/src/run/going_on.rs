//! What is sent when a run goes on that was cut off.
//!
//! Agents keep a prompt whose turn failed, so sending it again gives it to the model twice. It goes out again only
//! if it provably never arrived, or if the conversation is new and has none.

use crate::run::Outcome;
use crate::time::Timestamp;

/// What goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Send {
    /// The prompt of the run that was cut off.
    Prompt,
    /// A request to continue: the skill's own text for it, else [`continue_text`].
    Continue,
}

/// Decides for a run that was cut off. `was_begun` if its agent was started; `same` if the conversation is the
/// one that it was in.
pub fn what_to_send(was_begun: bool, same: bool) -> Send {
    if was_begun && same {
        Send::Continue
    } else {
        Send::Prompt
    }
}

/// The request to continue if the skill has none of its own.
pub fn continue_text(outcome: Outcome, at: Timestamp) -> String {
    let why = why(outcome);
    format!("Your last turn was cut off ({why}, {at}). Check what is already done, then continue.")
}

/// Why a turn was cut off, for the model.
pub fn why(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "it was finished",
        Outcome::Failed => "it failed",
        Outcome::Refused => "tools were refused",
        Outcome::Timeout => "it ran out of time",
        Outcome::Stopped => "it was stopped",
        Outcome::Interrupted => "it was interrupted",
        Outcome::Unusable => "the history was refused",
        Outcome::Parked => "the usage limit was reached",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_goes_out_again_only_where_it_never_arrived() {
        assert_eq!(what_to_send(true, true), Send::Continue);
        assert_eq!(what_to_send(false, true), Send::Prompt);
        assert_eq!(what_to_send(true, false), Send::Prompt);
    }

    #[test]
    fn the_model_reads_why_and_when() {
        let at = Timestamp(1_794_735_000_000);
        assert_eq!(
            continue_text(Outcome::Parked, at),
            "Your last turn was cut off (the usage limit was reached, 2026-11-15T09:30:00.000Z). \
             Check what is already done, then continue."
        );
    }
}

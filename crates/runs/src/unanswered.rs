//! Conversations in which the model never answered.
//!
//! Some agents keep a file of such a conversation but do not find it by its id, so it can never be
//! resumed. Starting a new one instead loses nothing.

use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::NativeId;

use super::existence;
use super::runner::Runner;

/// A longer file has answers.
const MAX_LENGTH: u64 = 4 << 20;

impl Runner {
    /// Whether the agent still has a conversation that it reported as unknown.
    pub(super) fn looks_again(&self, native_id: &NativeId, home: &Home) -> Existence {
        let found = self.looks_for(native_id, home);
        let mark = self.driver.runs().spec().answered;
        if found == Existence::Present && mark.is_some_and(|mark| self.lacks(native_id, mark)) {
            return Existence::Absent;
        }
        found
    }

    /// Whether the file of a conversation lacks the mark of an answer.
    fn lacks(&self, native_id: &NativeId, mark: &str) -> bool {
        let file = existence::file(&self.agent, native_id, &tenure_host::env::var);
        let text = file.and_then(|file| tenure_host::read::text(&file, MAX_LENGTH).ok());
        text.is_some_and(|text| !text.contains(mark))
    }
}

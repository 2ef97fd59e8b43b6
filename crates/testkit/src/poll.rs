//! Waiting for a state that no descriptor tells of, with a deadline.

use std::time::{Duration, Instant};

/// Asks every few milliseconds until there is an answer; panics, naming `what`, at the deadline.
#[track_caller]
pub fn poll<T>(deadline: Duration, what: &str, mut f: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + deadline;
    loop {
        if let Some(answer) = f() {
            return answer;
        }
        assert!(
            Instant::now() < end,
            "waited in vain for {deadline:?}: {what}"
        );
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that polls; it ends by the state or by the deadline"
        )]
        std::thread::sleep(Duration::from_millis(2));
    }
}

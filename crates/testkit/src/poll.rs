//! Waiting, with a deadline, for a state that no descriptor signals.

use std::time::{Duration, Instant};

/// Calls `f` every few milliseconds until it returns a value. At the deadline it panics and names
/// `what`.
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

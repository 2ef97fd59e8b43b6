//! Waiting without a condition: the only place that sleeps.

use std::time::Duration;

pub fn sleep(length: Duration) {
    #[allow(clippy::disallowed_methods)] // the replacement that the lint names
    std::thread::sleep(length);
}

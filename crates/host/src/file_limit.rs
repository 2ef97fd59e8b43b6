//! The limit on the size of files (`ulimit -f`), which kills whoever writes beyond it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, getrlimit};
use signal_hook::consts::SIGXFSZ;

/// How many bytes a file may have that this process writes, where that is limited.
pub fn most() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// From now on a write beyond the limit is an error, not a death. Programs that we start are not changed.
pub fn survive() {
    if most().is_some() {
        // Where it cannot be had, all is as it would be without.
        drop(signal_hook::flag::register(
            SIGXFSZ,
            Arc::new(AtomicBool::new(false)),
        ));
    }
}

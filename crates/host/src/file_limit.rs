//! The file size limit (`ulimit -f`), which kills a process that writes beyond it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, getrlimit};
use signal_hook::consts::SIGXFSZ;

/// The file size limit of this process in bytes, if there is one.
pub fn most() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// From now on, a write beyond the limit is an error and does not kill the process. Programs that we start are
/// not affected.
pub fn survive() {
    if most().is_some() {
        // If this fails, the default action stays in place: the signal kills.
        drop(signal_hook::flag::register(
            SIGXFSZ,
            Arc::new(AtomicBool::new(false)),
        ));
    }
}

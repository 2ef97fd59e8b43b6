//! Hides the contents of this process from other processes of the same user.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// From now on, no unprivileged process can read the memory or the environment of this process, or
/// trace it. Processes that it starts are not covered.
pub fn hide_memory() {
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        // On a kernel that does not support this, there is nothing else to try.
    }
}

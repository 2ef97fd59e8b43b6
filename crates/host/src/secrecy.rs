//! Keeping what is in this process from others of the same user.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// From now on nobody without privileges can read the memory or the environment of this process, or trace it. What
/// it starts is not covered.
pub fn hide_memory() {
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        // A kernel that does not know this protects nothing of it elsewhere either.
    }
}

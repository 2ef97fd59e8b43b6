//! Hides the contents of this process from other processes of the same user.

use tenure_core::ignore::Ignore;

use crate::system;

/// From now on, no unprivileged process can read the memory or the environment of this process, or
/// trace it. Processes that it starts are not covered.
pub fn hide_memory() {
    system::hide_memory()
        .ignore("on a kernel that does not support this, there is nothing else to try");
}

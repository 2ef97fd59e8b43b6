//! Periodic work, done by runners while their agents work and by the worker of the queue.

use super::{lost, retention};
use tenure_app::open::Context;

/// Removes the files of old runs, and finds conversations that their agents have deleted. Each step
/// is skipped if it was done recently.
pub fn sweep(context: &mut Context) {
    retention::sweep(context);
    lost::sweep(context);
}

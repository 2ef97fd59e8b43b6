//! What is done from time to time, by runners while their agents work and by who works the queue.

use super::{lost, retention};
use crate::open::Context;

/// Removes the files of old runs, and finds conversations that their agents have deleted. Each does nothing where it was
/// done a short time ago.
pub fn sweep(context: &mut Context) {
    retention::sweep(context);
    lost::sweep(context);
}

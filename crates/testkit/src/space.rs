//! What one environment and all its workers share: the directory and the plain worker.
//!
//! It lives as long as anything uses it, so the order in which a test drops things does not matter.
//! The plain worker is also the caretaker: it takes over processes whose own worker can no longer
//! end them (because it was killed or stopped), and ends them if the test is killed before it can.

use std::sync::OnceLock;

use crate::place::TestRoot;
use crate::worker::WorkerHandle;

#[derive(Debug)]
pub(crate) struct Space {
    // Dropped in this order: the worker before the directory that it uses.
    plain: OnceLock<WorkerHandle>,
    pub(crate) place: TestRoot,
}

impl Space {
    pub(crate) fn new(place: TestRoot) -> Space {
        Space {
            plain: OnceLock::new(),
            place,
        }
    }

    /// The worker outside any session.
    pub(crate) fn plain(&self) -> &WorkerHandle {
        self.plain.get_or_init(|| {
            let variables = self.place.variables();
            WorkerHandle::detached(&self.place, &variables, "plainworker", &[], None)
        })
    }
}

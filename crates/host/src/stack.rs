//! The stack limit (`ulimit -s`), which ends a process that needs a larger stack.

use rustix::process::{Resource, getrlimit};

/// A main thread with less than this may be too small for us.
const ENOUGH: u64 = 1 << 20;
/// What a main thread usually has.
const USUAL: usize = 8 << 20;

/// Runs on a stack that is large enough: on the one of this thread, or on another thread if the limit is small.
pub fn with_room<T: Send>(run: impl Fn() -> T + Sync) -> T {
    if getrlimit(Resource::Stack)
        .current
        .is_none_or(|limit| limit >= ENOUGH)
    {
        return run();
    }
    std::thread::scope(|scope| {
        let roomy = std::thread::Builder::new().stack_size(USUAL);
        let started = roomy.spawn_scoped(scope, &run);
        match started.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(value)) => value,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => run(),
        }
    })
}

//! The descriptors that a process passes on to programs that it starts.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use tenure_core::ignore::Ignore;

use rustix::io::{FdFlags, fcntl_setfd};

use crate::system;

/// Keeps every descriptor from 3 on, except one, from programs that this process starts later. A process that stays
/// must not hold the pipes of the one that happened to start it.
pub fn pass_on_only(kept: RawFd) -> io::Result<()> {
    let is_ours = |number: &RawFd| *number > 2 && *number != kept;
    let open: Vec<RawFd> = system::own_descriptors()?.filter(is_ours).collect();
    for number in open {
        #[expect(
            unsafe_code,
            reason = "the descriptor was open a moment ago; if it was closed since, the call fails and changes nothing"
        )]
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_setfd(borrowed, FdFlags::CLOEXEC)
            .ignore("the listing itself used a descriptor that is closed now");
    }
    Ok(())
}

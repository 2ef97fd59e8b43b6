//! Reserving space for an append, before its first byte is written.
//!
//! A write that runs out of space stops in the middle, and its partial data cannot be removed from a file that
//! others append to. So three things are checked first: the file size limit, the free space, and the file
//! system itself, by reserving blocks beyond the end without extending the file. Only the reservation is a
//! guarantee (it also counts quotas). The free space is checked before it because a reservation that fails may
//! briefly take all available space, which other writers would notice. File systems that cannot reserve leave a
//! gap: there a write can still be interrupted.
//!
//! What others append in the meantime uses up the reservation, so it is a little larger than the lines.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::process::Resource;

use crate::system;

/// How much others may append between the reservation and our write. It stays allocated, for later lines.
const MARGIN: u64 = 16 * 1024;
/// The same for the file size limit, where a margin costs nothing.
const LIMIT_MARGIN: u64 = 1024 * 1024;

/// Makes sure that `bytes` more fit at the end of a file of this length.
pub(crate) fn reserve(file: &File, length: u64, bytes: u64) -> io::Result<()> {
    let beyond = |margin: u64| length.saturating_add(bytes).saturating_add(margin);
    if size_limit().is_some_and(|limit| beyond(LIMIT_MARGIN) > limit) {
        return Err(Errno::FBIG.into());
    }
    if free(file).is_some_and(|free| bytes.saturating_add(MARGIN) > free) {
        return Err(Errno::NOSPC.into());
    }
    match system::reserve(file.as_fd(), length, bytes + MARGIN) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a write at this position would fail, or raise a signal, because of the file's size.
pub(crate) fn is_at_size_limit(position: u64) -> bool {
    size_limit().is_some_and(|limit| position >= limit)
}

fn size_limit() -> Option<u64> {
    rustix::process::getrlimit(Resource::Fsize).current
}

/// The space that this user may still fill; none if the file system does not report it.
fn free(file: &File) -> Option<u64> {
    let said = rustix::fs::fstatvfs(file).ok()?;
    let blocks = if rustix::process::geteuid().is_root() {
        said.f_bfree
    } else {
        said.f_bavail
    };
    (said.f_blocks > 0).then(|| blocks.saturating_mul(said.f_frsize))
}

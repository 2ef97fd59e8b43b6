//! Room for an append, found out before its first byte is written.
//!
//! A write that runs out of room stops in the middle, and what it leaves cannot be taken back from a file
//! that others append to. So three things are asked first: the limit on the size of files, the free space,
//! and the file system itself, by reserving blocks beyond the end without making the file longer. Only the
//! reservation is a promise (it also counts quotas); the free space is asked before it because a
//! reservation that fails may take all the space there is for a moment, which other writers would see.
//! File systems that cannot reserve leave a gap: there a write can still be cut short.
//!
//! What others append meanwhile uses up the reservation, so it is a little larger than the lines.

use std::fs::File;
use std::io;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::process::Resource;

/// How much others may append between the reservation and our write. It stays allocated, for later lines.
const MARGIN: u64 = 16 * 1024;
/// The same for the limit on the size of files, where a margin costs nothing.
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
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, length, bytes + MARGIN) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a write at this position would be refused, or answered with a signal, for the file's size.
pub(crate) fn is_at_size_limit(position: u64) -> bool {
    size_limit().is_some_and(|limit| position >= limit)
}

fn size_limit() -> Option<u64> {
    rustix::process::getrlimit(Resource::Fsize).current
}

/// The space that this user may still fill; none where the file system does not say.
fn free(file: &File) -> Option<u64> {
    let said = rustix::fs::fstatvfs(file).ok()?;
    let blocks = if rustix::process::geteuid().is_root() {
        said.f_bfree
    } else {
        said.f_bavail
    };
    (said.f_blocks > 0).then(|| blocks.saturating_mul(said.f_frsize))
}

//! Changes of files, by inotify.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

use crate::system::FileChanges;

/// Files that appear and disappear in a directory, and its own removal.
const COMINGS_AND_GOINGS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// A descriptor that is readable when one of these changed. Reading it takes the changes away.
pub fn listen(watched: &[(&Path, FileChanges)]) -> io::Result<OwnedFd> {
    let fd = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    for (path, changes) in watched {
        let flags = match changes {
            FileChanges::Entries => COMINGS_AND_GOINGS,
            FileChanges::EntriesAndWrites => COMINGS_AND_GOINGS | WatchFlags::MODIFY,
            FileChanges::Writes => WatchFlags::MODIFY,
        };
        add_watch(&fd, *path, flags)?;
    }
    Ok(fd)
}

//! Local sockets, and who is on the other side.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use crate::system::Peer;

/// A local socket that is not inherited and whose calls do not wait.
pub fn local_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// The process on the other side of a connection, when it connected or began to listen.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let found = sockopt::socket_peercred(socket)?;
    Ok(Peer {
        uid: found.uid.as_raw(),
        pid: found.pid.as_raw_nonzero().get().unsigned_abs(),
    })
}

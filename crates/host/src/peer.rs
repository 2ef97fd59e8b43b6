//! Local sockets: connecting without waiting, and who is on the other side.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use fs_err::File;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketAddrUnix, connect, recv};

use crate::system;

/// The longest path that fits into the address of a socket, with some room.
const MAX_LENGTH: usize = 100;

/// The user on the other side of a connection.
pub fn uid_of(stream: &UnixStream) -> io::Result<u32> {
    Ok(system::peer(stream.as_fd())?.uid)
}

/// The process on the other side of a connection, when it connected.
pub fn pid_of(stream: &UnixStream) -> io::Result<u32> {
    Ok(system::peer(stream.as_fd())?.pid)
}

/// Whether the other side has closed the connection.
pub fn has_left(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let peeked = recv(stream, &mut [0_u8; 1], flags);
    !matches!(peeked, Err(Errno::AGAIN)) && !matches!(peeked, Ok((_, 1..)))
}

/// Connects, or fails at once: a listener that does not accept must not hold up its callers.
pub fn connect_now(path: &Path) -> io::Result<UnixStream> {
    let (path, _dir) = short(path)?;
    connect_to(&path)
}

/// The same for a path that is known to fit into an address.
pub(crate) fn connect_to(path: &Path) -> io::Result<UnixStream> {
    let socket = system::local_socket()?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Whether the other side is there and has said nothing.
pub fn is_silent(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let peeked = recv(stream, &mut [0_u8; 1], flags);
    matches!(peeked, Err(Errno::AGAIN))
}

/// Listens at a path, which nothing has.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let (path, _dir) = short(path)?;
    UnixListener::bind(path)
}

/// A path that fits into an address. A long one is reached through a descriptor of its directory.
fn short(path: &Path) -> io::Result<(PathBuf, Option<File>)> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok((path.to_owned(), None));
    };
    if path.as_os_str().len() <= MAX_LENGTH {
        return Ok((path.to_owned(), None));
    }
    let dir = File::open(dir)?;
    let through = system::path_through(dir.as_fd())?;
    Ok((through.join(name), Some(dir)))
}

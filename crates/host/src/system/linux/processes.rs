//! Which processes there are, and what each of them has: its users, directory, variables and sockets.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::proc::{numbers, proc_path, read_whole};

/// Longer than any status of a process.
const STATUS_LIMIT: u64 = 64 * 1024;

/// Longer than the kernel's table of sockets.
const SOCKETS_LIMIT: u64 = 4 << 20;

/// The pids of all processes that may be listed.
pub fn pids() -> io::Result<impl Iterator<Item = io::Result<u32>>> {
    let pid = |entry: fs_err::DirEntry| entry.file_name().to_str()?.parse().ok();
    let entries = fs_err::read_dir("/proc")?;
    Ok(entries.filter_map(move |entry| match entry {
        Ok(entry) => pid(entry).map(Ok),
        Err(error) => Some(Err(error)),
    }))
}

/// The user who may inspect a process: root for one that hides its memory.
pub fn owner(pid: u32) -> io::Result<u32> {
    Ok(fs_err::metadata(format!("/proc/{pid}"))?.uid())
}

/// The user who started a process.
pub fn real_uid(pid: u32) -> Option<u32> {
    let status = read_whole(&proc_path(pid, "status"), STATUS_LIMIT).ok()?;
    numbers(&status, b"Uid:")?.next()?.parse().ok()
}

/// The current directory of a process. A deleted one ends in ` (deleted)`.
pub fn working_dir(pid: u32) -> io::Result<PathBuf> {
    fs_err::read_link(proc_path(pid, "cwd"))
}

/// The same for this process.
pub fn own_working_dir() -> io::Result<PathBuf> {
    fs_err::read_link("/proc/self/cwd")
}

/// The variables with which a process was started, each ended by a NUL, at most this many bytes. Briefly empty after
/// an exec.
pub fn environment(pid: u32, most: u64) -> io::Result<Vec<u8>> {
    read_whole(&proc_path(pid, "environ"), most)
}

/// Whether a process has a socket open.
pub fn has_socket(pid: u32, inode: u64) -> bool {
    let wanted = format!("socket:[{inode}]");
    let fds = fs_err::read_dir(proc_path(pid, "fd"));
    let mut links = fds.into_iter().flatten().flatten().map(|fd| fd.path());
    links.any(|fd| fs_err::read_link(fd).is_ok_and(|link| link.as_os_str() == wanted.as_str()))
}

/// This user's socket that listens on a port of 127.0.0.1.
pub fn listening_socket(port: u16, uid: u32) -> Option<u64> {
    let table = read_whole(Path::new("/proc/self/net/tcp"), SOCKETS_LIMIT + 1).ok()?;
    let table = String::from_utf8(table).ok()?;
    if table.len() as u64 > SOCKETS_LIMIT {
        return None;
    }
    listener(&table, port, uid)
}

/// The inode of the socket in the kernel's table.
fn listener(table: &str, port: u16, uid: u32) -> Option<u64> {
    let local = format!("0100007F:{port:04X}");
    let fields = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut rows = table.lines().skip(1).map(fields);
    let row = rows.find(|row| {
        let is = |at: usize, value: &str| row.get(at).is_some_and(|field| field == value);
        is(1, &local) && is(3, "0A") && is(7, &uid.to_string())
    })?;
    row.get(9)?.parse().ok().filter(|inode| *inode != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_of_this_user_that_listens_is_a_listener() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:A4F9 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 100 0 0 10 0\n   \
            1: 0100007F:A4FA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 78 1 0 100 0 0 10 0\n   \
            2: 0100007F:A4FB 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 79 1 0 100 0 0 10 0\n   \
            3: 00000000:A4FC 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 80 1 0 100 0 0 10 0\n";
        assert_eq!(listener(table, 0xA4F9, 1000), Some(77));
        for (port, why) in [
            (0xA4FA, "another user's"),
            (0xA4FB, "a connection"),
            (0xA4FC, "another address"),
            (0xA4FD, "nobody's"),
        ] {
            assert_eq!(listener(table, port, 1000), None, "{why}");
        }
    }
}

//! Files that only this kernel has, and space for those that all have.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::io::Errno;

/// An empty file without a name, in memory. The name that it is given is shown to people alone.
pub fn unnamed_file(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

/// Reserves space of a file without extending it.
pub fn reserve(file: BorrowedFd<'_>, from: u64, length: u64) -> Result<(), Errno> {
    fallocate(file, FallocateFlags::KEEP_SIZE, from, length)
}

/// Gives a part of a file back to the disk; it reads as zeroes.
pub fn give_back(file: BorrowedFd<'_>, from: u64, length: u64) -> Result<(), Errno> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, flags, from, length)
}

/// The kernel's number for the type of file system that a directory is on.
pub fn filesystem_magic(dir: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    // The numbers have 32 bits; some kernels sign-extend them.
    Ok(Some(rustix::fs::fstatfs(dir)?.f_type as u32))
}

//! A text as an unnamed file that cannot be changed, for the standard input of a new process.
//!
//! Unlike a pipe, it needs no writer while the other side reads. If we are killed before it is
//! complete, no process has it; once it is complete, every reader gets all of it. It is an
//! anonymous file in memory, sealed against writing. If the kernel has none, it is an unlinked file
//! that only the owner can read, opened read-only.

use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use crate::file;

/// A file with exactly this content, positioned at its start. If memory cannot hold files, it is
/// created in `dir`.
pub fn whole(dir: &Path, bytes: &[u8]) -> io::Result<File> {
    match sealed(bytes) {
        Ok(file) => Ok(file),
        Err(_) => unlinked(dir, bytes),
    }
}

#[cfg(target_os = "linux")]
fn sealed(bytes: &[u8]) -> io::Result<File> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use rustix::io::Errno;

    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Some systems require the no-exec seal; older kernels do not know the flag.
    let made = match memfd_create("tenure-prompt", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create("tenure-prompt", flags),
        made => made,
    };
    let mut file = File::from(made?);
    file.write_all(bytes)?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn sealed(_: &[u8]) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

fn unlinked(dir: &Path, bytes: &[u8]) -> io::Result<File> {
    let named = file::write_beside(&dir.join("prompt"), bytes)?;
    let opened = fs_err::File::open(&named);
    fs_err::remove_file(&named)?;
    Ok(opened?.into_file())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    /// What a process reads when it has the file as its standard input.
    fn read_by_another(file: File) -> Vec<u8> {
        let done = Command::new("cat").stdin(Stdio::from(file)).output();
        done.unwrap().stdout
    }

    #[test]
    fn another_process_reads_all_of_it() {
        let dir = tempfile::tempdir().unwrap();
        for bytes in [&b""[..], b"hello", &vec![b'x'; 3 << 20]] {
            assert_eq!(read_by_another(whole(dir.path(), bytes).unwrap()), bytes);
            assert_eq!(read_by_another(unlinked(dir.path(), bytes).unwrap()), bytes);
        }
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn it_cannot_be_changed() {
        let mut file = sealed(b"hello").unwrap();
        assert!(file.write_all(b"x").is_err());
        assert!(file.set_len(2).is_err() && file.set_len(9).is_err());
        // A process that reopens its own standard input cannot write either.
        let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let reopened = fs_err::OpenOptions::new().write(true).open(again);
        assert!(reopened.is_err() || reopened.unwrap().write_all(b"x").is_err());
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn a_file_without_a_name_is_for_its_owner_and_for_reading() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let mut file = unlinked(dir.path(), b"hello").unwrap();
        let found = file.metadata().unwrap();
        assert_eq!((found.nlink(), found.mode() & 0o777), (0, 0o600));
        assert!(file.write_all(b"x").is_err());
    }

    #[test]
    fn a_prompt_that_fits_nowhere_is_an_error_with_its_path() {
        let gone = Path::new("/no/such/dir");
        let error = unlinked(gone, b"x").unwrap_err();
        assert!(error.to_string().contains("/no/such/dir"), "{error}");
    }
}

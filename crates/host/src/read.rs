//! Reading files that others wrote: settings, registries, the files of a repository.
//!
//! Anything with the name of a file may be a pipe without a writer, a device, or endless. So a file is opened
//! without blocking, is read only if it is a regular file, and only up to a limit. Links are followed, because
//! people link their settings from elsewhere.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use fs_err::File;
use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;

use crate::file::flags;
use crate::path_error::refused;

/// Opens a regular file for reading, without blocking.
pub fn open(path: &Path) -> io::Result<File> {
    Ok(open_found(path)?.0)
}

/// The same, with its length.
fn open_found(path: &Path) -> io::Result<(File, u64)> {
    let safely = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs_err::OpenOptions::new()
        .read(true)
        .custom_flags(flags(safely))
        .open(path)?;
    let found = file.metadata()?;
    if found.is_file() {
        Ok((file, found.len()))
    } else {
        Err(refused("read", path, "it is not a regular file"))
    }
}

/// The first bytes of a regular file.
pub fn start(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (mut file, length) = open_found(path)?;
    filled(&mut file, length, most)
}

/// The last bytes of a regular file.
pub fn tail(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (mut file, length) = open_found(path)?;
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file with this reported length; kernel files report 0.
pub(crate) fn filled(file: &mut impl Read, length: u64, most: u64) -> io::Result<Vec<u8>> {
    // Most of these files are small: one read returns them, without another one to find their end.
    let room = usize::try_from(most).unwrap_or(usize::MAX).min(4096);
    let mut bytes = vec![0; room];
    let count = file.read(&mut bytes)?;
    bytes.truncate(count);
    if count == 0 || count as u64 != length {
        file.take(most - count as u64).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// All of a regular file, which must not be longer than this.
pub fn whole(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let bytes = start(path, most.saturating_add(1))?;
    if bytes.len() as u64 > most {
        let why = format!("it is longer than {most} bytes");
        Err(refused("read", path, &why))
    } else {
        Ok(bytes)
    }
}

pub fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(whole(path, most)?).map_err(|_| refused("read", path, "it is not UTF-8 text"))
}

/// Whether an error means that there is no such file.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_plain_file_is_read_and_only_so_far() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert!(is_absent(&text(&path, 9).unwrap_err()));
        fs_err::write(&path, "text").unwrap();
        assert!(is_absent(&text(&path.join("b"), 9).unwrap_err()));
        assert_eq!(text(&path, 4).unwrap(), "text");
        assert_eq!(start(&path, 2).unwrap(), b"te");
        assert_eq!(tail(&path, 2).unwrap(), b"xt");
        assert_eq!(tail(&path, 9).unwrap(), b"text");
        let error = text(&path, 3).unwrap_err().to_string();
        assert!(error.contains("longer than 3 bytes"), "{error}");
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(text(&link, 4).unwrap(), "text");
        fs_err::write(&path, [0xff]).unwrap();
        assert!(text(&path, 4).unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn a_file_is_read_to_its_end_whatever_its_length_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let long = "0123456789".repeat(1000);
        fs_err::write(&path, &long).unwrap();
        assert_eq!(text(&path, 10_000).unwrap(), long);
        assert_eq!(start(&path, 5_000).unwrap(), &long.as_bytes()[..5_000]);
        // It grew after its length was read, or was truncated.
        for said in [0, 4, 10_000, 20_000] {
            let mut file = File::open(&path).unwrap();
            assert_eq!(filled(&mut file, said, 20_000).unwrap(), long.as_bytes());
        }
        #[cfg(target_os = "linux")]
        assert!(
            text(Path::new("/proc/self/status"), 1 << 20)
                .unwrap()
                .ends_with('\n')
        );
    }

    #[test]
    fn pipes_devices_and_directories_are_named_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::Mode::from_raw_mode(0o600),
        )
        .unwrap();
        let endless = dir.path().join("endless");
        symlink("/dev/zero", &endless).unwrap();
        for path in [pipe.as_path(), &endless, dir.path()] {
            let error = whole(path, 9).unwrap_err();
            assert!(!is_absent(&error));
            let said = error.to_string();
            assert!(said.contains("not a regular file"), "{said}");
            assert!(said.contains(path.to_str().unwrap()), "{said}");
        }
    }
}

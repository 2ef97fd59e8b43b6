//! What is remembered about a database outside of it, in `NAME.mark`: which file it was, in which boot it was
//! last used, the newest stored event, and the generation of what is stored.
//!
//! A database cannot detect by itself that its newest changes are lost, or that it is a copy. The mark can: it
//! is written after a commit that reached the disk, so an intact store never has less than its mark. Any
//! process may be late with it (a crash, a power failure, two writers at once), which only makes it prove less.
//!
//! The generation is a random number, new with every commit that may change how a plain event of an agent is answered
//! ([`tenure_core::settled`]). Hooks compare it before they open the database.
//!
//! One line, written in place by one call, so a reader sees it complete. *Crash*: between the commit and the
//! mark, the mark is one change behind, and that change was not acknowledged yet. A missing or unreadable mark
//! proves nothing. A symbolic link in its place is refused, and a pipe is not waited for. *Clock jump*: no clock is compared; the boot is a name. *Older version*: one without marks
//! leaves them outdated, which proves less.

use std::fs::Metadata;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use tenure_core::ignore::Ignore;
use tenure_core::settled::Generation;

use super::files::beside;

/// The first words of a mark.
const BEGIN: &str = "tenure-mark 1";
/// No mark is longer.
const LIMIT: usize = 512;

/// Which file a database is, by what a copy does not share: its inode and the inode's creation time. The device
/// number is not part of it, because it may change with every boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    inode: u64,
    /// Nanoseconds since 1970; zero if the file system does not store it.
    born: u128,
}

impl FileId {
    pub(super) fn of(found: &Metadata) -> Self {
        let born = found.created().ok();
        let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        Self {
            inode: found.ino(),
            born: born.map_or(0, |since| since.as_nanos()),
        }
    }

    /// Whether both are the same file, as far as both are known.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        let born = self.born == other.born || self.born == 0 || other.born == 0;
        self.inode == other.inode && born
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (inode, born) = text.split_once('.')?;
        Some(Self {
            inode: inode.parse().ok()?,
            born: born.parse().ok()?,
        })
    }
}

impl std::fmt::Display for FileId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.inode, self.born)
    }
}

/// The content of a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) boot: String,
    pub(super) file: FileId,
    /// The number of the newest stored event.
    pub(super) event: u64,
    generation: u64,
}

impl Mark {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.lines().next()?.strip_prefix(BEGIN)?.split(' ').skip(1);
        let event = words.next()?.parse().ok()?;
        let generation = u64::from_str_radix(words.next()?, 16).ok()?;
        let file = FileId::parse(words.next()?)?;
        let boot = words.next()?.to_owned();
        (words.next().is_none() && !boot.is_empty()).then_some(Self {
            boot,
            file,
            event,
            generation,
        })
    }

    fn line(&self) -> String {
        let Self {
            boot,
            file,
            event,
            generation,
        } = self;
        format!("{BEGIN} {event:020} {generation:016x} {file} {boot}\n")
    }
}

/// The mark of one database, for one connection.
#[derive(Debug, Clone)]
pub(super) struct MarkFile {
    path: PathBuf,
    /// The current boot.
    boot: String,
    /// The file in use.
    file: FileId,
}

impl MarkFile {
    /// The mark of the database `file`, with this metadata (`found`).
    pub(super) fn of(file: &Path, found: &Metadata, boot: &str) -> Self {
        Self {
            path: beside(file, ".mark"),
            boot: boot.replace([' ', '\n'], "_"),
            file: FileId::of(found),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Whether there is a mark that commits write to.
    pub(super) fn is_written(&self) -> bool {
        self.generation().is_some()
    }

    /// Which file the database is now.
    pub(super) fn file(&self) -> FileId {
        self.file
    }

    /// Its content; an error only for a symbolic link in its place.
    pub(super) fn read(&self) -> io::Result<Option<Mark>> {
        let opened = open_plain(fs_err::OpenOptions::new().read(true), &self.path);
        match opened.and_then(|file| read_mark(&file)) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error),
            found => Ok(found.ok().flatten()),
        }
    }

    /// The generation of the database; none if the mark is of another file or boot.
    pub(super) fn generation(&self) -> Option<Generation> {
        let mark = self.read().ok().flatten()?;
        self.is_ours(&mark).then(|| {
            Generation(format!(
                "{:016x} {} {}",
                mark.generation, mark.file, mark.boot
            ))
        })
    }

    /// Whether a mark was written in this boot, for this file.
    pub(super) fn is_ours(&self, mark: &Mark) -> bool {
        mark.boot == self.boot && mark.file == self.file
    }

    /// Records a commit: a new generation, and the event that it stored. The newest event counts.
    ///
    /// Without an event, a mark of another file or boot is left alone, because it was not compared yet. A failure only
    /// makes the mark prove less, and the next heartbeat of each session finds what was stored, so no error is reported.
    pub(super) fn note(&self, event: Option<u64>) {
        let mut options = fs_err::OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(event.is_some())
            .truncate(false);
        let noted = open_plain(options.mode(0o600), &self.path).and_then(|file| {
            let known = read_mark(&file)?.filter(|mark| self.is_ours(mark));
            match event.max(known.map(|mark| mark.event)) {
                Some(newest) => self.write_to(&file, newest),
                None => Ok(()),
            }
        });
        noted.ignore("see above");
    }

    /// Writes exactly this, as a new generation.
    pub(super) fn write(&self, event: u64) -> io::Result<()> {
        let mut options = fs_err::OpenOptions::new();
        options.write(true).create(true).truncate(false);
        self.write_to(&open_plain(options.mode(0o600), &self.path)?, event)
    }

    fn write_to(&self, file: &fs_err::File, event: u64) -> io::Result<()> {
        let mark = Mark {
            boot: self.boot.clone(),
            file: self.file,
            event,
            // Never the same again, also with two writers at once.
            generation: RandomState::new().hash_one(event),
        };
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        if found.mode() & 0o777 != 0o600 {
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
        // Leftovers of a longer earlier line are after the end of this one, where no reader looks.
        file.file().write_all_at(mark.line().as_bytes(), 0)
    }
}

/// What an opened file has to say; it is written by one call, so one call reads it complete.
fn read_mark(mut file: &fs_err::File) -> io::Result<Option<Mark>> {
    let mut bytes = [0; LIMIT];
    let length = file.read(&mut bytes)?;
    let text = std::str::from_utf8(&bytes[..length]).ok();
    Ok(text.and_then(Mark::parse))
}

/// Opens a file beside a database. A symbolic link is refused, and a pipe is not waited for.
pub(super) fn open_plain(
    options: &mut fs_err::OpenOptions,
    path: &Path,
) -> io::Result<fs_err::File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    opened.map_err(|error| {
        let is_link = || fs_err::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        if error.kind() == io::ErrorKind::NotFound || !is_link() {
            return error;
        }
        let why = format!("{} is a symbolic link", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_back_and_what_is_left_of_a_longer_one_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tenure.db");
        fs_err::write(&file, "").unwrap();
        let found = fs_err::metadata(&file).unwrap();
        let long = MarkFile::of(&file, &found, "a-boot-with-a-long-name");
        long.write(7).unwrap();
        let short = MarkFile::of(&file, &found, "b");
        assert!(!short.is_ours(&short.read().unwrap().unwrap()));
        short.note(None);
        assert!(
            !short.is_ours(&short.read().unwrap().unwrap()),
            "not compared yet"
        );
        assert_eq!(short.generation(), None);
        short.note(Some(3));
        let mark = short.read().unwrap().unwrap();
        assert_eq!((mark.boot.as_str(), mark.event), ("b", 3));
        assert!(short.is_ours(&mark));
        short.note(Some(2));
        assert_eq!(short.read().unwrap().unwrap().event, 3, "the newest counts");
    }

    #[test]
    fn every_commit_that_is_noted_is_another_generation() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tenure.db");
        fs_err::write(&file, "").unwrap();
        let marks = MarkFile::of(&file, &fs_err::metadata(&file).unwrap(), "b");
        marks.note(None);
        assert_eq!(marks.generation(), None, "nothing was compared yet");
        marks.write(7).unwrap();
        let mut seen = vec![marks.generation().unwrap()];
        for event in [Some(7), None, None, Some(3), Some(9)] {
            assert_eq!(
                marks.generation().as_ref(),
                seen.last(),
                "reading changes nothing"
            );
            marks.note(event);
            let generation = marks.generation().unwrap();
            assert!(!seen.contains(&generation), "{event:?}");
            seen.push(generation);
        }
        assert_eq!(marks.read().unwrap().unwrap().event, 9);
        let other = dir.path().join("other");
        fs_err::copy(&file, &other).unwrap();
        let copied = MarkFile {
            file: FileId::of(&fs_err::metadata(&other).unwrap()),
            ..marks.clone()
        };
        assert_eq!(copied.generation(), None, "of another file");
        let rebooted = MarkFile {
            boot: "c".into(),
            ..marks
        };
        assert_eq!(rebooted.generation(), None, "of another boot");
    }

    #[test]
    fn what_is_no_mark_says_nothing() {
        for bad in [
            "",
            "tenure-mark 1",
            "tenure-mark 2 1 a 1.1 b\n",
            "tenure-mark 1 x a 1.1 b\n",
            "tenure-mark 1 1 x 1.1 b\n",
            "tenure-mark 1 1 a 1 b\n",
            "tenure-mark 1 1 a 1.1 b more\n",
            "tenure-mark 1 1 a 1.1 \n",
        ] {
            assert_eq!(Mark::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_copy_is_another_file_and_a_renamed_one_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        fs_err::write(&one, "x").unwrap();
        let first = FileId::of(&fs_err::metadata(&one).unwrap());
        fs_err::copy(&one, &two).unwrap();
        assert!(!first.same_as(&FileId::of(&fs_err::metadata(&two).unwrap())));
        fs_err::rename(&one, &two).unwrap();
        let renamed = FileId::of(&fs_err::metadata(&two).unwrap());
        assert!(first.same_as(&renamed));
        assert_eq!(FileId::parse(&renamed.to_string()), Some(renamed));
    }
}

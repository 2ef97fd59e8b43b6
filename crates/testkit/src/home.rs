//! A guard that checks that the tests leave the user's home unchanged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

type Snapshot = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// Records the state of tenure's default directories, and asserts that nothing in them changed or
/// appeared.
///
/// It cannot distinguish a test from a person who uses tenure at the same moment.
#[derive(Debug)]
pub struct HomeGuard {
    dirs: Vec<PathBuf>,
    before: Snapshot,
}

impl HomeGuard {
    /// Guards the home of the invoking user.
    #[expect(
        clippy::new_without_default,
        reason = "it reads the file system, and is held for its drop"
    )]
    pub fn new() -> HomeGuard {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let within = |variable: &str, default: &str| {
            let named = std::env::var_os(variable).filter(|path| !path.is_empty());
            named
                .map(|path| PathBuf::from(path).join("tenure"))
                .into_iter()
                .chain(home.iter().map(|home| home.join(default).join("tenure")))
                .collect::<Vec<_>>()
        };
        let mut dirs = within("XDG_STATE_HOME", ".local/state");
        dirs.extend(within("XDG_CONFIG_HOME", ".config"));
        HomeGuard::of(dirs)
    }

    pub fn of(dirs: Vec<PathBuf>) -> HomeGuard {
        let before = snapshot(&dirs);
        HomeGuard { dirs, before }
    }

    /// Asserts that nothing has changed.
    #[track_caller]
    pub fn check(&self) {
        let after = snapshot(&self.dirs);
        let changed: Vec<_> = self
            .before
            .keys()
            .chain(after.keys())
            .filter(|path| self.before.get(*path) != after.get(*path))
            .collect();
        assert!(changed.is_empty(), "the real home was touched: {changed:?}");
    }
}

impl Drop for HomeGuard {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check();
        }
    }
}

fn snapshot(dirs: &[PathBuf]) -> Snapshot {
    let mut found = Snapshot::new();
    for dir in dirs {
        visit(dir, &mut found);
    }
    found
}

fn visit(path: &Path, found: &mut Snapshot) {
    let Ok(metadata) = path.symlink_metadata() else {
        return;
    };
    found.insert(path.to_owned(), (metadata.modified().ok(), metadata.len()));
    if metadata.is_dir() {
        for entry in path.read_dir().into_iter().flatten().flatten() {
            visit(&entry.path(), found);
        }
    }
}

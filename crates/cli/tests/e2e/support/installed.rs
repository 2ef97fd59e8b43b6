//! A home with settings of agents, and what an uninstall must leave of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_testkit::Env;

/// Everything below: what it is, its mode and its content.
pub fn picture(dir: &Path) -> BTreeMap<PathBuf, (u32, String)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a scratch directory is ours") {
        let path = entry.expect("a scratch directory is ours").path();
        let meta = fs::symlink_metadata(&path).expect("a scratch directory is ours");
        let content = if meta.is_dir() {
            found.extend(picture(&path));
            "directory".to_owned()
        } else if meta.is_symlink() {
            fs::read_link(&path)
                .expect("a scratch directory is ours")
                .display()
                .to_string()
        } else {
            let bytes = fs::read(&path).expect("a scratch directory is ours");
            String::from_utf8_lossy(&bytes).into_owned()
        };
        found.insert(path, (meta.permissions().mode(), content));
    }
    found
}

/// Asserts that nothing differs, and names what does.
#[track_caller]
pub fn same(now: &BTreeMap<PathBuf, (u32, String)>, before: &BTreeMap<PathBuf, (u32, String)>) {
    let added: Vec<_> = now
        .keys()
        .filter(|path| !before.contains_key(*path))
        .collect();
    let lost: Vec<_> = before
        .keys()
        .filter(|path| !now.contains_key(*path))
        .collect();
    let differ = |path: &&PathBuf| before.get(*path).is_some_and(|was| was != &now[*path]);
    let changed: Vec<_> = now.keys().filter(differ).collect();
    assert!(
        added.is_empty() && lost.is_empty() && changed.is_empty(),
        "added {added:?}, lost {lost:?}, changed {changed:?}"
    );
}

pub fn put(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a scratch directory is ours");
    fs::write(path, content).expect("a scratch directory is ours");
}

pub fn repository(dir: &Path) -> PathBuf {
    fs::create_dir_all(dir).expect("a scratch directory is ours");
    let made = Command::new("git")
        .args(["init", "-q", "--template="])
        .current_dir(dir)
        .status();
    assert!(made.expect("git runs").success());
    dir.to_owned()
}

/// Where the tests put everything that is installed to.
pub fn world(env: &Env) -> PathBuf {
    let world = env.dir().join("world");
    fs::create_dir_all(&world).expect("a scratch directory is ours");
    world
}

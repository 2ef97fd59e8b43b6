//! Finding a conversation's transcript among an agent's files, by name alone.

use std::path::{Path, PathBuf};

use tenure_core::id::{AgentName, NativeId};
use tenure_core::transcript::{Shelf, is_name_of};

/// How many entries are read before the search is given up.
const MOST: usize = 200_000;

pub fn root(shelf: &Shelf, env: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let moved = shelf
        .variable
        .and_then(env)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    let own = match moved {
        Some(moved) => moved,
        None => PathBuf::from(env("HOME").filter(|home| !home.is_empty())?).join(shelf.home),
    };
    Some(own.join(shelf.folder))
}

/// Regular files below `root` with the name of this conversation.
pub fn find(root: &Path, shelf: &Shelf, agent: &AgentName, native_id: &NativeId) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut looked = 0;
    let mut open = vec![(root.to_owned(), 1)];
    while let Some((dir, depth)) = open.pop() {
        let Ok(entries) = fs_err::read_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            looked += 1;
            if looked > MOST {
                return found;
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let name = entry.file_name();
            if kind.is_dir() && depth < shelf.depth {
                open.push((entry.path(), depth + 1));
            } else if kind.is_file()
                && name
                    .to_str()
                    .is_some_and(|name| is_name_of(agent, native_id, name))
            {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

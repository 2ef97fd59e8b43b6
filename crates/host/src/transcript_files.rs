//! Finding a conversation's transcript among an agent's files, by name alone.

use std::io;
use std::path::{Path, PathBuf};

use tenure_core::id::{AgentName, NativeId};
use tenure_core::transcript::{TranscriptLayout, is_name_of};

/// How many entries are read before the search is given up.
const MAX_COUNT: usize = 200_000;

pub fn root(
    layout: &TranscriptLayout,
    env: &dyn Fn(&str) -> Option<std::ffi::OsString>,
) -> Option<PathBuf> {
    let moved = layout
        .variable
        .and_then(env)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    let own = match moved {
        Some(moved) => moved,
        None => PathBuf::from(env("HOME").filter(|home| !home.is_empty())?).join(layout.home),
    };
    Some(own.join(layout.folder))
}

/// All plain files below `root` and their lengths; `None` if not all could be read.
pub fn files(root: &Path, layout: &TranscriptLayout) -> Option<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    let mut looked = 0;
    let mut open = vec![(root.to_owned(), 1)];
    while let Some((dir, depth)) = open.pop() {
        let entries = match fs_err::read_dir(&dir) {
            Ok(entries) => entries,
            // The directory never existed, or was just removed with its contents.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => return None,
        };
        for entry in entries {
            let entry = entry.ok()?;
            looked += 1;
            if looked > MAX_COUNT {
                return None;
            }
            let kind = entry.file_type().ok()?;
            if kind.is_dir() && depth < layout.depth {
                open.push((entry.path(), depth + 1));
            } else if kind.is_file() {
                let length = match entry.metadata() {
                    Ok(metadata) => metadata.len(),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(_) => return None,
                };
                found.push((entry.path(), length));
            }
        }
    }
    Some(found)
}

/// Regular files below `root` with the name of this conversation.
pub fn find(
    root: &Path,
    layout: &TranscriptLayout,
    agent: &AgentName,
    native_id: &NativeId,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut looked = 0;
    let mut open = vec![(root.to_owned(), 1)];
    while let Some((dir, depth)) = open.pop() {
        let Ok(entries) = fs_err::read_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            looked += 1;
            if looked > MAX_COUNT {
                return found;
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let name = entry.file_name();
            if kind.is_dir() && depth < layout.depth {
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

//! Tokens of participants for another system: one private file each in the state directory.
//!
//! A token is never in the store, in the log or in an answer. The only other place that shows it is the participant's
//! own mirror in the format of the system that reads it, which is as private. *Crash*: the old token or the new one is
//! there.

use std::io;
use std::path::{Path, PathBuf};

use tenure_host::file;

/// Where tokens are, in the state directory.
const FOLDER: &str = "tokens";
/// The longest token.
pub const MAX_LENGTH: usize = 8192;

/// The file of a participant. A mission id is one part of a path, and so is a session id.
pub fn file_of(state: &Path, session: &str, mission: &str) -> PathBuf {
    state.join(FOLDER).join(session).join(mission)
}

/// Stores a token; an empty one says that it was cleared.
pub fn set(state: &Path, session: &str, mission: &str, token: &str) -> io::Result<PathBuf> {
    let path = file_of(state, session, mission);
    if let Some(dir) = path.parent() {
        file::make_dirs(dir)?;
    }
    file::write_atomic(&path, token.as_bytes())?;
    Ok(path)
}

/// The token of a participant, empty if it was cleared; none if it was never set.
pub fn read(state: &Path, session: &str, mission: &str) -> Option<String> {
    let path = file_of(state, session, mission);
    file::read_plain(&path).ok().flatten()
}

/// Gives the token of a participant to the session that continues it.
pub fn hand_on(state: &Path, from: &str, to: &str, mission: &str) -> io::Result<()> {
    let Some(token) = read(state, from, mission) else {
        return Ok(());
    };
    set(state, to, mission, &token)?;
    remove(state, from, mission)
}

/// Removes the token of a participant that leaves its mission.
pub fn remove(state: &Path, session: &str, mission: &str) -> io::Result<()> {
    let path = file_of(state, session, mission);
    if fs_err::symlink_metadata(&path).is_err() {
        return Ok(());
    }
    file::remove(&path)
}

/// Checks a token as it was typed or read, without surrounding white space. What is wrong with it is said without it.
pub fn checked(text: &str) -> Result<&str, &'static str> {
    let token = text.trim();
    if token.is_empty() {
        Err("the token is empty")
    } else if token.len() > MAX_LENGTH {
        Err("the token is longer than 8192 bytes")
    } else if !token.chars().all(|c| c.is_ascii_graphic()) {
        Err("the token is not one line of printable ASCII characters")
    } else {
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_never_repeated_in_an_error() {
        assert_eq!(checked(" s3cret\n"), Ok("s3cret"));
        for bad in ["", "\n", "s3cret two", "s3cret\ntwo", &"s".repeat(8193)] {
            let said = checked(bad).expect_err("not a token");
            assert!(!said.contains("s3cret"), "{said}");
        }
    }
}

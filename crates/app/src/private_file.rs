//! Files that only their owner may control: secrets, and settings that can name commands.
//!
//! A secret is read only if nobody else can read it, a settings file only if nobody else can write it. Root can
//! do both anyway. Links are followed; what they lead to is checked.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tenure_core::text;
use tenure_host::read;

/// The longest secret or token.
const MAX_LENGTH: u64 = 4096;

/// The content without surrounding white space.
pub fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let whole = whole(path, "secret", MAX_LENGTH)?;
    Ok(whole.trim_ascii().to_vec())
}

/// The text of a settings file, if nobody but this user or root could have written it.
pub fn settings_text(path: &Path, longest: u64) -> Result<OwnText, SettingsFault> {
    let (file, mode, owner) = opened(path)?;
    let user = rustix::process::geteuid().as_raw();
    if owner != user && owner != 0 {
        return Err(SettingsFault::Owner { owner, user });
    }
    if mode & 0o022 != 0 {
        return Err(SettingsFault::Writable { mode });
    }
    let bytes = read_up_to(file, longest)?;
    if bytes.len() as u64 > longest {
        let why = format!("{} is longer than {longest} bytes", path.display());
        return Err(io::Error::other(why).into());
    }
    let text = String::from_utf8(bytes);
    let text =
        text.map_err(|_| io::Error::other(format!("{} is not UTF-8 text", path.display())))?;
    Ok(OwnText { text, mode })
}

/// The text of a file that others could not have written, and its mode.
#[derive(Debug)]
pub struct OwnText {
    pub text: String,
    pub mode: u32,
}

/// Why a settings file is not used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsFault {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it belongs to uid {owner}, neither to you (uid {user}) nor to root")]
    Owner { owner: u32, user: u32 },
    #[error("others can write it (mode {mode:04o})")]
    Writable { mode: u32 },
    #[error("it has a password, and others can read it (mode {mode:04o})")]
    Readable { mode: u32 },
}

impl SettingsFault {
    /// What to do about it.
    pub fn step(&self, path: &Path) -> Option<String> {
        let file = text::shell(&path.display().to_string());
        match self {
            SettingsFault::Io(_) => None,
            SettingsFault::Owner { user, .. } => Some(format!(
                "check what is in it, then run `sudo chown {user} {file}`"
            )),
            SettingsFault::Writable { .. } => {
                Some(format!("check what is in it, then run `chmod 600 {file}`"))
            }
            SettingsFault::Readable { .. } => {
                Some(format!("run `chmod 600 {file}` and change the password"))
            }
        }
    }
}

fn opened(path: &Path) -> io::Result<(fs_err::File, u32, u32)> {
    let file = read::open(path)?;
    let found = file.metadata()?;
    Ok((file, found.mode() & 0o777, found.uid()))
}

/// At most one byte more than this.
fn read_up_to(file: fs_err::File, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(longest + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The content unchanged. `what` is in the file, and has to be changed if others could read it.
pub fn whole(path: &Path, what: &str, longest: u64) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let (file, mode, owner) = opened(path).map_err(|error| error.to_string())?;
    let user = rustix::process::geteuid().as_raw();
    if mode & 0o077 != 0 {
        let quoted = text::shell(&shown.to_string());
        return Err(format!(
            "others can read {shown} (mode {mode:04o}); run `chmod 600 {quoted}` and change the {what}"
        ));
    }
    if owner != user && owner != 0 {
        return Err(format!("{shown} belongs to uid {owner}, not to uid {user}"));
    }
    let bytes = read_up_to(file, longest).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > longest {
        return Err(format!("{shown} is longer than {longest} bytes"));
    }
    Ok(bytes)
}

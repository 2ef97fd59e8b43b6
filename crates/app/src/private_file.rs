//! Files with secrets: read only if no one else can read them.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tenure_core::text;
use tenure_forges::Secret;
use tenure_host::read;

/// The longest secret or token.
const LONGEST: u64 = 4096;

/// The secret in a file, without surrounding white space.
pub(crate) fn secret(path: &Path) -> Result<Secret, String> {
    let empty = || format!("{} is empty", path.display());
    Secret::new(bytes(path)?).ok_or_else(empty)
}

/// The content without surrounding white space.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let whole = whole(path, "secret", LONGEST)?;
    Ok(whole.trim_ascii().to_vec())
}

/// The content unchanged. `what` is in the file, and has to be changed if others could read it.
pub(crate) fn whole(path: &Path, what: &str, longest: u64) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let file = read::open(path).map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    let (mode, owner) = (found.mode() & 0o777, found.uid());
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
    let mut bytes = Vec::new();
    let read = file.take(longest + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > longest {
        return Err(format!("{shown} is longer than {longest} bytes"));
    }
    Ok(bytes)
}

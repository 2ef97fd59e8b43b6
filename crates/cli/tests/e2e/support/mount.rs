//! Mounts that only one command sees.

use std::os::unix::fs::MetadataExt;

use tenure_testkit::Cmd;

/// A script that may mount things, which nobody else sees and which go with it.
pub fn with_mounts(script: &str) -> Cmd {
    let how = if as_root() { "-m" } else { "-rm" };
    Cmd::new("unshare").args([how, "sh", "-euc", script])
}

pub fn as_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

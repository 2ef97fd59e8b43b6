//! The files next to a database: their names, and the meaning of file system errors.

use std::io;
use std::path::{Path, PathBuf};

use tenure_core::store::StoreError;

pub(super) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The meaning of a file system error for the user of the store.
pub(super) fn io_error(store: &str, error: &io::Error) -> StoreError {
    let store = store.to_owned();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { store },
        _ => StoreError::Unavailable {
            store,
            why: error.to_string(),
        },
    }
}

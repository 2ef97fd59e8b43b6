//! The place of a store: a file or a server.

use std::path::{Path, PathBuf};

use tenure_store::server::PostgresUrl;

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// An SQLite database; its directory is the state directory.
    File(PathBuf),
    /// A PostgreSQL server; the state directory is this machine's default one.
    Server { url: Box<PostgresUrl>, dir: PathBuf },
}

impl StorePlace {
    /// The state directory of this machine.
    pub fn dir(&self) -> &Path {
        match self {
            Self::File(file) => file.parent().unwrap_or(Path::new("/")),
            Self::Server { dir, .. } => dir,
        }
    }

    /// For people: a path, or a URL without its password.
    pub fn shown(&self) -> String {
        match self {
            Self::File(file) => file.display().to_string(),
            Self::Server { url, .. } => url.location(),
        }
    }

    pub fn server(&self) -> Option<&PostgresUrl> {
        match self {
            Self::File(_) => None,
            Self::Server { url, .. } => Some(url),
        }
    }
}

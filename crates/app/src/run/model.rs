//! The socket through which a wrapped agent reaches its model. What speaks over a network is linked by the program
//! that serves it.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tenure_core::queue::code::ModelSocket;
use tenure_host::file;

use crate::{private_file, roots};

/// Where requests go, and the key that they get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTarget {
    pub url: String,
    pub key: Option<ModelKey>,
    /// The certificates to believe, in PEM; the built-in ones if there are none.
    pub roots: Option<Vec<u8>>,
}

/// A header with a key from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelKey {
    pub header: String,
    /// What comes before the key.
    pub before: String,
    pub file: PathBuf,
}

impl ModelKey {
    /// The value of the header. The file is read each time, because the key in it may be replaced.
    pub fn value(&self) -> Result<Vec<u8>, String> {
        let mut value = self.before.clone().into_bytes();
        value.extend_from_slice(&private_file::bytes(&self.file)?);
        Ok(value)
    }
}

/// Serves a socket until the process ends.
pub type Serve = fn(UnixListener, ModelTarget) -> io::Result<()>;

static LINKED: OnceLock<Serve> = OnceLock::new();

/// Makes sockets usable in this program.
pub fn link(serve: Serve) {
    LINKED.get_or_init(|| serve);
}

/// The directory of all sockets, in the state directory. Its name is short because a socket's address is.
const SOCKETS: &str = "s";

/// The socket of a run.
pub(super) fn socket(state: &Path, run: &str) -> PathBuf {
    state.join(SOCKETS).join(run)
}

/// Opens the socket of a run.
pub(super) fn open(state: &Path, run: &str, model: &ModelSocket) -> io::Result<PathBuf> {
    let serve = LINKED
        .get()
        .ok_or_else(|| io::Error::other("only tenure-server can reach a model"))?;
    let socket = socket(state, run);
    file::make_dirs(&state.join(SOCKETS))?;
    remove(state, run)?;
    serve(UnixListener::bind(&socket)?, target(model))?;
    Ok(socket)
}

/// Puts something where the socket of a run will be, for a wrap that shows it.
pub(super) fn stand_in(state: &Path, run: &str) -> io::Result<()> {
    let socket = socket(state, run);
    if fs_err::symlink_metadata(&socket).is_ok() {
        return Ok(());
    }
    file::make_dirs(&state.join(SOCKETS))?;
    file::write_private(&socket, b"")
}

/// Removes the socket of a run; a missing one is not an error.
pub(super) fn remove(state: &Path, run: &str) -> io::Result<()> {
    match fs_err::remove_file(socket(state, run)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn target(model: &ModelSocket) -> ModelTarget {
    let key = model.key_file.as_ref().map(|file| {
        let (header, before) = match model.key_header.as_deref() {
            Some(header) => (header, ""),
            None => ("authorization", "Bearer "),
        };
        ModelKey {
            header: header.to_ascii_lowercase(),
            before: before.to_owned(),
            file: PathBuf::from(file),
        }
    });
    ModelTarget {
        roots: roots::for_forge(&model.url, None),
        url: model.url.clone(),
        key,
    }
}

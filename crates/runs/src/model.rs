//! The socket through which a wrapped agent reaches its model ([`network`] serves it).

use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use tenure_core::queue::code::ModelSocket;
use tenure_host::file;

use crate::network::{self, ModelKey, ModelTarget};
use crate::roots;

/// The directory of all sockets, in the state directory. Its name is short because a socket's address is.
const SOCKETS: &str = "s";

/// The socket of a run.
pub(super) fn socket(state: &Path, run: &str) -> PathBuf {
    state.join(SOCKETS).join(run)
}

/// Opens the socket of a run.
pub(super) fn open(state: &Path, run: &str, model: &ModelSocket) -> io::Result<PathBuf> {
    let network = network::linked();
    let network =
        network.ok_or_else(|| io::Error::other("only tenure-server can reach a model"))?;
    let socket = socket(state, run);
    file::make_dirs(&state.join(SOCKETS))?;
    remove(state, run)?;
    (network.serve)(UnixListener::bind(&socket)?, target(model))?;
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

//! What a runner does over a network, in the program that links it.
//!
//! The runners of the dispatcher's jobs are the dispatcher's program, which calls [`link`] first. `tenure`, which hooks
//! start, depends on none of it.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::OnceLock;

use tenure_app::private_file;
use tenure_forges::api::Connect;

/// The functions of the crate that speaks over a network.
#[derive(Clone, Copy)]
pub struct Network {
    /// Asks a forge.
    pub connect: Connect,
    /// Serves the socket of a model until the process ends.
    pub serve: fn(UnixListener, ModelTarget) -> io::Result<()>,
    /// Posts a notification to a webhook: its order as JSON.
    pub post: fn(&[u8]) -> Result<(), String>,
}

static LINKED: OnceLock<Network> = OnceLock::new();

/// Makes it usable in this program.
pub fn link(network: Network) {
    LINKED.get_or_init(|| network);
}

/// Posts a notification; refused in a program that does not link a network.
pub fn post(order: &[u8]) -> Result<(), String> {
    let network = linked().ok_or("this program speaks over no network")?;
    (network.post)(order)
}

/// None in a program that does not link it.
pub(crate) fn linked() -> Option<Network> {
    LINKED.get().copied()
}

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

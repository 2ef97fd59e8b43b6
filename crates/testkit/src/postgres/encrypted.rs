//! A server with a certificate.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::server::Server;

/// A file beside the server's certificate: `ca.pem` signed it, `other.pem` did not.
pub fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/postgres/tls")
        .join(name)
}

impl Server {
    /// A server for one test, with a certificate for `localhost`.
    #[track_caller]
    pub fn encrypted() -> Server {
        // The server takes a key only from a file that nobody else can read.
        let dir = tempfile::tempdir().expect("a directory");
        let key = dir.path().join("server.key");
        std::fs::copy(certificate("server.key"), &key).expect("its key");
        std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("its key");
        let settings = [
            "ssl = on".to_owned(),
            format!("ssl_cert_file = '{}'", certificate("server.pem").display()),
            format!("ssl_key_file = '{}'", key.display()),
        ];
        Server::own(&settings.each_ref().map(String::as_str))
    }
}

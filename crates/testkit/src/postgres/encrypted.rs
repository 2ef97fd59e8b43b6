//! A server with a certificate.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::server::PostgresServer;

/// A file beside the server's certificate: `ca.pem` signed it, `other.pem` did not.
pub fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/postgres/tls")
        .join(name)
}

impl PostgresServer {
    /// A server for one test, with a certificate for `localhost`.
    #[track_caller]
    pub fn encrypted() -> PostgresServer {
        Self::encrypted_by("server")
    }

    /// The same, with the certificate and the key of this name.
    #[track_caller]
    pub fn encrypted_by(name: &str) -> PostgresServer {
        // The server takes a key only from a file that nobody else can read.
        let dir = tempfile::tempdir().expect("a directory");
        let key = dir.path().join("server.key");
        std::fs::copy(certificate(&format!("{name}.key")), &key).expect("its key");
        std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("its key");
        let own = certificate(&format!("{name}.pem"));
        let settings = [
            "ssl = on".to_owned(),
            format!("ssl_cert_file = '{}'", own.display()),
            format!("ssl_key_file = '{}'", key.display()),
        ];
        PostgresServer::own(&settings.each_ref().map(String::as_str))
    }
}

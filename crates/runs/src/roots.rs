//! The certificates to trust for a forge, as PEM files. They are only read here; the code that
//! connects parses them.

use std::io;
use std::path::{Path, PathBuf};

use tenure_host::{env, read};

/// The longest certificate file.
const MAX_LENGTH: u64 = 8 << 20;

/// Where systems keep their trusted certificates in one file.
const SYSTEM: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// The certificates of a file that the settings name.
pub fn of(file: &Path) -> io::Result<Vec<u8>> {
    read::whole(file, MAX_LENGTH)
}

/// The system's trusted certificates; none if they are in no known file.
pub fn of_system() -> Option<Vec<u8>> {
    let named = env::var("SSL_CERT_FILE").map(PathBuf::from);
    let known = SYSTEM.into_iter().map(PathBuf::from);
    let mut all = named.into_iter().chain(known);
    all.find_map(|file| of(&file).ok())
}

/// The certificates for a forge at this URL: its own, or else the system's.
pub fn for_forge(url: &str, own: Option<&Path>) -> Option<Vec<u8>> {
    match own {
        Some(file) => of(file).ok(),
        None if url.starts_with("https://") => of_system(),
        None => None,
    }
}

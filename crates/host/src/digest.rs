//! Digests, in hexadecimal digits.

use sha2::Digest;

pub fn sha256(bytes: &[u8]) -> String {
    let hash = sha2::Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

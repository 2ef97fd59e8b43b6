//! JSON that tenure wrote for itself, read back.

use std::io;

use serde::de::DeserializeOwned;
use tenure_core::json_fault::fault_at;

/// Reads a whole text. The error tells in plain words why it is not what was expected.
pub fn read_json<T: DeserializeOwned>(text: &[u8]) -> io::Result<T> {
    serde_json::from_slice(text).map_err(|error| {
        let why = fault_at(&error);
        io::Error::new(io::Error::from(error).kind(), why)
    })
}

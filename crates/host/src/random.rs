//! Random bytes and the names made of them.

use std::io;

use crate::system;

/// `N` random bytes from the kernel.
pub(crate) fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut buffer = [0; N];
    system::fill_random(&mut buffer)?;
    Ok(buffer)
}

/// 16 random hexadecimal digits.
pub(crate) fn hex16() -> io::Result<String> {
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes()?)))
}

/// A secret that no one can guess: 64 random hexadecimal digits.
pub fn secret() -> io::Result<String> {
    let digits = bytes::<32>()?;
    Ok(digits.iter().map(|byte| format!("{byte:02x}")).collect())
}

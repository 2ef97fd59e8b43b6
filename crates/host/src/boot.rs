//! Which kernel, boot and pid namespace this process is in, and on which machine.
//!
//! A boot id that a container mounted over its own /proc does not identify the kernel and is marked private,
//! and so is one that is not the kernel's own file. Nothing is kept between calls, so a crash loses nothing.

use std::path::Path;

pub use crate::system::{boot_id, pid_namespace, proc_is_own};

pub fn machine_id() -> Option<String> {
    let text = crate::read::text(Path::new("/etc/machine-id"), 4096).ok()?;
    parse_machine_id(&text)
}

/// An image that was never booted holds an empty file or the word `uninitialized`.
fn parse_machine_id(text: &str) -> Option<String> {
    let id = text.trim();
    let well_formed = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    well_formed.then(|| id.to_ascii_lowercase())
}

/// The name of this machine, for people.
pub fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_id_is_32_hexadecimal_digits() {
        let id = "0123456789abcdef0123456789abcdef";
        assert_eq!(parse_machine_id(&format!("{id}\n")).as_deref(), Some(id));
        for bad in [
            "",
            "uninitialized\n",
            "0123",
            "../../etc/passwd/aaaaaaaaaaaaaaaa",
        ] {
            assert_eq!(parse_machine_id(bad), None, "{bad:?}");
        }
    }
}

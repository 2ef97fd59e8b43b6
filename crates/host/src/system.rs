//! The little that differs between operating systems, behind one set of functions.
//!
//! Linux is the system that is tested. Elsewhere every process is unreadable and the boot id is one
//! that proves nothing, so that sessions live by their leases alone: less is known, nothing is wrong.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use other::*;

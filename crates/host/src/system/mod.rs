//! The differences between operating systems, behind one set of functions.
//!
//! Linux is the tested system. Elsewhere every process is unreadable and the boot id proves nothing, so
//! sessions depend on their leases alone: less is known, but nothing is wrong.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use other::*;

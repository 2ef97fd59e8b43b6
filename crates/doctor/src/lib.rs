//! Looking after an installation: what is wrong with it and what of that can be repaired (one table of checks), backups,
//! and what is forgotten.
//!
//! A check looks at one thing and changes nothing: the store is opened so that not even a death that is noticed is
//! recorded, and no notice counts as delivered. What it finds has a code that stays, evidence, and says what `--fix`
//! would do or what a person can do. A check that fails is a finding itself, and the others go on. What other commands
//! check already is asked of them.
//!
//! A repair deletes no data, and agents may run meanwhile. Before the first one that changes more than the mode of a
//! file, the store is backed up. *Crash*: each repair is whole or was not begun.

mod asked;
pub mod backup;
mod code;
mod command;
mod files;
mod finding;
pub mod gc;
mod patient;
mod repair;
mod sessions;
mod store;
mod table;
mod team;

pub use code::Code;
pub use finding::{Finding, Severity};
pub use repair::Repaired;
pub use table::{DoctorReport, Skipped, examine};

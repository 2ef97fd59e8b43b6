//! This machine: what runs on it, its boot, its clock, and where state is stored.
//!
//! Everything that core may not touch is here, and no rule about sessions. Reading a process never
//! guesses: anything unreadable is reported as such, with the reason, and core decides what that
//! means. Linux is the tested system; `system` has what differs between operating systems, and all that reads
//! /proc.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

pub mod append;
pub mod boot;
pub mod caller;
pub mod clock;
pub mod commands;
pub mod cwd;
pub mod descriptors;
pub mod digest;
pub mod env;
pub mod event_input;
pub mod exit_timer;
mod exit_traces;
pub mod file;
pub mod file_limit;
pub mod gate;
pub mod git;
pub mod git_changes;
pub mod git_command;
mod git_config;
pub mod git_process;
pub mod host_id;
pub mod inside;
pub mod kernel_lock;
pub mod lock_table;
mod lock_wait;
pub mod machine;
pub mod memfd;
pub mod own_repository;
pub mod parent_dir;
mod path_error;
pub mod pause;
pub mod peer;
pub mod pidfd;
pub mod piped;
pub mod presence;
pub mod process;
pub mod process_terminal;
pub mod random;
pub mod read;
pub mod repair;
pub mod running;
pub mod secrecy;
pub mod settings_file;
pub mod shared_fs;
mod space;
pub mod stack;
pub mod state_dir;
pub mod survivors;
pub mod system;
pub mod terminal;
pub mod transcript_files;
mod tree_lock;
pub mod unseen;
pub mod watch;
pub mod watchdog;
mod window;

//! What every surface needs from this machine: settings, an open store, the caller's place,
//! mirrors, commands that run under a claim, and waiting for changes.
//!
//! A surface (the command line, a server) parses and renders; everything between that and the use
//! cases is here. Nothing here prints and nothing knows an exit code. Messages for a person are
//! returned, or passed to a closure if they cannot wait. Failures are
//! [`tenure_service::answer::Problem`]s.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

pub mod agent_hooks;
pub mod attention;
pub mod awaited;
pub mod background;
pub mod changes;
pub mod completion;
pub mod conversation;
pub mod dispatchers;
mod event_retention;
pub mod glance;
pub mod hook_store;
pub mod hooked;
pub mod import;
pub mod keeper;
pub mod keys;
pub mod kill;
pub mod last_words;
pub mod limits;
pub mod location;
pub mod mirror;
pub mod mission_token;
pub mod named;
pub mod notifications;
pub mod open;
pub mod openclaw;
pub mod outage;
pub mod own_command;
pub mod own_process;
pub mod place;
pub mod private_file;
pub mod read_json;
mod server_access;
pub mod server_store;
pub mod settings;
pub mod settings_change;
pub mod starting;
pub mod store_admin;
pub mod store_place;
pub mod supervise;
pub mod survivors;
pub mod tmux;
pub mod toml_words;
pub mod transcript;
pub mod unfinished;
pub mod unmanaged;
pub mod usage;
pub mod watch;
pub mod window;
pub mod window_memory;
pub mod witness;

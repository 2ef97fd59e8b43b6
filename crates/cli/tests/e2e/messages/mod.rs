//! Every message of tenure, on pages that can be read from top to bottom: crates/cli/tests/messages.
//!
//! Each page is made by the real binary in a world of its own. After a change of a message:
//! `UPDATE=1 cargo nextest run -p tenure --test e2e messages::` writes the pages; read what changed. A new command
//! gets its calls on the page where its reader looks; [`complete`] and [`texts`] name what is missing.
//!
//! The number of a page tells where it belongs: 0 the command line itself, 1 sessions, 2 claims, 3 locks, 4 hooks and
//! files, 5 missions, runs, conversations and jobs, 6 what goes wrong with those, 7 settings and the dispatcher, 8 what
//! is installed and the machine, 9 stores, servers and keepers, and at the end what only samples show.

mod broken_store;
mod callers;
mod claims;
mod commands;
mod complete;
mod context_files;
mod daemons;
mod damaged;
mod demo;
mod dispatch;
mod elsewhere;
mod files;
mod forges;
mod help;
mod hook_faults;
mod hooks;
mod interfered_runs;
mod job_code;
mod jobs;
mod keeper;
mod locks;
mod machine;
mod missions;
mod names;
mod overlaps;
pub mod page;
mod queued;
mod rare;
mod rare_runs;
mod run_ends;
mod run_starts;
mod runs;
mod said;
mod seen;
mod sessions;
mod setup;
mod stable;
mod stops;
mod store;
mod texts;
mod transcripts;
mod webhooks;
mod windows;
mod worktrees;

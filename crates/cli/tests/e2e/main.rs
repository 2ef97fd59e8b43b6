//! End-to-end tests: the real binary, real processes, a private HOME.

#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

mod activity;
mod append_beside_agent;
mod claims;
mod coming_back;
mod commands;
mod completion;
mod conversations;
mod cut_off;
mod daemons;
mod demo;
mod dismissing;
mod dispatch_again;
mod dispatch_code;
mod dispatch_contract;
mod dispatch_full_disk;
mod dispatch_guide;
mod dispatch_joins;
mod dispatch_links;
mod dispatch_morning;
mod dispatch_parked;
mod dispatch_ping;
mod dispatch_planted;
mod dispatch_push;
mod dispatch_settings;
mod dispatch_stop;
mod dispatch_told;
mod dispatch_trust;
mod durability;
mod earlier_lives;
mod end_kill;
mod ends;
mod every_agent;
mod file_limits;
mod first_use;
mod following;
mod foreign_hooks;
mod foreign_text;
mod forge_replies;
mod forge_sweep;
mod git_guard;
mod hints;
mod hook_answers;
mod hook_limits;
mod hook_program;
mod hook_unverified;
mod hook_watchdog;
mod hooks;
mod identity;
mod import;
mod import_bad_input;
mod input;
mod install;
mod item_worktrees;
mod kill_survivors;
mod layouts;
mod lines;
mod lists;
mod liveness;
mod lock_command;
mod locks;
mod log_of_session;
mod log_retention;
mod manual;
mod messages;
mod mirror_links;
mod mirrors;
mod mission_rows;
mod missions;
mod mistyped;
mod moved;
mod names;
mod nothing_made;
mod notices;
mod nowhere;
mod on_behalf;
mod one_report;
mod one_row;
mod openclaw;
mod outages;
mod output;
mod own_word;
mod paths;
mod people;
mod person_told;
mod picture;
mod pooled;
mod private_questions;
mod project_settings;
mod provider_comment;
mod publishing;
mod pull_requests;
mod queue;
mod queue_damage;
mod queue_parked;
mod queue_rows;
mod races;
mod recorder;
mod registering;
mod replaced;
mod repositories;
mod resume;
mod run_agents;
mod run_conversations;
mod run_crashes;
mod run_limits;
mod run_lines;
mod run_logs;
mod run_promises;
mod run_retention;
mod run_rows;
mod run_stops;
mod run_storm;
mod run_survivors;
mod run_unfinished;
mod run_unnamed;
mod run_waits;
mod run_wrappers;
mod runs;
mod schema;
mod seen_alike;
mod server_copy;
mod server_deliveries;
mod server_history;
mod server_limits;
mod server_outcome;
mod settled;
mod several;
mod sight;
mod skills;
mod spellings;
mod standing;
mod status_line;
mod store_files;
mod support;
mod survivors;
mod titles;
mod transcript_append;
mod transcripts;
mod tree_locks;
mod trust;
mod two_programs;
mod unblocked;
mod uninstall;
mod uninstall_killed;
mod unspoken;
mod unwritten;
mod waiting;
mod watching;
mod webhook_burst;
mod webhook_input;
mod webhook_storm;
mod webhooks;
mod windowless;
mod windows;
mod worktree_changes;
mod wrapped;
mod write_conflicts;

use std::path::Path;

use support::env;

/// A file that is not named above would never run.
#[test]
fn every_file_of_this_folder_is_a_module_of_it() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e");
    let text = std::fs::read_to_string(here.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(&here).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = name
            .strip_suffix(".rs")
            .filter(|stem| !stem.starts_with('.'))
        else {
            continue;
        };
        assert!(
            stem == "main" || text.contains(&format!("mod {stem};")),
            "{name} is not run"
        );
    }
}

//! End-to-end tests: the real binary, real processes, a private HOME.

#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

mod agent_daemons;
mod agent_files;
mod agent_layouts;
mod agent_rows;
mod answers;
mod claim;
mod claim_command;
mod claim_lines;
mod claim_one_answer;
mod claim_paths;
mod claim_races;
mod claim_several;
mod claim_survivors;
mod claim_survivors_earlier_lives;
mod claim_waiting;
mod completion;
mod config_project;
mod conversations;
mod demo;
mod dismiss;
mod dismiss_who;
mod dispatch_certificates;
mod dispatch_code;
mod dispatch_comments;
mod dispatch_contract;
mod dispatch_full_disk;
mod dispatch_guide;
mod dispatch_joins;
mod dispatch_links;
mod dispatch_parked;
mod dispatch_ping;
mod dispatch_planted_repository;
mod dispatch_program;
mod dispatch_pull_requests;
mod dispatch_replay;
mod dispatch_settings;
mod dispatch_status;
mod dispatch_stop;
mod dispatch_trust;
mod doctor;
mod doctor_sessions;
mod doctor_setup;
mod end_process;
mod end_survivors;
mod file_limits;
mod first_use;
mod forge_outages;
mod forge_replies;
mod forge_sweep;
mod gc;
mod goto;
mod guard_lost;
mod hook_answers;
mod hook_block_hints;
mod hook_limits;
mod hook_of_other_agent;
mod hook_person_notices;
mod hook_plain_events;
mod hook_program;
mod hook_recorder;
mod hook_sessions;
mod hook_unverified;
mod hook_watchdog;
mod hook_write_conflicts;
mod identity;
mod import;
mod import_bad_input;
mod input;
mod input_odd_places;
mod install;
mod key_names;
mod key_repositories;
mod key_spellings;
mod lock_command;
mod lock_holders;
mod log_session;
mod manual;
mod messages;
mod mirror_links;
mod mirrors;
mod mission_bad_input;
mod missions;
mod notices;
mod notifications;
mod openclaw;
mod opencode_plugin;
mod output;
mod output_foreign_text;
mod output_lists;
mod output_one_report;
mod output_unwritten;
mod process_liveness;
mod process_visibility;
mod ps_activity;
mod ps_private_questions;
mod ps_silent_agents;
mod ps_unmanaged;
mod ps_watch;
mod ps_windowless;
mod queue;
mod queue_damage;
mod queue_lost_jobs;
mod queue_parked;
mod register;
mod repository_trust;
mod resume;
mod resume_cut_off;
mod resume_when_reset;
mod resume_worktree_changes;
mod run;
mod run_agents;
mod run_budget;
mod run_claim_lines;
mod run_conversations;
mod run_crashes;
mod run_failures;
mod run_limits;
mod run_logs;
mod run_promises;
mod run_provider_waits;
mod run_publish;
mod run_retention;
mod run_stops;
mod run_storm;
mod run_survivors;
mod run_unfinished;
mod run_unnamed;
mod run_wrapped;
mod run_wrappers;
mod schema;
mod server_copy;
mod server_deliveries;
mod server_doctor;
mod server_history;
mod server_limits;
mod server_outcome;
mod server_pooler;
mod session_ends;
mod session_on_behalf;
mod session_titles;
mod session_words;
mod show_last_words;
mod skills;
mod spend;
mod status;
mod status_line;
mod status_worktrees;
mod store_backup;
mod store_durability;
mod store_files;
mod store_moved;
mod store_replaced;
mod support;
mod takeover_hints;
mod timeline;
mod top;
mod transcript;
mod transcript_append;
mod transcript_append_beside_agent;
mod uninstall;
mod uninstall_killed;
mod usage_errors;
mod wake;
mod watch_events;
mod watchers_end;
mod webhook_burst;
mod webhook_input;
mod webhook_storm;
mod webhooks;
mod worktree_locks;

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

//! What every backend must do, with one case per promise of the store interface.
//!
//! Each case gets an empty store. A backend's tests name a function that creates a store and runs a
//! case in it; `tenure_testkit::conformance!` turns every case into a separate test:
//!
//! ```text
//! fn in_a_file(case: fn(&mut dyn Store)) { … }
//! tenure_testkit::conformance!(in_a_file);
//! ```

#![expect(
    clippy::unwrap_used,
    reason = "a case fails by panicking, like the test that it becomes"
)]

pub mod claim;
pub mod conversation;
pub mod count;
pub mod event;
pub mod job;
pub mod line;
pub mod metadata;
pub mod mission;
pub mod native;
pub mod notice;
pub mod process;
pub mod reply;
pub mod retention;
pub mod run;
pub mod sample;
pub mod session;
pub mod spend;
pub mod together;
pub mod token;
pub mod transaction;
pub mod transcript;
pub mod write;

use tenure_core::store::Store;

/// A case's name and function.
pub type Case = (&'static str, fn(&mut dyn Store));

/// All cases, for a custom runner.
pub const CASES: &[Case] = crate::conformance!(@list);

/// Makes a test of every case, run by the named function.
///
/// The cases are listed only here; a test compares the list with the files.
#[macro_export]
macro_rules! conformance {
    (@list) => { $crate::conformance! { @cases list () } };
    (@cases $what:ident ($($run:path)?)) => {
        $crate::conformance! { @$what ($($run)?)
            transaction::a_dropped_transaction_leaves_nothing
            transaction::a_commit_lasts
            transaction::everything_can_be_locked_in_order_before_it_exists_and_again
            transaction::a_failed_insert_leaves_the_transaction_usable
            transaction::a_beat_commits_too
            transaction::the_clock_is_the_stores
            session::what_is_inserted_reads_back
            session::a_bare_session_reads_back
            session::a_taken_id_or_handle_is_a_conflict
            session::an_update_compares_the_revision_and_raises_it
            session::an_update_replaces_every_field
            session::an_update_beside_the_indexes_replaces_the_rest
            session::a_touch_needs_the_open_session_and_its_life
            session::a_touch_never_shortens_a_lease
            session::a_touch_leaves_the_revision_alone
            session::a_touch_keeps_what_it_does_not_name
            session::a_branch_that_was_seen_is_stored_with_its_time
            session::the_last_two_requests_to_the_model_are_stored
            session::when_messages_started_turns_is_stored
            session::those_that_were_cut_off_are_listed_until_they_are_dismissed
            session::sessions_are_listed_by_what_they_do
            session::the_newest_are_listed_first
            session::closed_ones_are_listed_on_request
            session::listing_by_directory_takes_it_and_what_is_below
            session::listing_by_repository_and_by_parent
            session::a_limit_counts_after_the_filter
            session::a_part_names_a_session
            session::a_part_at_the_beginning_goes_before_one_inside
            session::open_matches_come_first_and_the_limit_holds
            session::matching_is_byte_for_byte
            process::two_open_sessions_never_share_a_process
            process::hosted_sessions_share_a_process
            process::sessions_are_found_by_the_daemon_of_their_conversation
            process::a_process_hosts_a_conversation_once
            process::a_closed_session_gives_its_process_free
            process::a_place_is_all_of_its_coordinates
            process::sessions_are_found_by_place_whatever_the_start
            process::many_places_are_looked_at_together
            process::lives_of_a_session_are_listed_up_to_one_the_newest_first
            process::lives_stay_for_ever_the_newest_first
            process::a_life_is_recorded_once
            process::large_kernel_numbers_read_back
            native::a_conversation_has_one_owner
            native::a_conversation_is_taken_from_the_owner_that_was_seen
            native::visitors_are_listed_once_and_never_the_owner
            native::agents_do_not_share_conversations
            native::the_lineage_is_the_oldest_first
            claim::a_key_that_was_never_granted_has_no_row
            claim::a_grant_reads_back_with_every_field
            claim::an_old_epoch_is_a_conflict
            claim::a_second_open_hold_is_a_conflict
            claim::only_an_open_hold_can_be_ended
            claim::all_holds_of_a_session_end_in_one_go
            claim::keys_are_ordered_by_their_bytes
            claim::large_epochs_keep_their_order
            claim::the_newest_hold_of_a_session_is_its_own
            claim::holds_of_a_session_are_in_order_of_the_keys
            claim::a_path_is_found_in_every_repository_that_a_session_held_it_in
            claim::what_several_sessions_lost_is_found_in_one_look
            claim::listing_shows_what_is_held
            claim::listing_shows_what_is_free_on_request
            claim::what_a_session_holds_goes_with_it_to_a_later_life
            claim::the_homes_of_open_holds_are_listed_each_once
            claim::listing_by_session_and_by_prefix
            claim::the_timeline_has_what_is_held_and_then_what_ended_last
            claim::the_timeline_goes_on_behind_any_of_its_holds
            notice::messages_that_started_turns_stay_pending
            notice::notices_are_kept_until_they_are_told
            notice::losses_come_first_and_what_does_not_fit_is_counted
            notice::a_notice_whose_delivery_was_not_committed_comes_again
            notice::a_model_channel_is_of_one_life
            count::what_a_filter_fits_is_counted_whatever_its_limit
            count::the_first_event_of_a_list_is_found_without_the_list
            event::events_are_read_in_the_order_of_the_log
            event::an_event_reads_back_with_every_field
            event::a_cursor_reads_on_from_its_place
            event::events_are_filtered_by_key_session_and_time
            event::the_newest_are_kept_when_there_is_a_limit
            event::old_events_are_removed_from_the_start_and_the_newest_stays
            metadata::values_are_set_replaced_and_removed
            metadata::doubts_are_taken_once
            line::waiters_stand_in_order_of_arrival_for_all_their_keys
            line::a_waiter_that_leaves_is_in_no_line_and_its_ticket_is_not_used_again
            line::a_turn_is_noted_for_an_epoch_in_the_place_of_the_one_that_was_seen
            transcript::a_path_is_one_sessions
            transcript::a_conversations_new_path_takes_the_place_of_the_old
            transcript::what_is_set_aside_is_kept_and_no_longer_used
            mission::a_mission_is_made_once
            mission::a_participant_reads_back_with_every_field
            mission::a_participant_is_changed_by_comparing_its_revision
            mission::a_session_and_a_participant_id_are_in_a_mission_once
            mission::rows_of_several_sessions_are_found_in_one_look
            mission::pointers_are_set_moved_and_forgotten
            mission::a_mirrors_failure_is_kept_until_it_is_cleared
            conversation::a_record_reads_back_with_every_field
            conversation::a_record_is_changed_by_comparing_its_revision
            conversation::a_native_id_is_in_one_conversation_of_an_agent
            conversation::listing_takes_exactly_that_item
            conversation::a_list_goes_on_after_its_last_row
            conversation::the_history_has_every_id_and_one_without_an_end
            conversation::roles_have_records_of_their_own
            conversation::links_and_closings_of_items_read_back
            run::a_run_reads_back_with_every_field
            run::a_run_is_changed_by_comparing_its_revision
            run::a_conversation_has_one_open_run
            run::a_directory_has_one_open_run_unless_it_is_shared
            run::the_newest_runs_are_listed_first_and_a_page_goes_on
            run::runs_are_found_by_a_part_of_their_id
            run::what_the_newest_run_left_of_a_conversation_is_known
            run::runs_that_were_cut_off_are_found_by_directory_and_by_conversation
            run::an_agent_is_parked_on_one_host
            job::a_job_reads_back_and_an_update_replaces_every_field
            job::one_job_of_a_conversation_is_taken_at_a_time
            job::the_oldest_waiting_job_of_each_free_conversation_may_be_taken
            job::jobs_of_other_repositories_are_found_behind_those_of_full_ones
            job::jobs_whose_conversation_is_on_another_host_are_left_out
            job::jobs_are_listed_by_item_and_counted
            job::repositories_are_known_by_their_ids
            job::events_stay_in_their_order_and_breakers_are_kept
            job::only_a_delivery_that_led_to_something_has_duplicates
            job::the_same_body_is_a_duplicate_for_seven_days
            job::an_undecided_delivery_stays_with_its_body
            job::old_deliveries_and_large_bodies_are_forgotten
            job::jobs_that_are_over_are_forgotten_unless_something_names_them
            job::what_was_decided_about_a_delivery_is_replaced
            reply::a_reply_reads_back_and_an_update_replaces_what_changes
            reply::one_comment_of_a_kind_is_written_about_a_job
            reply::open_replies_of_a_forge_come_in_their_order
            reply::a_comment_about_a_job_that_waits_hides_no_other
            reply::replies_are_forgotten_when_they_were_done_or_left_long_ago
            reply::a_duty_passes_only_from_the_holder_that_was_seen
            reply::undecided_deliveries_keep_their_order_and_are_removed_once
            spend::what_was_used_is_stored_by_day_and_item
            spend::what_was_used_before_a_day_is_left_out
            spend::what_may_have_used_something_is_found
            token::tokens_are_of_their_owner
            retention::closed_sessions_are_listed_in_steps_the_one_that_closed_first_comes_first
            retention::each_need_keeps_its_session_and_nothing_keeps_the_others
            retention::an_event_needs_its_session_until_it_is_old_unless_it_is_the_newest
            retention::a_session_goes_with_all_that_is_its_own_and_epochs_stay
            retention::what_is_removed_twice_is_gone_once
            retention::keepers_go_when_they_were_long_silent_and_no_open_session_names_them
            write::a_later_write_of_a_file_replaces_the_time
            write::what_was_written_below_a_directory_is_found
            write::what_a_session_wrote_is_listed_the_newest_first
            write::what_several_sessions_wrote_lately_is_found_in_one_look
            write::what_is_old_is_forgotten_of_that_session_alone
            write::a_stamp_stays_until_the_next_write
            write::a_worktree_is_kept_as_it_was_last
        }
    };
    (@list ($($run:path)?) $($module:ident :: $case:ident)*) => {
        &[$((
            concat!(stringify!($module), "::", stringify!($case)),
            $crate::conformance::$module::$case,
        )),*]
    };
    (@tests ($run:path) $($module:ident :: $case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $run($crate::conformance::$module::$case);
            }
        )*
    };
    (@ignored ($run:path) $($module:ident :: $case:ident)*) => {
        $(
            #[test]
            #[ignore = "needs a server: scripts/test --stage postgres"]
            fn $case() {
                $run($crate::conformance::$module::$case);
            }
        )*
    };
    ($run:path) => { $crate::conformance! { @cases tests ($run) } };
    // The same for a backend that needs a server, which not every test run has.
    (ignored $run:path) => { $crate::conformance! { @cases ignored ($run) } };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_in_the_files_is_in_the_list() {
        let files = [
            ("transaction", include_str!("transaction.rs")),
            ("session", include_str!("session.rs")),
            ("process", include_str!("process.rs")),
            ("native", include_str!("native.rs")),
            ("claim", include_str!("claim.rs")),
            ("notice", include_str!("notice.rs")),
            ("event", include_str!("event.rs")),
            ("metadata", include_str!("metadata.rs")),
            ("line", include_str!("line.rs")),
            ("transcript", include_str!("transcript.rs")),
            ("mission", include_str!("mission.rs")),
            ("spend", include_str!("spend.rs")),
            ("token", include_str!("token.rs")),
            ("write", include_str!("write.rs")),
            ("conversation", include_str!("conversation.rs")),
            ("run", include_str!("run.rs")),
            ("retention", include_str!("retention.rs")),
        ];
        for (module, text) in files {
            let written = text.lines().filter_map(|line| {
                let name = line.strip_prefix("pub fn ")?.split('(').next()?;
                Some(format!("{module}::{name}"))
            });
            for name in written {
                assert!(
                    CASES.iter().any(|(listed, _)| *listed == name),
                    "{name} is not in the list"
                );
            }
        }
    }
}

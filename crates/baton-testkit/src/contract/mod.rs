//! The store contract: the guarantees of every database behind `baton_store::Store`, one check for each.
//!
//! A check is a function on a [`TestStore`] with its own empty database. [`store_contract!`] lists all checks and
//! creates a test of each for a database, so that a failure names both. Guarantees of a single engine, such as file
//! modes, are tested with that engine.
//!
//! [`store_contract!`]: crate::store_contract
#![expect(clippy::unwrap_used, clippy::panic, reason = "a check fails by panicking")]

pub mod candidate;
pub mod checkpoint;
pub mod checkpoint_key;
pub mod concurrency;
pub mod file_version;
pub mod fixture;
mod gate;
pub mod handoff;
pub mod id;
pub mod idempotency;
pub mod mark;
pub mod migration;
pub mod note;
pub mod observation;
pub mod queue;
pub mod queue_list;
pub mod request;
pub mod schedule;
pub mod session;
pub mod session_list;
pub mod shown_item;
mod store;
pub mod summary;
pub mod task;
pub mod token;
pub mod transaction;
pub mod turn;
pub mod unmerged_branch;
pub mod usage;
pub mod vector;
pub mod watch;
pub mod workflow;

pub use store::{Database, TestPlace, TestStore, read, run, try_write, write};

/// Creates a test of every check for one [`Database`], in a module for each entity.
#[macro_export]
macro_rules! store_contract {
    ($database:ident) => {
        $crate::store_contract! { $database:
            session {
                context_is_given_once,
                reads_back_every_field,
                reads_back_every_status,
                times_out_of_range_are_corruption,
                finds_the_first_session_of_a_chat,
                finds_the_latest_session_of_a_tuple,
                finds_nothing_under_an_unknown_id,
                update_writes_only_what_may_change,
                update_clears_absent_fields,
                heartbeats_only_move_forward,
                tuples_are_matched_exactly,
                tuple_has_one_active_session,
                corrected_repository_is_found_by_the_reported_one,
                ids_are_unique,
            }
            session_list {
                each_condition_filters,
                conditions_combine,
                pages_neither_skip_nor_repeat,
                every_status_is_listed,
                ventures_are_listed_once,
                sessions_and_turns_are_counted_by_day,
                silent_sessions_are_listed_longest_silent_first,
            }
            handoff {
                reads_back_every_field,
                finds_nothing_under_an_unknown_id,
                session_has_one_ending_handoff,
                handoffs_are_acknowledged_once,
                withdrawn_handoffs_are_not_listed,
                update_changes_only_the_content,
                lists_filter_and_page,
                pages_neither_skip_nor_repeat,
            }
            id {
                ids_are_found_by_their_beginning,
                archived_checkpoints_are_not_found,
            }
            shown_item {
                items_are_shown_once_per_session,
            }
            candidate {
                newest_matches_are_selected,
            }
            vector {
                nearest_documents_are_filtered,
                all_vectors_are_compared,
                vectors_follow_their_documents,
                vectors_of_another_model_are_replaced,
            }
            unmerged_branch {
                reports_replace_the_branches_of_a_repository,
            }
            file_version {
                versions_are_found_by_time,
                versions_are_forgotten,
            }
            mark {
                marks_are_stored_replaced_and_deleted,
                marks_are_filtered,
                lists_omit_hidden_items,
            }
            note {
                notes_are_stored_corrected_and_deleted,
                notes_are_filtered_and_paged,
            }
            idempotency {
                recorded_responses_are_returned,
                scopes_are_separate,
                expired_keys_are_new,
                expired_keys_are_deleted_in_batches,
                response_is_kept_when_its_effect_is_rolled_back,
            }
            request {
                reads_back_every_field,
                old_requests_are_deleted_in_batches,
                surplus_requests_are_deleted_in_batches,
                requests_are_found_by_every_filter,
                requests_take_missing_names_from_their_session,
                pages_of_requests_continue_where_the_last_one_ended,
            }
            queue {
                claim_returns_each_item_once,
                items_are_not_claimed_before_their_time,
                claims_return_the_oldest_items_up_to_the_limit,
                expired_lease_invalidates_the_old_claim,
                finished_items_stay_finished,
                rolled_back_claim_releases_the_item,
                tool_use_reported_twice_is_queued_once,
                released_items_become_due_again,
                only_the_latest_claim_releases_or_fails_an_item,
                failed_items_keep_their_raw_output,
                finished_items_keep_their_raw_output,
            }
            queue_list {
                each_status_is_counted,
                queue_wakes_for_the_first_item_or_lease,
                lists_page_by_id,
                open_items_of_a_session_are_listed,
                failed_items_are_retried,
                settled_items_are_purged_in_batches,
            }
            observation {
                reads_back_every_field,
                finds_nothing_under_an_unknown_id,
                item_has_one_observation,
                ids_are_unique,
                each_condition_filters,
                conditions_combine,
                pages_neither_skip_nor_repeat,
                uncovered_observations_are_listed_in_order,
                observations_are_counted_since_a_time,
            }
            summary {
                reads_back_every_field,
                requested_summary_does_not_exist_yet,
                claims_last_for_their_lease,
                longest_due_summaries_come_first,
                claimed_summaries_can_be_postponed,
                summary_requested_again_meanwhile_stays_due,
                summary_stored_without_a_claim_is_no_longer_due,
                overtaken_summary_is_not_stored,
                summaries_are_renewed_when_failed_items_are_retried,
            }
            usage {
                usage_adds_up_by_day_and_model,
                session_usage_adds_up,
            }
            watch {
                changes_of_other_stores_are_reported,
                dropped_watch_stops,
            }
            token {
                reads_back_every_field,
                lists_newest_first,
                revokes_once,
                ids_are_unique,
            }
            task {
                reads_back_every_field,
                newer_record_is_kept,
                lists_filter_and_order,
                open_tasks_are_listed_without_finished_ones,
                only_the_deleted_task_is_gone,
            }
            schedule {
                job_can_be_claimed_when_due,
            }
            turn {
                turns_are_started_ended_and_listed,
                turns_of_sessions_are_found_together,
                repeated_end_keeps_the_closing_message,
                open_turn_becomes_unfinished,
                compact_summaries_belong_to_the_latest_turn,
                turn_is_found_by_time,
                turns_are_completed_from_transcripts,
            }
            workflow {
                reads_back_every_field,
                update_writes_only_what_may_change,
                ids_are_unique_in_a_venture,
                lists_filter_and_order,
                windows_neither_skip_nor_repeat,
                recent_workflow_is_found_by_name_and_repository,
                last_access_only_moves_forward,
                stored_bytes_of_all_ventures_are_summed,
                unused_workflows_are_listed_longest_unused_first,
            }
            checkpoint {
                reads_back_every_field,
                places_are_unique_in_a_workflow,
                ids_are_unique,
                lists_come_latest_first,
                latest_is_the_newest_active_checkpoint,
                last_place_is_the_greatest,
                chain_is_in_order,
                oldest_unnamed_checkpoints_are_droppable,
                positions_are_deleted,
                archived_checkpoints_stay_archived,
                blobs_without_a_checkpoint_are_orphans,
            }
            checkpoint_key {
                checkpoints_are_counted_per_key,
                frames_of_other_keys_are_listed_in_batches,
                frames_are_replaced,
                replaced_frames_count_in_their_workflow,
            }
            transaction {
                rejected_work_is_rolled_back,
                panicking_work_is_rolled_back,
                ok_after_a_failed_statement_means_committed,
                nested_part_is_rolled_back_alone,
                nested_part_is_rolled_back_with_its_transaction,
                writes_in_a_read_are_rolled_back,
                read_sees_one_snapshot,
                acknowledged_writes_are_visible_to_others,
                closing_finishes_waiting_work,
            }
            concurrency {
                no_item_is_claimed_twice,
                simultaneous_starts_share_one_session,
                concurrent_requests_with_one_key_have_one_effect,
                turn_is_taken_by_one_caller,
                concurrent_heartbeats_keep_the_latest,
                locked_changes_are_not_lost,
                concurrent_saves_get_distinct_places,
                no_write_is_lost,
                failing_work_does_not_affect_its_batch,
            }
            migration {
                new_database_is_current,
                reopening_changes_nothing,
                newer_schema_is_rejected_and_unchanged,
                older_schema_is_migrated,
                older_request_records_are_kept,
                new_database_can_be_opened_concurrently,
                older_database_can_be_opened_concurrently,
                open_current_rejects_an_older_schema,
                open_current_creates_a_new_database,
            }
        }
    };
    ($database:ident: $($entity:ident { $($check:ident,)+ })+) => {
        $(
            mod $entity {
                use $crate::contract::{Database, $entity, run};

                $(
                    #[test]
                    fn $check() {
                        run(Database::$database, $entity::$check);
                    }
                )+
            }
        )+
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// A check that is missing in the list would never run.
    #[test]
    fn every_check_is_listed() {
        let list = include_str!("mod.rs");
        for (entity, source) in [
            ("session", include_str!("session.rs")),
            ("session_list", include_str!("session_list.rs")),
            ("handoff", include_str!("handoff.rs")),
            ("id", include_str!("id.rs")),
            ("file_version", include_str!("file_version.rs")),
            ("shown_item", include_str!("shown_item.rs")),
            ("unmerged_branch", include_str!("unmerged_branch.rs")),
            ("mark", include_str!("mark.rs")),
            ("note", include_str!("note.rs")),
            ("idempotency", include_str!("idempotency.rs")),
            ("request", include_str!("request.rs")),
            ("queue", include_str!("queue.rs")),
            ("queue_list", include_str!("queue_list.rs")),
            ("observation", include_str!("observation.rs")),
            ("summary", include_str!("summary.rs")),
            ("usage", include_str!("usage.rs")),
            ("watch", include_str!("watch.rs")),
            ("task", include_str!("task.rs")),
            ("token", include_str!("token.rs")),
            ("schedule", include_str!("schedule.rs")),
            ("turn", include_str!("turn.rs")),
            ("workflow", include_str!("workflow.rs")),
            ("candidate", include_str!("candidate.rs")),
            ("checkpoint", include_str!("checkpoint.rs")),
            ("checkpoint_key", include_str!("checkpoint_key.rs")),
            ("transaction", include_str!("transaction.rs")),
            ("concurrency", include_str!("concurrency.rs")),
            ("migration", include_str!("migration.rs")),
        ] {
            let written: BTreeSet<&str> = source
                .lines()
                .filter_map(|line| line.strip_prefix("pub fn ")?.strip_suffix("(store: &TestStore) {"))
                .collect();
            let (_, listed) = list.split_once(&format!(" {entity} {{\n")).unwrap();
            let (listed, _) = listed.split_once('}').unwrap();
            let listed: BTreeSet<&str> =
                listed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
            assert_eq!(written, listed, "{entity}");
        }
    }
}

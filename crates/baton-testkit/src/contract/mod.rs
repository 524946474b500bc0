//! The store contract: what every database behind `baton_store::Store` must do, each promise one check.
//!
//! A check is a plain function on a [`TestStore`] with an empty database of its own. [`store_contract!`] lists them all
//! and makes one test of each for a database, so that a failure names both. What one engine alone promises (files and
//! their modes, say) is not here but beside that engine's tests.
//!
//! [`store_contract!`]: crate::store_contract
#![expect(clippy::unwrap_used, clippy::panic, reason = "a check fails by panicking")]

pub mod checkpoint;
pub mod checkpoint_key;
pub mod concurrency;
pub mod fixture;
mod gate;
pub mod handoff;
pub mod idempotency;
pub mod migration;
pub mod observation;
pub mod queue;
pub mod queue_list;
pub mod request;
pub mod session;
pub mod session_list;
mod store;
pub mod summary;
pub mod task;
pub mod token;
pub mod transaction;
pub mod turn;
pub mod usage;
pub mod watch;
pub mod workflow;

pub use store::{Database, TestPlace, TestStore, read, run, try_write, write};

/// Makes a test of every check for one [`Database`], in a module for each entity.
#[macro_export]
macro_rules! store_contract {
    ($database:ident) => {
        $crate::store_contract! { $database:
            session {
                reads_back_every_field,
                reads_back_every_status,
                finds_the_latest_session_of_a_tuple,
                finds_nothing_under_an_unknown_id,
                update_writes_only_what_may_change,
                update_clears_what_is_gone,
                heartbeats_only_move_forward,
                a_tuple_is_matched_exactly,
                a_tuple_has_one_active_session,
                an_id_is_given_once,
            }
            session_list {
                each_condition_filters,
                conditions_combine,
                pages_neither_skip_nor_repeat,
                the_silent_come_longest_silent_first,
            }
            handoff {
                reads_back_every_field,
                finds_nothing_under_an_unknown_id,
                a_session_ends_with_one_handoff,
                a_handoff_is_acknowledged_once,
                lists_filter_and_page,
                pages_neither_skip_nor_repeat,
            }
            idempotency {
                answers_what_was_recorded,
                scopes_are_separate,
                an_expired_key_is_new,
                expired_keys_are_forgotten_in_portions,
                an_answer_outlives_its_undone_effect,
            }
            request {
                reads_back_every_field,
                old_requests_are_deleted_in_portions,
                surplus_requests_are_deleted_in_portions,
                requests_are_found_by_every_filter,
                requests_take_missing_names_from_their_session,
                pages_of_requests_continue_where_the_last_one_ended,
            }
            queue {
                a_claim_gives_the_item_once,
                nothing_runs_before_its_time,
                the_oldest_come_first_up_to_the_limit,
                an_expired_lease_fences_the_old_claim_off,
                a_finished_item_stays_finished,
                an_undone_claim_leaves_the_item,
                a_use_that_is_reported_twice_is_queued_once,
                a_released_item_waits_again,
                only_the_latest_claim_gives_back_or_up,
                a_failed_item_keeps_its_raw_output,
                a_finished_item_keeps_its_raw_output,
            }
            queue_list {
                each_status_is_counted,
                it_wakes_for_the_first_item_or_lease,
                lists_page_by_number,
                a_session_has_its_open_items,
                what_was_given_up_is_tried_again,
                settled_items_are_dropped_in_portions,
            }
            observation {
                reads_back_every_field,
                finds_nothing_under_an_unknown_id,
                an_item_has_one_observation,
                an_id_is_given_once,
                each_condition_filters,
                conditions_combine,
                pages_neither_skip_nor_repeat,
                what_no_summary_covers_comes_in_order,
                they_are_counted_since_a_moment,
            }
            summary {
                reads_back_every_field,
                one_that_is_asked_for_is_not_there_yet,
                a_claim_lasts_for_its_lease,
                the_longest_due_come_first,
                a_claimed_one_is_put_off,
                one_that_is_asked_for_again_meanwhile_stays_due,
                one_that_is_made_at_once_is_no_longer_due,
                one_that_was_overtaken_is_not_kept,
                those_made_without_what_is_retried_are_renewed,
                prompts_come_newest_first,
            }
            usage {
                it_adds_up_by_day_and_model,
            }
            watch {
                changes_of_others_are_heard,
                a_watch_ends,
            }
            token {
                reads_back_every_field,
                lists_newest_first,
                revokes_once,
                an_id_is_given_once,
            }
            task {
                reads_back_every_field,
                the_younger_record_stays,
                lists_filter_and_order,
                a_forgotten_task_is_gone_alone,
            }
            turn {
                a_job_is_taken_on_when_it_is_due,
            }
            workflow {
                reads_back_every_field,
                update_writes_only_what_may_change,
                an_id_is_given_once_in_a_venture,
                lists_filter_and_order,
                windows_neither_skip_nor_repeat,
                a_name_is_gone_on_with_in_its_repository,
                the_last_use_only_moves_forward,
                the_bytes_of_all_ventures_add_up,
                the_unused_come_longest_unused_first,
            }
            checkpoint {
                reads_back_every_field,
                a_place_is_given_once,
                an_id_is_given_once,
                lists_come_latest_first,
                the_latest_can_be_loaded,
                the_last_place_is_the_greatest,
                a_chain_comes_in_its_order,
                the_oldest_unnamed_are_droppable,
                positions_are_removed_for_good,
                what_was_dropped_stays_dropped,
                blobs_without_a_checkpoint_are_orphans,
            }
            checkpoint_key {
                keys_are_counted,
                frames_of_other_keys_come_in_portions,
                a_frame_is_replaced,
            }
            transaction {
                refused_work_leaves_nothing,
                broken_work_leaves_nothing,
                an_acknowledgement_after_a_failed_statement_is_true,
                a_nested_part_is_undone_alone,
                a_kept_part_goes_with_its_whole,
                reading_keeps_nothing,
                a_read_sees_one_state,
                an_acknowledged_write_is_visible_to_others,
                closing_finishes_waiting_work,
            }
            concurrency {
                no_item_is_claimed_twice,
                simultaneous_starts_share_one_session,
                a_key_has_one_effect,
                a_turn_is_one_callers,
                heartbeats_end_at_the_latest,
                locked_changes_are_not_lost,
                no_place_is_given_twice,
                no_write_is_lost,
                a_failing_piece_does_not_disturb_its_neighbours,
            }
            migration {
                a_fresh_database_is_current,
                reopening_changes_nothing,
                a_newer_schema_is_refused_and_left_alone,
                an_older_schema_is_brought_on,
                older_request_records_are_kept,
                many_can_open_a_fresh_database_at_once,
                many_can_open_an_older_database_at_once,
                opening_without_migrating_refuses_an_older_schema,
                opening_without_migrating_creates_a_fresh_database,
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

    /// A check that is missing in the list would never run, and nothing else would tell.
    #[test]
    fn every_check_is_listed() {
        let list = include_str!("mod.rs");
        for (entity, source) in [
            ("session", include_str!("session.rs")),
            ("session_list", include_str!("session_list.rs")),
            ("handoff", include_str!("handoff.rs")),
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
            ("turn", include_str!("turn.rs")),
            ("workflow", include_str!("workflow.rs")),
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

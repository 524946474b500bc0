//! Numbered schema changes: append-only, the same numbers and names for both databases.

/// One schema change.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// The number; migrations are numbered from 1 without gaps.
    pub version: i64,
    /// The name, equal to the file name without extension.
    pub name: &'static str,
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

macro_rules! migration {
    ($version:literal, $file:literal) => {
        Migration {
            version: $version,
            name: $file,
            sqlite: include_str!(concat!("../migrations/sqlite/", $file, ".sql")),
            postgres: include_str!(concat!("../migrations/postgres/", $file, ".sql")),
        }
    };
}

pub(crate) const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001_sessions"),
    migration!(2, "0002_handoffs"),
    migration!(3, "0003_idempotency"),
    migration!(4, "0004_request_log"),
    migration!(5, "0005_queue"),
    migration!(6, "0006_turns"),
    migration!(7, "0007_tokens"),
    migration!(8, "0008_checkpoints"),
    migration!(9, "0009_session_indexes"),
    migration!(10, "0010_observations"),
    migration!(11, "0011_tasks"),
    migration!(12, "0012_summed_up"),
    migration!(13, "0013_listing_indexes"),
    migration!(14, "0014_requests"),
    migration!(15, "0015_request_sessions"),
    migration!(16, "0016_chat_turns"),
    migration!(17, "0017_handoff_content"),
    migration!(18, "0018_session_lookups"),
    migration!(19, "0019_recall"),
    migration!(20, "0020_notes"),
    migration!(21, "0021_compact_summaries"),
    migration!(22, "0022_session_usage"),
    migration!(23, "0023_turn_transcripts"),
    migration!(24, "0024_item_marks"),
    migration!(25, "0025_file_versions"),
    migration!(26, "0026_shown_items"),
    migration!(27, "0027_unmerged_branches"),
    migration!(28, "0028_context_given"),
    migration!(29, "0029_handoff_receivers"),
    migration!(30, "0030_recall_vectors"),
];

/// The schema version that this binary reads and writes.
pub const LATEST_VERSION: i64 = MIGRATIONS.len() as i64;

impl Migration {
    /// Returns the migrations that lead from one version to another.
    pub(crate) fn between(from: i64, to: i64) -> impl Iterator<Item = &'static Self> {
        MIGRATIONS.iter().filter(move |migration| from < migration.version && migration.version <= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_no_gaps_and_match_the_file_names() {
        for (migration, number) in MIGRATIONS.iter().zip(1..) {
            assert_eq!(migration.version, number);
            assert!(migration.name.starts_with(&format!("{number:04}_")), "{}", migration.name);
        }
    }
}

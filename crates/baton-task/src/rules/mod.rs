//! Rules of task contexts: the frozen part, the order of roles, and drift of the working tree.
//!
//! This module does not read files or run git: texts, trees and `now` are arguments. Names of tasks and their entry in
//! the store are in `baton_core::task`.

mod capture;
mod citation;
mod context;
mod coordination;
mod document;
mod drift;
mod export;
mod glob;
mod normalize;
mod role_state;
mod scope;
mod section;
mod snapshot;
mod status;
mod status_report;
mod task_file;
mod task_file_reader;
mod ttl;

pub use baton_core::task::{ChangeStatus, DiffStat, Head, Submodule, TreeChange, TreeDiff, TreeState};
pub use capture::{Capture, Captured, LargeText, QaDefaults, SummaryLine, capture, line_of, qa_commands};
pub use citation::{Citation, CitationRule, RequestedSection, cite, requested_sections, stale_citations};
pub(crate) use context::unwritable;
pub use context::{
    AcceptedSecret, Audit, CONTEXT_VERSION, Evidence, ForcedSecret, GitBase, Immutable, PastRevision,
    Revision, RoleNote, RoleNoteKind, Source, TaskContext, TaskSnapshot, ValidationBaseline, canonical_line,
};
pub use coordination::Acquisition;
pub use drift::{
    Comparison, Difference, DifferenceKind, DriftEvent, DriftLog, Resolution, SetAside, TreePoint, compare,
};
pub use export::{
    MANIFEST_FILE, Manifest, SERIALIZER, SERIALIZER_VERSION, derive, export_edges, export_file, role_export,
};
pub use glob::{Glob, GlobError};
pub use normalize::{Layout, NORMALIZER_VERSION, normalize_diff, normalize_multiline, unix_line_ends};
pub use role_state::{QaCommand, QaResults, RoleState, RoleStatus, StartSnapshot};
pub use scope::{
    ScopeMacros, ScopeMatcher, ScopePatterns, check_repo_path, expand, scope_hash, scope_patterns,
};
pub use section::{Section, sections, slug};
pub use snapshot::{
    Artifact, Encoding, FileChanged, FileMetadata, LARGE_DIFF_BYTES, SnapshotKind, SnapshotRef,
    WorktreeSnapshot, file_metadata, files_changed,
};
pub use task_file::{IN_PROGRESS, Priority, StandardRef, TaskFile, check_pipeline};
pub use task_file_reader::{Node, read_task_file};
pub use ttl::parse_ttl;

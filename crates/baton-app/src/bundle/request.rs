//! For whom and for what a bundle is built.

use baton_core::{Agent, Repo, Session, Track, Venture};

use super::layout::BundleLimits;

/// What a bundle is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BundleScope {
    /// The repository, for a new chat.
    Repository,
    /// The chat itself, after its context was compacted.
    Chat,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct BundleRequest<'a> {
    pub(crate) venture: &'a Venture,
    pub(crate) repo: &'a Repo,
    pub(crate) track: Option<Track>,
    /// Session that receives the bundle.
    pub(crate) session: Option<&'a Session>,
    /// Live session whose work is included as if it had been handed over.
    pub(crate) unrecorded: Option<&'a Session>,
    pub(crate) agent: Option<&'a Agent>,
    pub(crate) branch: Option<&'a str>,
    pub(crate) prompt: Option<&'a str>,
    pub(crate) scope: BundleScope,
    pub(crate) limits: BundleLimits,
}

//! `memory.list`: items that are rejected, superseded or pinned.

use baton_core::recall::{ItemKind, MarkKind};
use baton_core::{Repo, Venture};
use baton_store::MarkFilter;

use crate::page::limit_of;
use crate::prelude::*;
use crate::recall::{Loader, MarkView, kind_of};

/// Filters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListMarks {
    /// Filter by venture. Defaults to all ventures you have access to.
    pub venture: Option<Venture>,
    /// Filter by repository, as owner/name.
    pub repo: Option<Repo>,
    /// Filter by mark: `rejected`, `superseded` or `pinned`.
    pub mark: Option<MarkKind>,
    /// Maximum number of items, 1 to 200. Defaults to 50.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
}

/// Marked items, last marked first.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListMarksOutput {
    /// Marked items, newest mark first.
    pub items: Vec<MarkedItem>,
}

/// A marked item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MarkedItem {
    /// Id of the item, for example `obs_01J…` or `note_01J…`.
    pub id: String,
    /// Kind of the item, for example `observation`, `handoff` or `note`.
    pub kind: ItemKind,
    /// Repository as owner/name, for example acme/webshop, or null.
    pub repo: Option<Repo>,
    /// Title of the item, for example "Run cargo test: 14 passed".
    pub title: String,
    /// Mark: `rejected`, `superseded` or `pinned`.
    pub mark: MarkView,
}

impl Operation<OnStore> for ListMarks {
    const NAME: &'static str = "memory.list";
    const SUMMARY: &'static str = "List items that are rejected, superseded or pinned, last marked first.";
    const EFFECT: Effect = Effect::Read;
    type Output = ListMarksOutput;
    params_and!(u32, |params| limit_of(params.limit, 50));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, limit) = input;
        let filter = MarkFilter {
            ventures: context.readable_ventures(params.venture.as_ref())?,
            repo: params.repo.clone(),
            kind: params.mark,
        };
        let mut loader = Loader::default();
        let mut items = Vec::new();
        for mark in tx.marks(&filter, *limit)? {
            // Retention deletes items without their marks.
            let Some(item) = loader.load_intact(tx, kind_of(&mark.item), &mark.item)? else { continue };
            items.push(MarkedItem {
                id: item.id,
                kind: item.kind,
                repo: item.repo,
                title: item.title,
                mark: mark.into(),
            });
        }
        Ok(ListMarksOutput { items })
    }
}

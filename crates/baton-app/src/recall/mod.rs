//! Recall: search over everything that was recorded, items around an item, and full items.
//!
//! Owns which items are indexed and when. Ranking is in `baton_core::recall`, the index in `baton-store`.

mod embedding;
mod find;
mod get;
mod hidden;
mod history;
mod indexing;
mod item;
mod scope;
mod search;
mod timeline;

pub use embedding::ItemToEmbed;
pub(crate) use embedding::{items_to_embed, keep_vectors};
pub use find::{Find, Found, find};
pub(crate) use find::{RankedDocument, rank_documents};
pub use get::{GetItems, GetItemsOutput, ItemView, MarkView};
pub(crate) use get::{kind_of, no_item};
pub(crate) use hidden::hidden_items;
pub use history::{CommandHistory, CommandRun, FileHistory, FileSession, FileTurn};
pub(crate) use history::{HistoryScope, file_history, files_changed_in_session, files_changed_since};
pub use indexing::{check_index, index_all, index_some, rebuild_index};
pub(crate) use indexing::{index_before_reading, index_stored};
pub use item::Item;
pub(crate) use item::Loader;
pub use search::{Search, SearchOutput, SearchResult};
pub use timeline::{Timeline, TimelineEntry, TimelineOutput};

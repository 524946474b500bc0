//! The table of pages, one line each, and the operations that their forms may call.

mod activity;
mod agents;
mod handoffs;
mod item;
mod memory;
mod next_chat;
mod now;
mod requests;
mod session;
mod sessions;
mod task;
mod tasks;
mod worker;
mod workflows;

use std::future::Future;
use std::pin::Pin;

use maud::Markup;

use crate::visitor::{Problem, Query, Visitor};

#[derive(Debug)]
pub struct PageContent {
    pub title: String,
    /// Content of `<main>`.
    pub body: Markup,
    /// URL of the same data as JSON.
    pub json: String,
    /// Names and URLs of other data of the page as JSON.
    pub other_json: Vec<(&'static str, String)>,
    /// True if the page updates itself: the part with the id `live` is loaded again after each change.
    pub is_live: bool,
    /// True if forms of the page replace a part of it.
    pub has_swaps: bool,
    /// True if the page contains plots.
    pub has_plot: bool,
}

impl PageContent {
    /// Creates a page that does not update itself.
    pub(crate) fn new(title: impl Into<String>, json: impl Into<String>, body: Markup) -> Self {
        Self {
            title: title.into(),
            body,
            json: json.into(),
            other_json: Vec::new(),
            is_live: false,
            has_swaps: false,
            has_plot: false,
        }
    }

    /// Makes the page update itself.
    pub(crate) fn live(self) -> Self {
        Self { is_live: true, ..self }
    }
}

type Rendering<'a> = Pin<Box<dyn Future<Output = Result<PageContent, Problem>> + Send + 'a>>;

#[derive(Clone, Copy)]
pub struct Page {
    /// Path; `{name}` is the parameter of that name.
    pub path: &'static str,
    /// Name in the navigation, or none for pages below others.
    pub name: Option<&'static str>,
    /// Key that opens the page after `g`.
    pub key: Option<&'static str>,
    pub render: Render,
}

/// Returns all pages, in the order of the navigation.
pub fn pages() -> &'static [Page] {
    static PAGES: [Page; 16] = [
        page("/", "Now", "n", |visitor, query| Box::pin(now::render(visitor, query))),
        page("/ui/sessions", "Sessions", "s", |visitor, query| Box::pin(sessions::render(visitor, query))),
        below("/ui/sessions/{session_id}", |visitor, query| Box::pin(session::render(visitor, query))),
        page("/ui/next", "Next chat", "c", |visitor, query| Box::pin(next_chat::render(visitor, query))),
        page("/ui/memory", "Memory", "m", |visitor, query| Box::pin(memory::render(visitor, query))),
        below("/ui/items/{id}", |visitor, query| Box::pin(item::render(visitor, query))),
        page("/ui/handoffs", "Handoffs", "h", |visitor, query| Box::pin(handoffs::render(visitor, query))),
        below("/ui/handoffs/{handoff_id}", |visitor, query| Box::pin(handoffs::render_one(visitor, query))),
        page("/ui/workflows", "Workflows", "w", |visitor, query| Box::pin(workflows::render(visitor, query))),
        below("/ui/workflows/{workflow_id}", |visitor, query| {
            Box::pin(workflows::render_one(visitor, query))
        }),
        page("/ui/tasks", "Tasks", "t", |visitor, query| Box::pin(tasks::render(visitor, query))),
        below("/ui/tasks/show", |visitor, query| Box::pin(task::render(visitor, query))),
        page("/ui/worker", "Worker", "q", |visitor, query| Box::pin(worker::render(visitor, query))),
        page("/ui/requests", "Requests", "r", |visitor, query| Box::pin(requests::render(visitor, query))),
        page("/ui/activity", "Activity", "y", |visitor, query| Box::pin(activity::render(visitor, query))),
        page("/ui/agents", "Agents", "a", |visitor, query| Box::pin(agents::render(visitor, query))),
    ];
    &PAGES
}

type Render = for<'a> fn(&'a Visitor, &'a Query) -> Rendering<'a>;

/// A page in the navigation. `key` opens it after `g`.
const fn page(path: &'static str, name: &'static str, key: &'static str, render: Render) -> Page {
    Page { path, name: Some(name), key: Some(key), render }
}

/// A page that is reached from another one.
const fn below(path: &'static str, render: Render) -> Page {
    Page { path, name: None, key: None, render }
}

/// Operations that forms may call, by wire name.
pub const ACTIONS: &[&str] = &[
    "handoff.ack",
    "handoff.leave",
    "memory.forget",
    "memory.pin",
    "memory.reject",
    "memory.restore",
    "memory.supersede",
    "queue.retry",
];

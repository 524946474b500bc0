//! Removes private parts and secrets from a document while it is read.
//!
//! The result equals the result of [`make_private`](super::make_private) on the whole document, except that a private
//! key that spans texts of a list may redact more of them.

use std::collections::BTreeMap;

use baton_secrets::{Redactor, redact};

use super::filter::{PRIVATE_MARK, PrivateFilter};
use super::without_private;
use crate::lenient::{Container, Event};

/// Cleans the parts of a document in order.
#[derive(Default)]
pub(crate) struct Cleaner {
    open: Vec<Open>,
    filter: PrivateFilter,
    redactor: Redactor,
    filtered: String,
    clean: String,
}

/// An open container.
struct Open {
    /// Name of the next value: its own name, or the name of the list that contains it.
    name: Option<String>,
    /// True for a list and everything in it, whose texts are treated as one.
    is_in_list: bool,
    /// Names that resulted from redaction, and how often each occurred.
    renamed: BTreeMap<String, usize>,
}

impl Cleaner {
    /// Returns the clean form of the next part. The end of a piece of text may be held back until the next piece.
    pub(crate) fn clean<'a>(&'a mut self, event: Event<'a>) -> Event<'a> {
        match event {
            Event::Begin(container) => {
                let name = self.open.last().and_then(|open| open.name.clone());
                let is_in_list = container == Container::List || self.is_in_list();
                self.open.push(Open { name, is_in_list, renamed: BTreeMap::new() });
                self.redactor.set_in_list(is_in_list);
                event
            }
            Event::End(_) => {
                self.open.pop();
                self.redactor.set_in_list(self.is_in_list());
                self.forget_private_part();
                event
            }
            Event::Name(name) => {
                self.clean_name(name);
                Event::Name(&self.clean)
            }
            Event::Text { piece, is_last } => {
                self.filtered.clear();
                self.clean.clear();
                self.filter.apply_to_piece(piece, is_last, &mut self.filtered);
                let name = self.open.last().and_then(|open| open.name.as_deref());
                self.redactor.push(name, &self.filtered, is_last, &mut self.clean);
                if is_last {
                    self.forget_private_part();
                }
                Event::Text { piece: &self.clean, is_last }
            }
            Event::Literal(literal) => {
                let is_number = !literal.starts_with(|first: char| first.is_ascii_alphabetic());
                if is_number && self.filter.is_open() { Event::text(PRIVATE_MARK) } else { event }
            }
        }
    }

    fn is_in_list(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_in_list)
    }

    /// Outside of lists, a private part ends with its text.
    fn forget_private_part(&mut self) {
        if !self.is_in_list() {
            self.filter = PrivateFilter::default();
        }
    }

    fn clean_name(&mut self, name: &str) {
        let seen = without_private(name);
        self.clean.clear();
        self.clean.push_str(&redact(&seen));
        let Some(open) = self.open.last_mut() else { return };
        if self.clean != name {
            let count = open.renamed.entry(self.clean.clone()).or_default();
            *count += 1;
            // Names that became equal get a number.
            if *count > 1 {
                self.clean.push_str(&format!(" ({count})"));
            }
        }
        open.name = Some(seen.into_owned());
    }
}

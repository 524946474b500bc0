//! Removes private parts and secrets from a document while it is read.
//!
//! The result equals the result of [`make_private`](super::make_private) on the whole document, except that a private
//! key that spans texts of a list may redact more of them.

use std::collections::BTreeMap;

use baton_secrets::{Redactor, redact};

use super::filter::PrivateFilter;
use super::without_private;

/// Cleans the texts of a document in order.
#[derive(Default)]
pub(crate) struct Cleaner {
    /// Number of open lists. The texts of the outermost list are treated as one, including those in objects.
    lists: usize,
    filter: PrivateFilter,
    redactor: Redactor,
    filtered: String,
    clean: String,
}

impl Cleaner {
    pub(crate) fn begin_list(&mut self) {
        self.lists += 1;
        self.redactor.set_in_list(true);
    }

    pub(crate) fn end_list(&mut self) {
        self.lists -= 1;
        if self.lists == 0 {
            self.redactor.set_in_list(false);
            self.filter = PrivateFilter::default();
        }
    }

    /// Returns true if a private part is open, so that the next value belongs to it.
    pub(crate) const fn is_in_private_part(&self) -> bool {
        self.filter.is_open()
    }

    /// Returns the clean form of the next piece of a text. `name` is the name of the text, or of the list that contains
    /// it. The end of a piece may be held back until the next piece.
    pub(crate) fn clean(&mut self, name: Option<&str>, piece: &str, is_last: bool) -> &str {
        self.filtered.clear();
        self.clean.clear();
        self.filter.apply_to_piece(piece, is_last, &mut self.filtered);
        self.redactor.push(name, &self.filtered, is_last, &mut self.clean);
        if is_last && self.lists == 0 {
            self.filter = PrivateFilter::default();
        }
        &self.clean
    }
}

/// Removes private parts and secrets from the name of a member. Returns the name that indicates whether the value is a
/// secret, and the clean name. `renamed` counts the changed names of an object: names that became equal get a number.
pub(crate) fn clean_name(name: &str, renamed: &mut BTreeMap<String, usize>) -> (String, String) {
    let context = without_private(name).into_owned();
    let mut clean = redact(&context).into_owned();
    if clean != name {
        let count = renamed.entry(clean.clone()).or_default();
        *count += 1;
        if *count > 1 {
            clean.push_str(&format!(" ({count})"));
        }
    }
    (context, clean)
}

//! Tables of words: each line has a kind and its entries, such as `goal: aim objective`.

use std::collections::HashMap;
use std::str::FromStr;

/// Lists the entries of a table with their kinds. A line of an unknown kind is skipped; the tests of each table check that
/// there is none.
pub(super) fn rows<T: Copy + FromStr>(
    table: &'static str,
    separator: char,
) -> impl Iterator<Item = (T, &'static str)> {
    let row = move |line: &'static str| {
        let (kind, entries) = line.trim().split_once(": ")?;
        let kind = kind.parse().ok()?;
        Some(entries.split(separator).map(move |entry| (kind, entry)))
    };
    table.lines().filter_map(row).flatten()
}

/// Groups phrases by their first word.
pub(super) fn by_first_word<T>(
    phrases: impl Iterator<Item = (T, &'static str)>,
) -> HashMap<&'static str, Vec<(T, &'static str)>> {
    let mut index: HashMap<&str, Vec<(T, &str)>> = HashMap::new();
    for (kind, phrase) in phrases {
        let first = phrase.split(|c: char| !c.is_alphabetic()).next().unwrap_or(phrase);
        index.entry(first).or_default().push((kind, phrase));
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::layer::Layer;

    #[test]
    fn entries_keep_their_order_and_kind() {
        const TABLE: &str = "
            CRITICAL: a b: c|d. e|\
                f
            USEFUL: d f
        ";
        let critical = [(Layer::Critical, "a b: c"), (Layer::Critical, "d. e"), (Layer::Critical, "f")];
        assert_eq!(rows(TABLE, '|').collect::<Vec<_>>(), [&critical[..], &[(Layer::Useful, "d f")]].concat());
        let index = by_first_word(rows::<Layer>(TABLE, '|'));
        assert_eq!(index["d"], [(Layer::Critical, "d. e"), (Layer::Useful, "d f")]);
    }
}

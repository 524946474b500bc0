//! Parses the output of `git status --porcelain=v2 -z`.

use std::collections::BTreeMap;

/// Entry of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// Status letters of index and working tree, for example `.M` or `A.`; `??` for an untracked file.
    pub(super) letters: &'a str,
    /// Object id in the index.
    index: Option<&'a str>,
}

impl Entry<'_> {
    /// Returns true if the path is tracked.
    pub(super) fn is_tracked(self) -> bool {
        self.letters != "??"
    }

    /// Returns true if the index differs from HEAD.
    pub(super) fn is_staged(self) -> bool {
        self.is_tracked() && !self.letters.starts_with('.')
    }
}

/// Returns the entries of a report by path. Lines of unknown form are skipped.
pub(super) fn entries(report: &str) -> BTreeMap<&str, Entry<'_>> {
    let mut found = BTreeMap::new();
    let mut lines = report.split('\0');
    while let Some(line) = lines.next() {
        let field = |at: usize| line.split(' ').nth(at);
        let (letters, index, path) = match line.as_bytes().first() {
            Some(b'?') => (Some("??"), None, line.split_once(' ').map(|(_, path)| path)),
            Some(b'1') => (field(1), field(7), line.splitn(9, ' ').nth(8)),
            Some(b'2') => {
                // The next field is the previous path.
                lines.next();
                (field(1), field(7), line.splitn(10, ' ').nth(9))
            }
            Some(b'u') => (field(1), None, line.splitn(11, ' ').nth(10)),
            _ => continue,
        };
        if let (Some(letters), Some(path)) = (letters, path) {
            found.insert(path, Entry { letters, index });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_read() {
        let report = "1 .M N... 100644 100644 100644 aaa bbb src/a b.rs\0\
            2 R. N... 100644 100644 100644 aaa bbb R100 new name\0old name\0\
            u UU N... 100644 100644 100644 100644 a b c conflict\0? un tracked\0! ignored\0";
        let found = entries(report);
        let letters: Vec<(&str, &str)> = found.iter().map(|(path, entry)| (*path, entry.letters)).collect();
        let expected = [("conflict", "UU"), ("new name", "R."), ("src/a b.rs", ".M"), ("un tracked", "??")];
        assert_eq!(letters, expected);
        assert!(found["new name"].is_staged() && !found["src/a b.rs"].is_staged());
        assert!(!found["un tracked"].is_tracked());
        assert!(entries("").is_empty());
        // Without a final NUL, the report has quoted paths.
        assert_eq!(entries("? \"caf\\351\"\0? b").len(), 2);
    }
}

//! Glob patterns for repository paths: `*` and `?` within a name, `**` across folders, `[a-z]`, `{a,b}`.

/// Maximum number of patterns after brace expansion.
const MAX_ALTERNATIVES: usize = 256;

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    alternatives: Vec<Vec<String>>,
}

/// Reason why a text is not a valid pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// A `{` or `[` is not closed.
    #[error("a `{{` or `[` is not closed")]
    Unclosed,
    /// Brace expansion produces too many patterns.
    #[error("its braces expand to more than 256 patterns")]
    TooMany,
}

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// If a bracket is not closed or brace expansion produces too many patterns.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        let mut flat = Vec::new();
        expand_braces(pattern, &mut flat)?;
        if flat.iter().any(|pattern| !brackets_close(pattern)) {
            return Err(GlobError::Unclosed);
        }
        let alternatives =
            flat.iter().map(|pattern| pattern.split('/').map(str::to_owned).collect()).collect();
        Ok(Self { alternatives })
    }

    /// Returns true if a text contains pattern characters.
    pub fn is_pattern(text: &str) -> bool {
        text.contains(['*', '?', '[', '{'])
    }

    /// Returns true if the complete `path` matches.
    pub fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        self.alternatives.iter().any(|pattern| matches_names(pattern, &names))
    }
}

fn expand_braces(pattern: &str, out: &mut Vec<String>) -> Result<(), GlobError> {
    let Some(open) = pattern.find('{') else {
        if out.len() == MAX_ALTERNATIVES {
            return Err(GlobError::TooMany);
        }
        out.push(pattern.to_owned());
        return Ok(());
    };
    let (before, rest) = (&pattern[..open], &pattern[open + 1..]);
    let mut depth = 0;
    let mut cuts = vec![0];
    let mut close = None;
    for (at, letter) in rest.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                close = Some(at);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => cuts.push(at + 1),
            _ => {}
        }
    }
    let close = close.ok_or(GlobError::Unclosed)?;
    for (index, from) in cuts.iter().enumerate() {
        let to = cuts.get(index + 1).map_or(close, |next| next - 1);
        expand_braces(&format!("{before}{}{}", &rest[*from..to], &rest[close + 1..]), out)?;
    }
    Ok(())
}

fn brackets_close(pattern: &str) -> bool {
    pattern.split('/').all(|name| name.rfind('[').is_none_or(|open| name[open..].contains(']')))
}

/// Matches by dynamic programming over suffixes of the pattern and the path, so no pattern needs exponential time.
fn matches_names(pattern: &[String], names: &[&str]) -> bool {
    let mut fits = vec![false; names.len() + 1];
    if let Some(end) = fits.last_mut() {
        *end = true;
    }
    for part in pattern.iter().rev() {
        let mut next = vec![false; names.len() + 1];
        if part == "**" {
            let mut any = false;
            for at in (0..=names.len()).rev() {
                any |= fits.get(at).copied().unwrap_or_default();
                next[at] = any;
            }
        } else {
            for (at, name) in names.iter().enumerate() {
                next[at] = fits.get(at + 1).copied().unwrap_or_default() && matches_name(part, name);
            }
        }
        fits = next;
    }
    fits.first().copied().unwrap_or_default()
}

fn matches_name(pattern: &str, name: &str) -> bool {
    // A name is equal to itself, so names with brackets, such as `[id].tsx`, need no escape.
    if pattern == name {
        return true;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at_pattern, mut at_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(at_pattern) {
            Some('*') => {
                star = Some((at_pattern + 1, at_name));
                at_pattern += 1;
                continue;
            }
            None if at_name == name.len() => return true,
            Some(_) if at_name < name.len() => match_one(&pattern[at_pattern..], name[at_name]),
            _ => None,
        };
        match (step, star) {
            (Some(length), _) => {
                at_pattern += length;
                at_name += 1;
            }
            (None, Some((after, from))) if from < name.len() => {
                star = Some((after, from + 1));
                at_pattern = after;
                at_name = from + 1;
            }
            _ => return false,
        }
    }
}

/// Matches one character and returns the number of pattern characters used.
fn match_one(pattern: &[char], letter: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['[', rest @ ..] => {
            let close = rest.iter().skip(1).position(|c| *c == ']')? + 1;
            let (negated, set) = match rest.get(..close)? {
                ['!' | '^', set @ ..] => (true, set),
                set => (false, set),
            };
            (in_set(set, letter) != negated).then_some(close + 2)
        }
        [first, ..] => (*first == letter).then_some(1),
        [] => None,
    }
}

fn in_set(set: &[char], letter: char) -> bool {
    let mut rest = set;
    loop {
        rest = match rest {
            [low, '-', high, after @ ..] => {
                if (*low..=*high).contains(&letter) {
                    return true;
                }
                after
            }
            [one, after @ ..] => {
                if *one == letter {
                    return true;
                }
                after
            }
            [] => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_complete_paths() {
        let cases = [
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/x/a.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**/*.rs", "src/x/y/a.rs", true),
            ("**/*.ts", "a.ts", true),
            ("src/**", "src/a/b", true),
            ("src/**", "srcs/a", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("{src,lib}/*.{ts,tsx}", "lib/a.tsx", true),
            ("{src,lib}/*.{ts,tsx}", "bin/a.tsx", false),
            ("*a*b*", "xaxxbx", true),
            ("*a*b", "xaxxbx", false),
            ("a", "a", true),
            ("ä*", "äöü", true),
            ("app/[id]/page.tsx", "app/[id]/page.tsx", true),
            ("app/[id]/page.tsx", "app/i/page.tsx", true),
            ("app/[[...slug]]/*", "app/[[...slug]]/page.tsx", true),
        ];
        for (pattern, path, fits) in cases {
            assert_eq!(Glob::new(pattern).unwrap().matches(path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn unclosed_brackets_and_large_expansions_are_rejected() {
        assert_eq!(Glob::new("a{b"), Err(GlobError::Unclosed));
        assert_eq!(Glob::new("a[b"), Err(GlobError::Unclosed));
        assert_eq!(Glob::new(&"{a,b}".repeat(9)), Err(GlobError::TooMany));
    }

    proptest! {
        #[test]
        fn no_pattern_panics_and_a_plain_path_matches_itself(pattern in "[a-c*?/\\[\\]{},!-]{0,20}", path in "[a-c/]{0,20}") {
            if let Ok(glob) = Glob::new(&pattern) {
                glob.matches(&path);
            }
            prop_assert!(Glob::new(&path).unwrap().matches(&path));
        }
    }
}

//! Which terms a candidate must contain, and the same condition in the query language of each database.

use baton_core::recall::{Corpus, Query};

/// A condition on the terms of a document: any of the single terms, or both terms of any pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatchPlan {
    /// Terms that select a document alone.
    pub single: Vec<String>,
    /// Common terms that select a document in pairs.
    pub pairs: Vec<(String, String)>,
    /// Number of newest documents that probably contain enough matches, if so many documents match that reading those is
    /// quicker than the full-text index.
    pub newest: Option<u64>,
}

/// Number of common terms that are combined into pairs.
const PAIRED_TERMS: usize = 8;
/// Number of documents that are read in order in the time in which the full-text index reads one.
const SEQUENTIAL_READS_PER_INDEX_READ: u64 = 4;
/// Maximum sum of the number of documents that contain the terms of pairs, which bounds the work of the database.
const MAX_PAIR_WORK: u64 = 1_500_000;

impl MatchPlan {
    /// Chooses a condition that selects about `limit` documents: the rarest terms alone, and the others in pairs. If
    /// every term is common, the rarest one is used alone.
    pub fn of(query: &Query, corpus: &Corpus, limit: u64) -> Self {
        let mut terms: Vec<(u64, &str)> = query
            .terms
            .iter()
            .map(|one| (corpus.documents_with(&one.term), one.term.as_str()))
            .filter(|(documents, _)| *documents > 0)
            .collect();
        terms.sort_unstable();
        let mut plan = Self::default();
        let mut expected = 0;
        let mut common = terms.as_slice();
        while let Some(((documents, term), rest)) = common.split_first() {
            if expected + documents > limit {
                break;
            }
            expected += documents;
            plan.single.push((*term).to_owned());
            common = rest;
        }
        let common = &common[..common.len().min(PAIRED_TERMS)];
        let mut pairs: Vec<(u64, u64, &str, &str)> = Vec::new();
        for (index, (documents, term)) in common.iter().enumerate() {
            for (other_documents, other) in &common[index + 1..] {
                let expected = documents.saturating_mul(*other_documents) / corpus.documents.max(1);
                pairs.push((expected, documents + other_documents, term, other));
            }
        }
        pairs.sort_unstable();
        let mut work = 0;
        for (documents, pair_work, term, other) in pairs {
            if expected + documents > limit || work + pair_work > MAX_PAIR_WORK {
                break;
            }
            expected += documents;
            work += pair_work;
            plan.pairs.push((term.to_owned(), other.to_owned()));
        }
        if plan.single.is_empty()
            && plan.pairs.is_empty()
            && let Some((documents, rarest)) = terms.first()
        {
            plan.single.push((*rarest).to_owned());
            // One of `corpus.documents / documents` documents matches, and `limit` of them are needed.
            let newest = corpus.documents.saturating_mul(limit) / documents;
            let is_quicker = newest < documents.saturating_mul(SEQUENTIAL_READS_PER_INDEX_READ);
            plan.newest = is_quicker.then_some(newest + newest / 2);
        }
        plan
    }
}

/// Joins the parts of a condition with the operators of a language.
fn expression(
    required: &[Vec<String>],
    plan: &MatchPlan,
    quote: fn(&str) -> String,
    (and, or): (&str, &str),
) -> String {
    let any = |terms: &[String]| terms.iter().map(|term| quote(term)).collect::<Vec<_>>().join(or);
    let mut groups: Vec<String> = required.iter().map(|terms| format!("({})", any(terms))).collect();
    let mut matches: Vec<String> = plan.single.iter().map(|term| quote(term)).collect();
    matches.extend(plan.pairs.iter().map(|(one, other)| format!("({}{and}{})", quote(one), quote(other))));
    groups.push(format!("({})", matches.join(or)));
    groups.join(and)
}

/// Returns the condition as an FTS5 expression.
pub(super) fn fts5_expression(required: &[Vec<String>], plan: &MatchPlan) -> String {
    expression(required, plan, |term| format!("\"{}\"", term.replace('"', "\"\"")), (" AND ", " OR "))
}

/// Returns the condition as a `tsquery`.
pub(super) fn tsquery(required: &[Vec<String>], plan: &MatchPlan) -> String {
    let quote = |term: &str| format!("'{}'", term.replace('\\', "\\\\").replace('\'', "''"));
    expression(required, plan, quote, (" & ", " | "))
}

#[cfg(test)]
mod tests {
    use baton_core::Timestamp;

    use super::*;

    fn plan(counts: &[(&str, u64)], documents: u64, limit: u64) -> MatchPlan {
        let text: Vec<&str> = counts.iter().map(|(term, _)| *term).collect();
        let query = Query::parse(&text.join(" "), Timestamp::EPOCH);
        let with_term = counts.iter().map(|(term, count)| ((*term).to_owned(), *count)).collect();
        MatchPlan::of(&query, &Corpus { documents, length: documents, with_term }, limit)
    }

    #[test]
    fn rare_terms_are_used_alone_and_common_ones_in_pairs() {
        let chosen = plan(&[("cat", 900), ("dog", 10), ("fox", 500)], 1_000, 600);
        assert_eq!(chosen.single, ["dog", "fox"]);
        assert!(chosen.pairs.is_empty());
        let chosen = plan(&[("cat", 5_000), ("dog", 10), ("fox", 2_000)], 100_000, 600);
        assert_eq!(chosen.single, ["dog"]);
        assert_eq!(chosen.pairs, [("fox".to_owned(), "cat".to_owned())]);
    }

    #[test]
    fn one_common_term_is_used_alone() {
        let chosen = plan(&[("cat", 5_000)], 6_000, 600);
        assert_eq!((chosen.single, chosen.newest), (vec!["cat".to_owned()], Some(1_080)));
        assert_eq!(plan(&[("cat", 5_000)], 100_000, 600).newest, Some(18_000));
        assert_eq!(plan(&[("cat", 3_000)], 100_000, 600).newest, None);
        assert_eq!(plan(&[], 6_000, 600), MatchPlan::default());
    }

    #[test]
    fn expressions_quote_terms() {
        let required = [vec!["v=a".to_owned(), "v=\"b'".to_owned()]];
        let pairs = vec![("y".into(), "z\\".into())];
        let plan = MatchPlan { single: vec!["x".into()], pairs, newest: None };
        assert_eq!(fts5_expression(&required, &plan), r#"("v=a" OR "v=""b'") AND ("x" OR ("y" AND "z\"))"#);
        assert_eq!(tsquery(&required, &plan), r#"('v=a' | 'v="b''') & ('x' | ('y' & 'z\\'))"#);
    }
}

//! Numbers of documents: in all, and per term.

use std::collections::{BTreeMap, HashSet};

use baton_core::Venture;
use baton_core::recall::DocumentText;

use crate::column::json;
use crate::error::StoreError;
use crate::tx::Tx;

/// Changes of the counts of documents.
#[derive(Default)]
pub(super) struct Changes {
    terms: BTreeMap<Venture, BTreeMap<String, i64>>,
    totals: BTreeMap<Venture, (i64, i64)>,
}

impl Changes {
    pub(super) fn count(&mut self, venture: &Venture, text: &DocumentText, sign: i64) {
        let terms = self.terms.entry(venture.clone()).or_default();
        for term in text.terms().collect::<HashSet<_>>() {
            *terms.entry(term.to_owned()).or_default() += sign;
        }
        let (documents, length) = self.totals.entry(venture.clone()).or_default();
        *documents += sign;
        *length += sign * i64::try_from(text.length()).unwrap_or(i64::MAX);
    }

    pub(super) fn store(mut self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        let sql = tx.pick(
            "INSERT INTO recall_terms (venture, term, documents) \
             SELECT $1, key, value FROM json_each($2) WHERE 1 \
             ON CONFLICT (venture, term) DO UPDATE SET documents = documents + excluded.documents",
            "INSERT INTO recall_terms (venture, term, documents) \
             SELECT CAST($1 AS TEXT), key, CAST(value AS BIGINT) FROM jsonb_each_text(CAST($2 AS TEXT)::JSONB) \
             ORDER BY key COLLATE \"C\" \
             ON CONFLICT (venture, term) DO UPDATE SET documents = recall_terms.documents + excluded.documents",
        );
        for (venture, terms) in &mut self.terms {
            terms.retain(|_, change| *change != 0);
            if !terms.is_empty() {
                tx.run(sql, &[venture.into(), json(terms)?.into()])?;
            }
        }
        for (venture, (documents, length)) in &self.totals {
            tx.run(
                "INSERT INTO recall_totals (venture, documents, length) VALUES ($1, $2, $3) \
                 ON CONFLICT (venture) DO UPDATE SET documents = recall_totals.documents + excluded.documents, \
                 length = recall_totals.length + excluded.length",
                &[venture.into(), (*documents).into(), (*length).into()],
            )?;
        }
        Ok(())
    }
}

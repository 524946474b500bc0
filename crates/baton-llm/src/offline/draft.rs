//! An observation as the reader of a tool use drafts it.

use baton_core::observation::FunctionChange;

use super::call::Call;
use super::facts::Detail;
use super::prose;

/// Output of a reader.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) title: String,
    pub(super) summary: String,
    pub(super) detail: Option<String>,
    pub(super) files: Vec<String>,
    pub(super) functions: Vec<FunctionChange>,
}

impl Draft {
    /// Creates a draft, and an empty detail with its size limit.
    pub(super) fn begin(call: &Call<'_>, title: String, summary: String) -> (Self, Detail) {
        let detail = Detail::new(call.detail_bytes(&title, &summary), &title, &summary);
        (Self { title, summary, ..Self::default() }, detail)
    }

    /// Creates a draft with a detail that `fill` writes.
    pub(super) fn filled(
        call: &Call<'_>,
        title: String,
        summary: String,
        fill: impl FnOnce(&mut Detail),
    ) -> Self {
        let (draft, mut detail) = Self::begin(call, title, summary);
        fill(&mut detail);
        draft.with_detail(detail)
    }

    /// A draft that is mainly a written text, which is kept as far as `bytes` allow.
    pub(super) fn written(call: &Call<'_>, title: String, summary: String, text: &str, bytes: usize) -> Self {
        let mut detail = Detail::new(bytes, &title, &summary);
        prose::fill(text, call.cwd, &mut detail);
        Self { title, summary, ..Self::default() }.with_detail(detail)
    }

    pub(super) fn with_detail(mut self, detail: Detail) -> Self {
        self.detail = detail.finish();
        self
    }
}

//! State of a checkout: its HEAD, and every file that differs from HEAD. Compared with the state at init-context before
//! a baseline is recorded.

use baton_core::{Fault, Sha256Hash};
use serde_json::json;

use crate::environment::TaskEnvironment;

/// State of a checkout, without the content of its files.
#[derive(Debug)]
pub(crate) struct CheckoutState {
    /// Hash of HEAD and of the files that differ from it.
    pub(crate) sha256: Sha256Hash,
    /// True if a tracked file has changes that are not staged.
    pub(crate) dirty: bool,
    /// Paths of the files that differ from HEAD, sorted: modified, staged, deleted or new and not ignored.
    pub(crate) paths: Vec<String>,
}

/// Reads the state of the checkout without the files `except`: the task file and the standards, which have hashes of
/// their own, and a log that is being recorded.
pub(crate) fn checkout_state<'a>(
    environment: &TaskEnvironment,
    except: impl IntoIterator<Item = &'a str>,
) -> Result<CheckoutState, Fault> {
    let except: Vec<&str> = except.into_iter().collect();
    let head = environment.tree().head()?.commit;
    let mut files = environment.tree().uncommitted()?;
    files.retain(|file| !except.contains(&file.path.as_str()));
    let listed: Vec<_> = files.iter().map(|file| json!([file.path, file.sha256])).collect();
    let text = json!({ "head": head, "files": listed }).to_string();
    Ok(CheckoutState {
        sha256: Sha256Hash::of(text.as_bytes()),
        dirty: files.iter().any(|file| file.modified),
        paths: files.into_iter().map(|file| file.path).collect(),
    })
}

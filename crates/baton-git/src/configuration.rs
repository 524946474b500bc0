//! The configuration of a repository, as git resolves it from all its files.

use std::collections::{BTreeSet, HashMap};

/// All settings by key: section and name in lower case, the subsection as written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Configuration {
    values: HashMap<String, Vec<String>>,
}

impl Configuration {
    /// Parses the output of `git config --list -z`.
    pub(crate) fn read(output: &[u8]) -> Self {
        let mut values: HashMap<String, Vec<String>> = HashMap::new();
        for record in output.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let record = String::from_utf8_lossy(record);
            // A name without a value means true.
            let (key, value) = record.split_once('\n').unwrap_or((&record, "true"));
            values.entry(key.to_owned()).or_default().push(value.to_owned());
        }
        Self { values }
    }

    /// Parses a configuration file without git. Returns `None` if it uses syntax that only git handles: includes,
    /// quotes, escapes, comments after values, continuation lines.
    pub(crate) fn read_file(text: &str) -> Option<Self> {
        let mut values: HashMap<String, Vec<String>> = HashMap::new();
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(header) = line.strip_prefix('[') {
                let header = header.strip_suffix(']')?;
                let (name, sub) =
                    header.split_once(' ').map_or((header, None), |(name, sub)| (name, Some(sub)));
                let plain = |text: &str| !text.contains(['"', '\\', ']', '[']);
                let name = name.to_ascii_lowercase();
                if name.starts_with("include") || name.contains(['.', '"']) {
                    return None;
                }
                section = match sub {
                    None => name,
                    Some(sub) => {
                        let sub = sub.trim().strip_prefix('"')?.strip_suffix('"').filter(|sub| plain(sub))?;
                        format!("{name}.{sub}")
                    }
                };
                continue;
            }
            let (key, value) =
                line.split_once('=').map_or((line, "true"), |(key, value)| (key, value.trim()));
            let key = key.trim();
            let is_key =
                !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            if section.is_empty() || !is_key || value.contains(['"', '\\', '#', ';']) {
                return None;
            }
            let key = format!("{section}.{}", key.to_ascii_lowercase());
            values.entry(key).or_default().push(value.to_owned());
        }
        Some(Self { values })
    }

    /// Returns the effective value, which is the last one.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key)?.last().map(String::as_str)
    }

    /// Returns the first value, which is the URL to fetch from for a remote with several URLs.
    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.values.get(key)?.first().map(String::as_str)
    }

    /// Returns a boolean setting; `None` if it is unset or not a boolean.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" | "" => Some(false),
            _ => None,
        }
    }

    /// Returns the subsections of a section, sorted.
    pub(crate) fn subsections(&self, section: &str) -> BTreeSet<&str> {
        self.values
            .keys()
            .filter_map(|key| {
                let (subsection, _name) = key.strip_prefix(section)?.strip_prefix('.')?.rsplit_once('.')?;
                (!subsection.is_empty()).then_some(subsection)
            })
            .collect()
    }

    /// Returns true if objects may be missing because they are fetched on demand.
    pub(crate) fn is_partial_clone(&self) -> bool {
        self.get("extensions.partialclone").is_some()
            || self
                .subsections("remote")
                .iter()
                .any(|name| self.flag(&format!("remote.{name}.promisor")).unwrap_or(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_with_their_last_value() {
        let text = b"core.bare\nfalse\0core.bare\ntrue\0remote.a.b.url\nx\ny\0filter.lfs.required\0x.y\n\0";
        let configuration = Configuration::read(text);
        assert_eq!(configuration.get("core.bare"), Some("true"));
        assert_eq!(configuration.first("core.bare"), Some("false"));
        assert_eq!(configuration.get("remote.a.b.url"), Some("x\ny"));
        assert_eq!(configuration.flag("filter.lfs.required"), Some(true));
        assert_eq!(configuration.flag("x.y"), Some(false));
        assert_eq!(configuration.subsections("remote").into_iter().collect::<Vec<_>>(), ["a.b"]);
        assert_eq!(configuration.subsections("filter").into_iter().collect::<Vec<_>>(), ["lfs"]);
        assert!(configuration.subsections("core").is_empty());
    }
}

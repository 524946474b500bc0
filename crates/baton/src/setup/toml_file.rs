//! Edits of TOML files that belong to the user. Comments, order and all other entries are kept.

use toml_edit::{DocumentMut, Item, Table, Value};

/// A table of Baton in a TOML file: its path and its members.
#[derive(Debug, Clone)]
pub(crate) struct TomlTable {
    pub(crate) path: Vec<&'static str>,
    pub(crate) members: Vec<(&'static str, Value)>,
}

/// Adds the table, or brings its members up to date. Members that the user added are kept.
pub(super) fn add_table(text: &str, table: &TomlTable) -> Result<String, String> {
    let (mark, mut document) = parse(text)?;
    let mut current = document.as_table_mut();
    for (depth, name) in table.path.iter().enumerate() {
        let is_last = depth + 1 == table.path.len();
        let item = current.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(!is_last);
            Item::Table(table)
        });
        current = item.as_table_mut().ok_or_else(|| format!("`{name}` is not a table of its own"))?;
    }
    for (name, value) in &table.members {
        let is_current =
            current.get(name).and_then(Item::as_value).is_some_and(|present| same(present, value));
        if !is_current {
            current.insert(name, Item::Value(value.clone()));
        }
    }
    Ok(finish(text, mark, &document))
}

/// Removes the table, and the tables around it that become empty.
pub(super) fn remove_table(text: &str, table: &TomlTable) -> Result<String, String> {
    let (mark, mut document) = parse(text)?;
    remove_from(document.as_table_mut(), &table.path);
    Ok(finish(text, mark, &document))
}

/// Returns true if the text has the table with these members.
pub(super) fn has_table(text: &str, table: &TomlTable) -> bool {
    add_table(text, table).is_ok_and(|edited| edited == text)
}

fn parse(text: &str) -> Result<(&'static str, DocumentMut), String> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let document = body.parse().map_err(|error| format!("the file is not valid TOML: {error}"))?;
    Ok((mark, document))
}

/// Returns the document with the byte order mark and the line ends of the original.
fn finish(original: &str, mark: &str, document: &DocumentMut) -> String {
    let text = document.to_string();
    let text =
        if original.contains("\r\n") { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text };
    format!("{mark}{text}")
}

fn remove_from(table: &mut Table, path: &[&str]) {
    let Some((name, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        table.remove(name);
        return;
    }
    if let Some(inner) = table.get_mut(name).and_then(Item::as_table_mut) {
        remove_from(inner, rest);
        if inner.is_empty() && inner.is_implicit() {
            table.remove(name);
        }
    }
}

/// Compares values without their formatting.
fn same(one: &Value, other: &Value) -> bool {
    let plain = |value: &Value| {
        let mut value = value.clone();
        value.decor_mut().clear();
        if let Value::Array(array) = &mut value {
            array.fmt();
        }
        value.to_string()
    };
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TomlTable {
        TomlTable {
            path: vec!["mcp_servers", "baton"],
            members: vec![
                ("command", "/opt/baton".into()),
                ("args", Value::Array(["mcp"].into_iter().collect())),
            ],
        }
    }

    #[test]
    fn keeps_comments_and_other_tables() {
        let text = "# mine\nmodel = \"o\" # fast\n\n[mcp_servers.other]\ncommand = \"x\"\n\n[tui]\nnotifications = true\n";
        let added = add_table(text, &table()).unwrap();
        for kept in ["# mine", "# fast", "[mcp_servers.other]", "notifications = true"] {
            assert!(added.contains(kept), "{added}");
        }
        assert!(added.contains("[mcp_servers.baton]\ncommand = \"/opt/baton\"\nargs = [\"mcp\"]"), "{added}");
        assert!(has_table(&added, &table()));
        assert_eq!(remove_table(&added, &table()).unwrap(), text);
    }

    #[test]
    fn keeps_members_of_the_user_and_updates_the_path() {
        let text =
            "[mcp_servers.baton]\ncommand = \"/old/baton\"\nargs = [ \"mcp\" ]\nstartup_timeout_sec = 20\n";
        let added = add_table(text, &table()).unwrap();
        assert!(added.contains("startup_timeout_sec = 20") && added.contains("\"/opt/baton\""), "{added}");
        assert!(added.contains("args = [ \"mcp\" ]"), "an equal value keeps its formatting: {added}");
    }

    #[test]
    fn keeps_crlf_and_byte_order_mark() {
        let added = add_table("\u{feff}a = 1\r\n", &table()).unwrap();
        assert!(added.starts_with("\u{feff}a = 1\r\n"), "{added:?}");
        assert!(!added.replace("\r\n", "").contains('\n'), "{added:?}");
    }

    #[test]
    fn rejects_files_that_cannot_be_edited_safely() {
        for (text, problem) in [
            ("a = ", "not valid TOML"),
            ("a = 1\na = 2\n", "not valid TOML"),
            ("mcp_servers = 3\n", "`mcp_servers` is not a table"),
            ("mcp_servers = { baton = { command = \"x\" } }\n", "`mcp_servers` is not a table"),
        ] {
            let error = add_table(text, &table()).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}

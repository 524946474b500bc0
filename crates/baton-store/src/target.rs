//! Identification of the database or server that a write of the outbox is for.

use serde::{Deserialize, Serialize};

const DEFAULT_PORT: &str = "5432";

/// Identifies the database or server that a write of the outbox is for, without credentials, so that the
/// write is never replayed into another one.
///
/// `sqlite` is the database in the data folder that contains the outbox, so the data folder may be moved. A
/// PostgreSQL database is identified by host, port and name, but not by user or password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Target(String);

impl Target {
    pub(crate) fn sqlite() -> Self {
        Self("sqlite".to_owned())
    }

    /// Identifies the database of a `postgres://` URL.
    pub(crate) fn postgres(url: &str) -> Self {
        let address = url.split_once("://").map_or(url, |(_, address)| address);
        let (address, query) = address.split_once('?').unwrap_or((address, ""));
        let (authority, path) = address.split_once('/').unwrap_or((address, ""));
        let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let user = user.split(':').next().unwrap_or_default();
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, value)| *key == name && !value.is_empty()).map(|(_, value)| value)
        };
        let hosts = Some(hosts)
            .filter(|hosts| !hosts.is_empty())
            .or_else(|| parameter("host"))
            .unwrap_or("localhost");
        let port = parameter("port").unwrap_or(DEFAULT_PORT);
        let with_port = |host: &str| {
            // The colons of an IPv6 address are inside brackets.
            let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
            let host = host.to_ascii_lowercase();
            if has_port { host } else { format!("{host}:{port}") }
        };
        let hosts: Vec<String> = hosts.split(',').map(with_port).collect();
        let name =
            [path, parameter("dbname").unwrap_or_default(), user].into_iter().find(|name| !name.is_empty());
        Self(format!("postgres://{}/{}", hosts.join(","), name.unwrap_or_default()))
    }

    /// Identifies a Baton server by its address.
    pub fn server(url: &str) -> Self {
        Self(url.trim_end_matches('/').to_owned())
    }

    /// Returns the identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgres_target_contains_no_credentials() {
        for (url, named) in [
            ("postgres://u:secret@DB.example/shop", "postgres://db.example:5432/shop"),
            ("postgresql://other@db.example:5432/shop?sslmode=require", "postgres://db.example:5432/shop"),
            ("postgres://u:p%40ss@db:6000/shop", "postgres://db:6000/shop"),
            ("postgres://u:secret@a:1,b/shop", "postgres://a:1,b:5432/shop"),
            ("postgres://u:secret@[::1]/shop", "postgres://[::1]:5432/shop"),
            ("postgres://[::1]:6000/shop", "postgres://[::1]:6000/shop"),
            ("postgres:///shop?host=/run/postgresql&password=secret", "postgres:///run/postgresql:5432/shop"),
            ("postgres://db?dbname=shop&port=7", "postgres://db:7/shop"),
            ("postgres://u:secret@db", "postgres://db:5432/u"),
        ] {
            assert_eq!(Target::postgres(url).as_str(), named, "{url}");
        }
    }
}

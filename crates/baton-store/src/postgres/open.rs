//! Connecting: address, TLS and session settings.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::engine::PostgresTimeouts;
use crate::error::StoreError;
use crate::postgres::client::{Client, ClientError};

/// Additional time that the client waits after the server's `statement_timeout`: a healthy server cancels the
/// statement and reports it, which leaves the connection usable.
const ANSWER_GRACE: Duration = Duration::from_secs(1);

/// Settings of every connection. JIT compilation is off, because it takes longer than the statements. The list of entries
/// that are not merged into the full-text index is short, because every search reads it.
const SETTINGS: &str = "SET synchronous_commit = on; SET idle_in_transaction_session_timeout = '60s'; \
     SET jit = off; SET gin_pending_list_limit = '512kB'";

/// A server and its TLS settings.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    encryption: Encryption,
    timeouts: PostgresTimeouts,
}

#[derive(Clone)]
enum Encryption {
    None,
    Verified(MakeRustlsConnect),
}

/// Parses the address. Error messages never contain the password.
///
/// `sslmode` and `sslrootcert` mean what they mean to other PostgreSQL clients, except that a certificate is always
/// verified. Without `sslmode`, connections to this machine are not encrypted. `connect_timeout` in the address takes
/// precedence over the configured one.
pub(super) fn parse(url: &str, mut timeouts: PostgresTimeouts) -> Result<Address, StoreError> {
    let (url, root_file) = take_parameter(url, "sslrootcert");
    let url =
        url.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
    let mut config: Config = url
        .parse()
        .map_err(|_| StoreError::unavailable("the database address is not a valid postgres:// URL"))?;
    config.application_name("baton");
    if let Some(timeout) = config.get_connect_timeout() {
        timeouts.connect = *timeout;
    }
    let in_the_clear = match config.get_ssl_mode() {
        SslMode::Disable => true,
        SslMode::Prefer => root_file.is_none() && config.get_hosts().iter().all(is_this_machine),
        _ => false,
    };
    let encryption = if in_the_clear {
        Encryption::None
    } else {
        Encryption::Verified(tls(roots(root_file.as_deref())?)?)
    };
    Ok(Address { config, encryption, timeouts })
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

/// Removes a parameter from the query of a URL and returns its value.
fn take_parameter(url: &str, name: &str) -> (String, Option<String>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (taken, kept): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|pair| pair.split('=').next() == Some(name));
    let value = taken
        .first()
        .and_then(|pair| pair.split_once('='))
        .map(|(_, value)| percent_decode_str(value).decode_utf8_lossy().into_owned());
    let url = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    (url, value)
}

/// Returns the trusted root certificates: the certificates of a file, or the public ones.
fn roots(file: Option<&str>) -> Result<RootCertStore, StoreError> {
    let Some(file) = file else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let broken = |problem: String| StoreError::unavailable(format!("sslrootcert {file}: {problem}"));
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| broken(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| broken(error.to_string()))?;
        roots.add(certificate).map_err(|error| broken(error.to_string()))?;
    }
    if roots.is_empty() { Err(broken("holds no certificate".into())) } else { Ok(roots) }
}

impl Address {
    pub(super) const fn timeouts(&self) -> PostgresTimeouts {
        self.timeouts
    }

    /// Returns the same address with another connect timeout.
    pub(super) fn with_connect_timeout(&self, timeout: Duration) -> Self {
        Self { timeouts: PostgresTimeouts { connect: timeout, ..self.timeouts }, ..self.clone() }
    }
}

pub(super) fn connect(address: &Address) -> Result<Client, StoreError> {
    try_connect(address).map_err(cannot_connect)
}

pub(super) fn cannot_connect(error: ClientError) -> StoreError {
    StoreError::caused_by("cannot connect to the PostgreSQL server", error)
}

/// Opens a connection. The error says whether the server refused or timed out.
pub(super) fn try_connect(address: &Address) -> Result<Client, ClientError> {
    let Address { config, encryption, timeouts } = address;
    let mut client = match encryption {
        Encryption::None => Client::connect(config, NoTls, timeouts.connect)?,
        Encryption::Verified(connector) => Client::connect(config, connector.clone(), timeouts.connect)?,
    };
    client.set_statement_timeout(timeouts.connect);
    client.batch_execute(&format!("{SETTINGS}; {}", limits(timeouts.statement, Scope::Session)))?;
    client.set_statement_timeout(timeouts.statement + ANSWER_GRACE);
    Ok(client)
}

/// How long a setting applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Until the connection is closed.
    Session,
    /// Until the transaction ends.
    Transaction,
}

/// Sets the statement timeout of the server and a slightly longer one of the client.
pub(super) fn limit_statements(
    client: &mut Client,
    timeout: Duration,
    scope: Scope,
) -> Result<(), ClientError> {
    client.batch_execute(&limits(timeout, scope))?;
    client.set_statement_timeout(timeout + ANSWER_GRACE);
    Ok(())
}

/// Returns the statements that set the timeouts of the server.
fn limits(timeout: Duration, scope: Scope) -> String {
    let set = if scope == Scope::Session { "SET" } else { "SET LOCAL" };
    let statement_ms = timeout.as_millis();
    // A lock timeout is reported as such before the statement times out.
    let lock_ms = statement_ms * 4 / 5;
    format!("{set} statement_timeout = {statement_ms}; {set} lock_timeout = {lock_ms}")
}

fn tls(roots: RootCertStore) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::unavailable(format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encrypted(url: &str) -> bool {
        matches!(parse(url, PostgresTimeouts::default()).unwrap().encryption, Encryption::Verified(_))
    }

    #[test]
    fn connections_to_this_machine_are_unencrypted_by_default() {
        assert!(!encrypted("postgres://u@127.0.0.1/d"));
        assert!(!encrypted("postgres://u@localhost/d"));
        assert!(!encrypted("postgres:///d?host=/run/postgresql"));
        assert!(encrypted("postgres://u@127.0.0.1/d?sslmode=require"));
        assert!(encrypted("postgres://u@db.example/d"));
        assert!(encrypted("postgres://u@db.example/d?sslmode=verify-full"));
        assert!(!encrypted("postgres://u@db.example/d?sslmode=disable"));
    }

    #[test]
    fn errors_name_an_unreadable_root_certificate_but_not_the_password() {
        for url in ["postgres://u:pass@db/d?sslrootcert=/no/such.pem", "postgres://u:pass@db:nope/d"] {
            let error = parse(url, PostgresTimeouts::default()).err().unwrap().to_string();
            assert!(!error.contains("pass@"), "{error}");
        }
        for path in ["%2Fno%2Fsuch.pem", "%2fno%2fsuch%2epem"] {
            let url = format!("postgres://u@db/d?sslrootcert={path}&sslmode=require");
            let error = parse(&url, PostgresTimeouts::default()).err().unwrap();
            assert!(error.to_string().contains("/no/such.pem"), "{error}");
        }
    }
}

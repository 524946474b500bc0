//! Connecting: the address, TLS when it asks for it, what every connection is set to.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::StoreError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server, and how its certificate is checked.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    encryption: Encryption,
}

#[derive(Clone)]
enum Encryption {
    None,
    Verified(Arc<RootCertStore>),
}

/// Reads the address; the password in it never reaches a message.
///
/// `sslmode` and `sslrootcert` mean what they mean to other PostgreSQL clients, except that a certificate is always
/// checked when there is one to check. Without `sslmode`, a server on this machine is spoken to in the clear.
pub(super) fn parse(url: &str) -> Result<Address, StoreError> {
    let (url, root_file) = take_parameter(url, "sslrootcert");
    let url =
        url.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
    let mut config: Config = url
        .parse()
        .map_err(|_| StoreError::unavailable("the database address is not a valid postgres:// URL"))?;
    config.application_name("baton");
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    let in_the_clear = match config.get_ssl_mode() {
        SslMode::Disable => true,
        SslMode::Prefer => root_file.is_none() && config.get_hosts().iter().all(is_this_machine),
        _ => false,
    };
    let encryption = if in_the_clear {
        Encryption::None
    } else {
        Encryption::Verified(Arc::new(roots(root_file.as_deref())?))
    };
    Ok(Address { config, encryption })
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

/// Takes a parameter out of a URL's query.
fn take_parameter(url: &str, name: &str) -> (String, Option<String>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (taken, kept): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|pair| pair.split('=').next() == Some(name));
    let value =
        taken.first().and_then(|pair| pair.split_once('=')).map(|(_, value)| value.replace("%2F", "/"));
    let url = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    (url, value)
}

/// The certificates that are trusted: those of a file, or the public ones.
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

/// Opens a connection.
pub(super) fn connect(address: &Address) -> Result<Client, StoreError> {
    let unreachable = |error: postgres::Error| StoreError::Unavailable {
        message: "could not connect to the PostgreSQL server".into(),
        source: Some(error.into()),
    };
    let mut client = match &address.encryption {
        Encryption::None => address.config.connect(NoTls).map_err(unreachable)?,
        Encryption::Verified(roots) => address.config.connect(tls(roots.clone())?).map_err(unreachable)?,
    };
    client
        .batch_execute(
            "SET synchronous_commit = on; SET lock_timeout = '10s'; \
             SET idle_in_transaction_session_timeout = '60s'",
        )
        .map_err(super::sql::store_error)?;
    Ok(client)
}

fn tls(roots: Arc<RootCertStore>) -> Result<MakeRustlsConnect, StoreError> {
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
        matches!(parse(url).unwrap().encryption, Encryption::Verified(_))
    }

    #[test]
    fn a_server_on_this_machine_is_spoken_to_in_the_clear_unless_asked_otherwise() {
        assert!(!encrypted("postgres://u@127.0.0.1/d"));
        assert!(!encrypted("postgres://u@localhost/d"));
        assert!(!encrypted("postgres:///d?host=/run/postgresql"));
        assert!(encrypted("postgres://u@127.0.0.1/d?sslmode=require"));
        assert!(encrypted("postgres://u@db.example/d"));
        assert!(encrypted("postgres://u@db.example/d?sslmode=verify-full"));
        assert!(!encrypted("postgres://u@db.example/d?sslmode=disable"));
    }

    #[test]
    fn a_root_certificate_that_cannot_be_read_is_named_and_the_password_is_not() {
        for url in ["postgres://u:pass@db/d?sslrootcert=/no/such.pem", "postgres://u:pass@db:nope/d"] {
            let error = parse(url).err().unwrap().to_string();
            assert!(!error.contains("pass@"), "{error}");
        }
        let error = parse("postgres://u@db/d?sslrootcert=%2Fno%2Fsuch.pem&sslmode=require").err().unwrap();
        assert!(error.to_string().contains("/no/such.pem"), "{error}");
    }
}

//! Connecting: the address, TLS when it asks for it, what every connection is set to.

use std::sync::Arc;
use std::time::Duration;

use postgres::config::SslMode;
use postgres::{Client, Config, NoTls};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::StoreError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the address; the password in it never reaches a message.
pub(super) fn parse(url: &str) -> Result<Config, StoreError> {
    let mut config: Config = url
        .parse()
        .map_err(|_| StoreError::unavailable("the database address is not a valid postgres:// URL"))?;
    config.application_name("baton");
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    Ok(config)
}

/// Opens a connection.
pub(super) fn connect(config: &Config) -> Result<Client, StoreError> {
    let unreachable = |error: postgres::Error| StoreError::Unavailable {
        message: "could not connect to the PostgreSQL server".into(),
        source: Some(error.into()),
    };
    let mut client = match config.get_ssl_mode() {
        SslMode::Disable => config.connect(NoTls).map_err(unreachable)?,
        _ => config.connect(tls()).map_err(unreachable)?,
    };
    client
        .batch_execute(
            "SET synchronous_commit = on; SET lock_timeout = '10s'; \
             SET idle_in_transaction_session_timeout = '60s'",
        )
        .map_err(super::sql::store_error)?;
    Ok(client)
}

fn tls() -> MakeRustlsConnect {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_root_certificates(roots).with_no_client_auth());
    match builder {
        Ok(config) => MakeRustlsConnect::new(config),
        // The provider above supports the default versions; this arm keeps the type honest without a panic.
        Err(_) => MakeRustlsConnect::new(
            ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
        ),
    }
}

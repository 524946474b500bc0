//! TLS: a server with a certificate of a private authority, which is trusted if its file is configured.
//!
//! The files in `tls/` are for this test only: an authority whose private key was discarded, and a server certificate
//! for 127.0.0.1.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use baton_llm::{Anthropic, AnthropicConfig, Compressor};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::fixture::{anthropic_config, bash, outage};

fn file(name: &str) -> PathBuf {
    Path::new("tests/it/tls").join(name)
}

/// Answers one request over TLS with a valid answer.
fn serve_once() -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server-key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let connection = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, stream);
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        while !seen.ends_with(b"}") {
            match stream.read(&mut buffer) {
                Ok(count) if count > 0 => seen.extend_from_slice(&buffer[..count]),
                _ => return,
            }
        }
        let text = r#"{"title":"t","summary":"s"}"#;
        let body = serde_json::json!({ "content": [{ "type": "text", "text": text }] }).to_string();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream.flush().unwrap();
    });
    (url, server)
}

#[test]
fn configured_private_authority_is_trusted() {
    let (url, server) = serve_once();
    let config = AnthropicConfig { ca_file: Some(file("ca.pem")), ..anthropic_config(&url) };
    let compression = Anthropic::new(&config).unwrap().compress(&bash("x")).unwrap();
    assert_eq!(compression.observation.title, "t");
    server.join().unwrap();
}

#[test]
fn an_unknown_authority_is_an_outage() {
    let (url, server) = serve_once();
    let outage = outage(&Anthropic::new(&anthropic_config(&url)).unwrap());
    assert!(outage.message.contains("certificate"), "{}", outage.message);
    server.join().unwrap();
}

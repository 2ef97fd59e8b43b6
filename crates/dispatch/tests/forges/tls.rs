//! A forge over TLS: it must prove itself with a certificate that is believed.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tenure_core::time::Timestamp;
use tenure_dispatch::connect;
use tenure_forges::Secret;
use tenure_forges::api::{ApiError, count_roots};

const CA: &[u8] = include_bytes!("tls/ca.pem");
const SERVER: &[u8] = include_bytes!("tls/server.pem");
const KEY: &[u8] = include_bytes!("tls/server.key");

fn now() -> Timestamp {
    Timestamp(1_795_000_000_000)
}

/// A Forgejo that proves itself with the certificate of the tests.
fn start() -> String {
    let chain = vec![CertificateDer::from_pem_slice(SERVER).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut tls = StreamOwned::new(connection, stream);
            let mut head = [0; 4096];
            // A client that does not believe the certificate ends the connection here.
            if tls.read(&mut head).is_err() {
                continue;
            }
            let body = r#"{"login": "bot", "id": 9}"#;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            tls.write_all(answer.as_bytes()).unwrap();
            tls.flush().unwrap();
        }
    });
    format!("https://localhost:{port}")
}

#[test]
fn a_forge_is_believed_by_the_certificates_that_are_given_and_by_no_others() {
    let url = start();
    let token = Secret::new("t0ken").unwrap();
    let trusting = connect("forgejo", &url, &token, Some(CA), now).unwrap();
    assert_eq!(trusting.own_account().unwrap().login, "bot");
    let strange = connect("forgejo", &url, &token, None, now).unwrap();
    let error = strange.own_account().unwrap_err();
    assert!(matches!(error, ApiError::Unreachable { .. }), "{error}");
    assert!(error.to_string().to_lowercase().contains("cert"), "{error}");
}

#[test]
fn certificates_are_counted_and_what_is_none_is_refused() {
    assert_eq!(count_roots(CA), Some(1));
    assert_eq!(count_roots(&[CA, SERVER].concat()), Some(2));
    assert_eq!(count_roots(b""), None);
    assert_eq!(count_roots(b"no certificate"), None);
    assert_eq!(count_roots(KEY), None, "a key");
}

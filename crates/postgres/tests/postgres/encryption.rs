//! TLS to a server.

use tenure_core::store::StoreError;
use tenure_postgres::PostgresStore;
use tenure_postgres::migrate;
use tenure_store::server::{Access, PostgresUrl};
use tenure_testkit::conformance::sample::with_sessions;
use tenure_testkit::postgres::{PostgresServer, certificate};

use super::relayed::Relayed;
use super::support::{access, process};

/// A server with the certificate for `localhost`.
fn encrypted() -> PostgresServer {
    let server = PostgresServer::encrypted();
    migrate(&access(&server.url("tenure"))).unwrap();
    server
}

fn connect(
    server: &PostgresServer,
    host: &str,
    mode: &str,
    roots: Option<&str>,
) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(access_by(server, host, mode, roots), process(), None)
}

fn access_by(server: &PostgresServer, host: &str, mode: &str, roots: Option<&str>) -> Access {
    let mut url = server.tcp_url(Some(server.password()), "tenure");
    url = url.replace("127.0.0.1", host);
    url.push_str(&format!("&sslmode={mode}"));
    if roots.is_some() {
        url.push_str("&sslrootcert=/given");
    }
    let url = PostgresUrl::parse(&url).unwrap();
    Access {
        password: url.password.clone(),
        url,
        root_certificates: roots.map(|name| std::fs::read(certificate(name)).unwrap()),
        through: None,
    }
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_relay_encrypts_and_checks_as_a_client_does() {
    let server = encrypted();
    let access = access_by(&server, "localhost", "verify-full", Some("ca.pem"));
    let relayed = Relayed::to(access);
    with_sessions(&mut relayed.open(), [1]);
    let encrypted = server.ask("SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'tenure' AND ssl");
    assert!(!encrypted.is_empty());
    let access = access_by(&server, "localhost", "verify-full", Some("other.pem"));
    let text = Relayed::to(access).try_open().unwrap_err().to_string();
    assert!(text.contains("certificate"), "{text}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_certificate_is_checked_as_far_as_the_mode_asks() {
    let server = encrypted();
    for (host, mode, roots) in [
        ("127.0.0.1", "require", None),
        ("127.0.0.1", "verify-ca", Some("ca.pem")),
        ("localhost", "verify-full", Some("ca.pem")),
    ] {
        let opened = connect(&server, host, mode, roots);
        assert!(opened.is_ok(), "{host} {mode}: {opened:?}");
    }
    with_sessions(
        &mut connect(&server, "localhost", "verify-full", Some("ca.pem")).unwrap(),
        [1],
    );
    for (host, mode, roots, says) in [
        (
            "127.0.0.1",
            "verify-full",
            "ca.pem",
            "its certificate is for localhost",
        ),
        ("localhost", "verify-ca", "other.pem", "authority"),
        ("localhost", "verify-full", "other.pem", "authority"),
        ("localhost", "verify-full", "README.md", "sslrootcert"),
    ] {
        let text = connect(&server, host, mode, Some(roots)).unwrap_err();
        let text = text.to_string();
        assert!(text.contains(says), "{host} {mode} {roots}: {text}");
        assert!(!text.contains(server.password()), "{text}");
    }
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_server_without_encryption_is_refused_when_it_is_required() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    let url = format!(
        "{}&sslmode=require",
        server.tcp_url(Some(server.password()), &schema)
    );
    let text = super::support::try_open(&url, None)
        .unwrap_err()
        .to_string();
    assert!(text.to_lowercase().contains("tls"), "{text}");
}

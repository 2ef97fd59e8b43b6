//! TLS to a server.

use std::path::{Path, PathBuf};

use tenure_core::store::StoreError;
use tenure_store::PostgresStore;
use tenure_store::postgres::{Access, PostgresUrl, migrate};
use tenure_testkit::conformance::sample::with_sessions;
use tenure_testkit::postgres::Server;

use super::support::{access, process};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/postgres/tls")
        .join(name)
}

/// A server with the certificate for `localhost`.
fn encrypted() -> Server {
    // The server takes a key only from a file that nobody else can read.
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("server.key");
    std::fs::copy(file("server.key"), &key).unwrap();
    let private = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
    std::fs::set_permissions(&key, private).unwrap();
    let settings = [
        "ssl = on".to_owned(),
        format!("ssl_cert_file = '{}'", file("server.pem").display()),
        format!("ssl_key_file = '{}'", key.display()),
    ];
    let server = Server::own(&settings.each_ref().map(String::as_str));
    migrate(&access(&server.url("tenure"))).unwrap();
    server
}

fn connect(
    server: &Server,
    host: &str,
    mode: &str,
    roots: Option<&str>,
) -> Result<PostgresStore, StoreError> {
    let mut url = server.tcp_url(Some(server.password()), "tenure");
    url = url.replace("127.0.0.1", host);
    url.push_str(&format!("&sslmode={mode}"));
    if roots.is_some() {
        url.push_str("&sslrootcert=/given");
    }
    let url = PostgresUrl::parse(&url).unwrap();
    let access = Access {
        password: url.password.clone(),
        url,
        root_certificates: roots.map(|name| std::fs::read(file(name)).unwrap()),
    };
    PostgresStore::open(access, process(), None)
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
        ("127.0.0.1", "verify-full", "ca.pem", "not valid for name"),
        ("localhost", "verify-ca", "other.pem", "certificate"),
        ("localhost", "verify-full", "other.pem", "certificate"),
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
    let server = Server::shared();
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

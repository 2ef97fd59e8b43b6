use super::*;

fn parsed(text: &str) -> PostgresUrl {
    PostgresUrl::parse(text).unwrap()
}

fn places(text: &str) -> Vec<String> {
    parsed(text).addresses.iter().map(shown_address).collect()
}

#[test]
fn every_part_is_read() {
    let url = parsed(
        "postgresql://ann:p%40ss@db.example:6432/work?schema=team_1&sslmode=verify-full&sslrootcert=/ca.pem&\
         password_file=/p",
    );
    assert_eq!(url.user.as_deref(), Some("ann"));
    assert_eq!(url.password.as_ref().unwrap().reveal(), "p@ss");
    assert_eq!(url.database.as_deref(), Some("work"));
    assert_eq!(
        (url.schema.as_str(), url.ssl),
        ("team_1", SslMode::VerifyFull)
    );
    assert_eq!(url.password_file.as_deref(), Some("/p"));
    assert_eq!(
        url.location(),
        "postgres://ann@db.example:6432/work?schema=team_1"
    );
}

#[test]
fn hosts_are_as_libpq_writes_them() {
    assert_eq!(places("postgres:///work"), ["localhost"]);
    assert_eq!(
        places("postgres://a,b:1,[::1]:2,[fe80::1]/w?sslmode=require"),
        ["a", "b:1", "[::1]:2", "[fe80::1]"]
    );
    assert_eq!(places("postgres://%2Frun%2Fpg/w"), ["/run/pg"]);
    assert_eq!(places("postgres:///w?host=/run/pg&port=7"), ["/run/pg:7"]);
}

#[test]
fn another_machine_needs_encryption_unless_the_url_says_otherwise() {
    assert_eq!(parsed("postgres://db/w").ssl, SslMode::Require);
    assert_eq!(
        parsed("postgres://db/w?sslmode=disable").ssl,
        SslMode::Disable
    );
    assert_eq!(parsed("postgres://127.0.0.1/w").ssl, SslMode::Disable);
    assert_eq!(
        parsed("postgres://[::1]/w?sslmode=prefer").ssl,
        SslMode::Disable
    );
    assert_eq!(parsed("postgres://127.0.0.1,db/w").ssl, SslMode::Require);
    assert_eq!(
        parsed("postgres://db/w?sslrootcert=/ca.pem").ssl,
        SslMode::VerifyFull
    );
}

#[test]
fn an_error_names_the_part_and_never_the_password() {
    for (text, part) in [
        ("mysql://ann:secret@db/w", "scheme"),
        ("postgres://ann:secret@db:0/w", "port"),
        ("postgres://ann:secret@db:70000/w", "port"),
        ("postgres://ann:secret@db:port/w", "port"),
        ("postgres://ann:secret@[::1/w", "host"),
        ("postgres://ann:secret@[db]/w", "host"),
        ("postgres://ann:secret@db,/w", "host"),
        ("postgres://ann:secret@d b/w", "host"),
        ("postgres://an%zz:secret@db/w", "user"),
        ("postgres://ann:secret%@db/w", "password"),
        ("postgres://ann:secret%00@db/w", "password"),
        ("postgres://ann:secret@db/a/b", "database"),
        ("postgres://ann:secret@db/w?sslmode=maybe", "sslmode"),
        ("postgres://ann:secret@db/w?sslmode=prefer", "sslmode"),
        ("postgres://ann:secret@db/w?sslmode=verify-ca", "sslmode"),
        ("postgres://ann:secret@db/w?schema=a;drop", "schema"),
        ("postgres://ann:secret@db/w?schema=pg_x", "schema"),
        ("postgres://ann:secret@db/w?schema=", "schema"),
        ("postgres://ann:secret@db/w?colour=red", "query"),
        ("postgres://ann:secret@db/w?schema", "query"),
        ("postgres://ann:secret@db/w#x", ""),
        ("postgres://ann:x/secret", "port"),
        ("postgres://ann:x?secret", "port"),
        ("host=db password=secret colour=red", "query"),
        ("host=db password='secret", "query"),
        ("host=db port=secret", "port"),
    ] {
        let error = PostgresUrl::parse(text).unwrap_err();
        assert_eq!(error.part.unwrap_or_default(), part, "{text}: {error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let url = parsed("postgres://ann:secret@db/w");
    assert!(!format!("{url:?} {}", url.location()).contains("secret"));
}

#[test]
fn a_password_may_contain_what_ends_other_parts() {
    for password in ["a/b", "a?b", "a@b", "a/b?c", "?/"] {
        let url = parsed(&format!("postgres://ann:{password}@db:1/w?schema=s"));
        assert_eq!(url.password.as_ref().unwrap().reveal(), password);
        assert_eq!(url.location(), "postgres://ann@db:1/w?schema=s");
    }
    let url = parsed("postgres:///w?user=a%40b");
    assert_eq!((url.user.as_deref(), url.password), (Some("a@b"), None));
}

#[test]
fn no_form_of_an_address_has_a_nul() {
    for text in [
        "host=db dbname=w user='an\0n'",
        "postgres://an\0n@db/w",
        "postgres://an%00n@db/w",
    ] {
        assert!(PostgresUrl::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn words_name_only_hosts_that_a_url_can_name() {
    for host in ["db:5432", "a:b?c", "a b", ""] {
        let text = format!("dbname=w host='{host}'");
        assert!(PostgresUrl::parse(&text).is_err(), "{text}");
    }
    let many = format!("dbname=w host={}", vec!["db"; 100].join(","));
    assert!(PostgresUrl::parse(&many).is_err());
    for host in ["db", "::1", "/run/postgresql"] {
        let url = PostgresUrl::parse(&format!("dbname=w host={host}")).unwrap();
        let again = PostgresUrl::parse(&url.without_password()).unwrap();
        assert_eq!(again, url);
    }
}

#[test]
fn a_database_may_have_a_slash_in_its_name() {
    for text in ["dbname=a/b host=db", "postgres://db/a%2Fb"] {
        let url = PostgresUrl::parse(text).unwrap();
        assert_eq!(url.database.as_deref(), Some("a/b"));
        let again = PostgresUrl::parse(&url.without_password()).unwrap();
        assert_eq!(again, url);
    }
}

#[test]
fn words_are_an_address_too() {
    let text = "host = db user=ann password='a b\\'c' dbname=w sslmode=require";
    assert!(PostgresUrl::is_one(text));
    let url = parsed(text);
    assert_eq!(url.password.as_ref().unwrap().reveal(), "a b'c");
    assert_eq!(url.location(), "postgres://ann@db/w");
    for file in ["a=b", "/x/host=y", "tenure.db", "./host=y"] {
        assert!(!PostgresUrl::is_one(file), "{file}");
    }
}

#[test]
fn an_address_is_written_without_its_password_and_read_again() {
    for text in [
        "postgres://ann:secret@db:1,[::1]/w?sslmode=require&schema=s&password_file=/a@b",
        "postgres://a%40b:secret@/w?host=/run/pg&port=7",
        "postgres:///w",
    ] {
        let mut url = parsed(text);
        let written = url.without_password();
        assert!(!written.contains("secret"), "{written}");
        url.password = None;
        assert_eq!(parsed(&written), url, "{written}");
    }
}

/// The parts as tokio-postgres reads them.
fn of_driver(text: &str) -> PostgresUrl {
    use tokio_postgres::config::{Config, Host};
    let config: Config = text.parse().unwrap();
    let host = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(dir) => dir.display().to_string(),
    };
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied();
    let hosts = config.get_hosts().iter().enumerate();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    PostgresUrl {
        addresses: hosts
            .map(|(at, name)| Address {
                host: host(name),
                port: port(at).unwrap_or(DEFAULT_PORT),
            })
            .collect(),
        user: config.get_user().map(str::to_owned),
        password: config.get_password().map(|bytes| Secret(text(bytes))),
        database: config.get_dbname().map(str::to_owned),
        ..PostgresUrl::nowhere()
    }
}

#[test]
fn the_driver_reads_the_same_addresses_alike() {
    for text in [
        "postgres://ann:p%40ss@db.example:6432/work",
        "postgresql://db",
        "postgres://ann@db,other:1,[::1]:2/w",
        "postgres://ann:a/b@db:1/w",
        "postgres://ann:a?b@db:1/w",
        "postgres://%2Frun%2Fpg:7/w",
        "postgres://ann@/w?host=/run/pg&port=7",
        "postgres://db/w?user=a%40b&password=c%20d&dbname=other",
        "host=db user=ann password='a b\\'c' dbname=w",
        "host = /run/pg  port = 7",
        "host=db,other port=7 user=ann",
    ] {
        let own = PostgresUrl {
            ssl: SslMode::Disable,
            ..parsed(text)
        };
        let driver = of_driver(text);
        assert_eq!(own.addresses, driver.addresses, "{text}");
        let secret = |url: &PostgresUrl| url.password.as_ref().map(|one| one.reveal().to_owned());
        assert_eq!(secret(&own), secret(&driver), "{text}");
        assert_eq!(own, driver, "{text}");
    }
}

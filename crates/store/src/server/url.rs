//! The URL of a store: where it is, as whom, and how the connection is protected.
//!
//! It is written as for libpq: several hosts, IPv6 in brackets, a socket directory as `?host=`.
//! Every error names the part of the URL that is wrong and shows none of it, because where a password ends is not certain.
//! Nothing here opens a file or a connection.

use std::fmt;
use std::net::IpAddr;

/// How many hosts a URL may name.
const MAX_HOSTS: usize = 16;
const DEFAULT_PORT: u16 = 5432;
const DEFAULT_SCHEMA: &str = "tenure";
/// PostgreSQL truncates longer names.
const MAX_NAME: usize = 63;

/// What is wrong with a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadUrl {
    /// The part that is wrong; none for the whole.
    pub part: Option<&'static str>,
    pub why: String,
}

impl fmt::Display for BadUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            None => write!(f, "the store's URL {}", self.why),
            Some(part) => write!(f, "the {part} of the store's URL {}", self.why),
        }
    }
}

/// How a connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// Not encrypted.
    Disable,
    /// Encrypted, but the server is not verified.
    Require,
    /// Encrypted, and the certificate is signed by the named authority.
    VerifyCa,
    /// The same, and the certificate is for this host.
    VerifyFull,
}

impl SslMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// One address of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// A host name, an IP address, or the directory of a socket.
    pub host: String,
    pub port: u16,
}

impl Address {
    /// Whether it is a socket or this machine.
    fn is_local(&self) -> bool {
        if self.host.starts_with('/') {
            return true;
        }
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// A password that no output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    pub addresses: Vec<Address>,
    pub user: Option<String>,
    pub password: Option<Secret>,
    /// The file that contains only the password.
    pub password_file: Option<String>,
    /// A password file in libpq's format.
    pub pass_file: Option<String>,
    pub database: Option<String>,
    pub schema: String,
    pub ssl: SslMode,
    /// The file with the certificates that may sign the server's.
    pub root_certificates: Option<String>,
}

impl PostgresUrl {
    /// Whether a store's name is an address of this backend: a URL, or words as `host=db dbname=work`.
    pub fn is_one(text: &str) -> bool {
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        let first = text.trim_start().split_once('=');
        is_url || first.is_some_and(|(name, _)| WORDS.contains(&name.trim_end()))
    }

    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let Some(rest) = text
            .strip_prefix("postgres://")
            .or_else(|| text.strip_prefix("postgresql://"))
        else {
            if Self::is_one(text) {
                return Self::parse_words(text);
            }
            return Err(bad("scheme", "is not postgres or postgresql"));
        };
        if rest.contains('#') {
            let why = "contains an unescaped #; write %23";
            return Err(BadUrl {
                part: None,
                why: why.to_owned(),
            });
        }
        // A password may contain unescaped characters: what stands before the @ is not searched for the others.
        let (user, rest) = match credentials_end(rest) {
            Some(at) => (Some(&rest[..at]), &rest[at + 1..]),
            None => (None, rest),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, database) = match rest.split_once('/') {
            Some((hosts, database)) => (hosts, Some(database)),
            None => (rest, None),
        };
        let (user, password) = match user.map(|user| user.split_once(':').unwrap_or((user, ""))) {
            Some((user, password)) => (
                decoded("user", user)?,
                decoded("password", password)?.map(Secret),
            ),
            None => (None, None),
        };
        let mut url = Self {
            addresses: addresses(hosts)?,
            user,
            password,
            database: decoded("database", database.unwrap_or_default())?,
            ..Self::nowhere()
        };
        if database.is_some_and(|name| name.contains('/')) {
            return Err(bad("database", "contains a /; write %2F"));
        }
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let pair = pair.split_once('=');
            let (name, value) =
                pair.ok_or_else(|| bad("query", "has a parameter without a value"))?;
            let value = decoded("query", value)?.unwrap_or_default();
            pairs.push((name.to_owned(), value));
        }
        let ssl = url.take_pairs(pairs)?;
        url.ssl = url.checked_ssl(ssl.as_deref())?;
        Ok(url)
    }

    /// The address without its password, in a form that can be read again.
    pub fn without_password(&self) -> String {
        let hosts = self.addresses.iter().map(|at| Address {
            host: encoded_host(&at.host),
            port: at.port,
        });
        let hosts: Vec<String> = hosts.map(|at| shown_address(&at)).collect();
        let user = self
            .user
            .as_deref()
            .map(|user| format!("{}@", encoded(user)));
        let pairs = [
            (
                "schema",
                Some(&self.schema).filter(|name| *name != DEFAULT_SCHEMA),
            ),
            ("sslmode", Some(&self.ssl.as_str().to_owned())),
            ("sslrootcert", self.root_certificates.as_ref()),
            ("password_file", self.password_file.as_ref()),
            ("passfile", self.pass_file.as_ref()),
        ]
        .map(|(name, value)| value.map(|value| format!("{name}={}", encoded(value))));
        let pairs: Vec<String> = pairs.into_iter().flatten().collect();
        format!(
            "postgres://{}{}/{}?{}",
            user.unwrap_or_default(),
            hosts.join(","),
            encoded(self.database.as_deref().unwrap_or_default()).replace('/', "%2F"),
            pairs.join("&"),
        )
    }

    /// An address of which only the defaults are known.
    fn nowhere() -> Self {
        Self {
            addresses: Vec::new(),
            user: None,
            password: None,
            password_file: None,
            pass_file: None,
            database: None,
            schema: DEFAULT_SCHEMA.to_owned(),
            ssl: SslMode::Disable,
            root_certificates: None,
        }
    }

    /// Reads `host=db user=ann password='a b'`.
    fn parse_words(text: &str) -> Result<Self, BadUrl> {
        if text.contains('\0') {
            let why = "contains a NUL character".to_owned();
            return Err(BadUrl { part: None, why });
        }
        let mut url = Self {
            addresses: addresses("")?,
            ..Self::nowhere()
        };
        let ssl = url.take_pairs(words(text)?)?;
        url.ssl = url.checked_ssl(ssl.as_deref())?;
        Ok(url)
    }

    /// Takes the parameters; returns the requested mode of protection.
    fn take_pairs(&mut self, pairs: Vec<(String, String)>) -> Result<Option<String>, BadUrl> {
        let mut ssl = None;
        let mut port = None;
        for (name, value) in pairs {
            match name.as_str() {
                "sslmode" => ssl = Some(value),
                "sslrootcert" => self.root_certificates = some(value),
                "password_file" => self.password_file = some(value),
                "passfile" => self.pass_file = some(value),
                "schema" => self.schema = checked_schema(value)?,
                "host" => self.addresses = addresses_of(&value)?,
                "port" => port = Some(checked_port(&value)?),
                "user" => self.user = some(value),
                "password" => self.password = some(value).map(Secret),
                "dbname" => self.database = some(value),
                // tenure sets these itself: see the connection.
                "application_name" | "connect_timeout" | "target_session_attrs" => {}
                _ => return Err(bad("query", "has an unknown parameter")),
            }
        }
        if let Some(port) = port {
            self.addresses.iter_mut().for_each(|at| at.port = port);
        }
        Ok(ssl)
    }

    fn checked_ssl(&self, asked: Option<&str>) -> Result<SslMode, BadUrl> {
        let is_local = self.addresses.iter().all(Address::is_local);
        let mode = match asked {
            Some("disable") => SslMode::Disable,
            Some("require") => SslMode::Require,
            Some("verify-ca") => SslMode::VerifyCa,
            Some("verify-full") => SslMode::VerifyFull,
            Some(mode @ ("allow" | "prefer")) if !is_local => {
                let why = format!(
                    "is {mode}, which may send data to another machine unencrypted; use require, verify-ca or \
                     verify-full, or disable if that is intended"
                );
                return Err(bad("sslmode", why));
            }
            Some("allow" | "prefer") => SslMode::Disable,
            Some(_) => {
                let why = "is unknown; expected disable, require, verify-ca or verify-full";
                return Err(bad("sslmode", why));
            }
            None if self.root_certificates.is_some() => SslMode::VerifyFull,
            None if is_local => SslMode::Disable,
            None => SslMode::Require,
        };
        let verifies = matches!(mode, SslMode::VerifyCa | SslMode::VerifyFull);
        if verifies && self.root_certificates.is_none() {
            let why = format!(
                "is {}, which needs sslrootcert=FILE with the certificates to trust",
                mode.as_str()
            );
            return Err(bad("sslmode", why));
        }
        Ok(mode)
    }

    /// Its location for people: the URL without its password and parameters, except for the schema.
    pub fn location(&self) -> String {
        let mut shown = "postgres://".to_owned();
        if let Some(user) = &self.user {
            shown.push_str(user);
            shown.push('@');
        }
        let hosts: Vec<String> = self.addresses.iter().map(shown_address).collect();
        shown.push_str(&hosts.join(","));
        shown.push('/');
        shown.push_str(self.database.as_deref().unwrap_or_default());
        if self.schema != DEFAULT_SCHEMA {
            shown.push_str("?schema=");
            shown.push_str(&self.schema);
        }
        shown
    }
}

fn shown_address(at: &Address) -> String {
    let host = if at.host.contains(':') {
        format!("[{}]", at.host)
    } else {
        at.host.clone()
    };
    if at.port == DEFAULT_PORT {
        host
    } else {
        format!("{host}:{}", at.port)
    }
}

/// The names that words may begin with.
const WORDS: &[&str] = &[
    "host",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "passfile",
    "schema",
];

/// Where the @ after user and password is: the last one before the parameters, which begin after the first one.
fn credentials_end(rest: &str) -> Option<usize> {
    let first = rest.find('@')?;
    let end = rest[first..].find('?').map_or(rest.len(), |at| first + at);
    rest[..end].rfind('@')
}

/// Words as libpq reads them: `name = value`, with quotes around a value that contains spaces.
fn words(text: &str) -> Result<Vec<(String, String)>, BadUrl> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let pair = rest.split_once('=');
        let (name, value) = pair.ok_or_else(|| bad("query", "has a parameter without a value"))?;
        let value = value.trim_start();
        let is_quoted = value.starts_with('\'');
        let mut read = String::new();
        let mut letters = value.char_indices().skip(usize::from(is_quoted));
        let mut end = None;
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => read.extend(letters.next().map(|(_, letter)| letter)),
                '\'' if is_quoted => {
                    end = Some(at + 1);
                    break;
                }
                letter if letter.is_whitespace() && !is_quoted => {
                    end = Some(at);
                    break;
                }
                letter => read.push(letter),
            }
        }
        if is_quoted && end.is_none() {
            return Err(bad("query", "has a quote without an end"));
        }
        pairs.push((name.trim_end().to_owned(), read));
        rest = value[end.unwrap_or(value.len())..].trim_start();
    }
    Ok(pairs)
}

/// The text with everything escaped that could end a part.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let mut encoded = String::new();
    for byte in text.bytes() {
        if plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// A host; an IPv6 address is written in brackets, a socket directory escaped.
fn encoded_host(host: &str) -> String {
    if host.contains(':') {
        host.to_owned()
    } else {
        encoded(host).replace('/', "%2F")
    }
}

fn bad(part: &'static str, why: impl Into<String>) -> BadUrl {
    BadUrl {
        part: Some(part),
        why: why.into(),
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn addresses(hosts: &str) -> Result<Vec<Address>, BadUrl> {
    if hosts.is_empty() {
        return Ok(vec![Address {
            host: "localhost".to_owned(),
            port: DEFAULT_PORT,
        }]);
    }
    split(hosts)?.map(address).collect()
}

fn split(hosts: &str) -> Result<std::str::Split<'_, char>, BadUrl> {
    let parts = hosts.split(',');
    let count = parts.clone().count();
    if count > MAX_HOSTS {
        let why = format!("names {count} hosts; at most {MAX_HOSTS} are allowed");
        return Err(bad("host", why));
    }
    Ok(parts)
}

/// Hosts in a parameter, without ports.
fn addresses_of(hosts: &str) -> Result<Vec<Address>, BadUrl> {
    let one = |host: &str| {
        check_host(host)?;
        // The form of a URL has no other name with one.
        if host.contains(':') && host.parse::<IpAddr>().is_err() {
            return Err(bad("host", "contains a : and is no IPv6 address"));
        }
        Ok(Address {
            host: host.to_owned(),
            port: DEFAULT_PORT,
        })
    };
    split(hosts)?.map(one).collect()
}

fn check_host(host: &str) -> Result<(), BadUrl> {
    if host.is_empty() {
        return Err(bad("host", "is empty"));
    }
    if host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(bad("host", "contains white space"));
    }
    Ok(())
}

fn address(text: &str) -> Result<Address, BadUrl> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest
            .split_once(']')
            .ok_or_else(|| bad("host", "has a [ without a ]"))?;
        if host.parse::<IpAddr>().is_err() {
            return Err(bad("host", "has no IPv6 address between [ and ]"));
        }
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port),
            None if rest.is_empty() => None,
            None => return Err(bad("host", "has something other than a port after the ]")),
        };
        (host.to_owned(), port)
    } else {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        let host = decoded("host", host)?.unwrap_or_default();
        (host, port)
    };
    check_host(&host)?;
    let port = match port {
        Some(port) => checked_port(port)?,
        None => DEFAULT_PORT,
    };
    Ok(Address { host, port })
}

fn checked_port(text: &str) -> Result<u16, BadUrl> {
    match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(bad("port", "is not a number from 1 to 65535")),
    }
}

/// A schema's name is inserted into statements as it is, so only plain names are allowed.
fn checked_schema(name: String) -> Result<String, BadUrl> {
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if begins && name.chars().all(fits) && name.len() <= MAX_NAME && !name.starts_with("pg_") {
        return Ok(name);
    }
    let why = format!(
        "is not a plain name; expected at most {MAX_NAME} lower-case letters, digits and underscores, not pg_…"
    );
    Err(bad("schema", why))
}

/// Decodes `%XX`; nothing if the text is empty.
fn decoded(part: &'static str, text: &str) -> Result<Option<String>, BadUrl> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (digit(rest.next()), digit(rest.next())) {
            (Some(high), Some(low)) => bytes.push(u8::try_from(high * 16 + low).unwrap_or(0)),
            _ => {
                return Err(bad(
                    part,
                    "has a % without two hexadecimal digits after it; write %25 for the character",
                ));
            }
        }
    }
    if bytes.contains(&0) {
        return Err(bad(part, "contains %00"));
    }
    let text = String::from_utf8(bytes).map_err(|_| bad(part, "is not UTF-8"))?;
    Ok(some(text))
}

#[cfg(test)]
mod tests;

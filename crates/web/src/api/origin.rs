//! Which Host and Origin are ours.
//!
//! A page of another site cannot read our answers, but it can make a browser send requests, and a name that it controls
//! can be made to resolve to this machine. So every request must name us as its host, and one that a browser sends with a
//! body must come from our own page. The API needs no cookie, so a program that sends no Origin is none of a browser's.

use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderName, Uri, header};

/// The hosts and origins that a server answers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origins {
    hosts: Vec<String>,
    origins: Vec<String>,
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl Origins {
    /// Those of an address of this machine.
    pub fn of_address(address: SocketAddr) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string(), format!("localhost:{port}")];
        if port == 80 {
            let bare = hosts
                .iter()
                .map(|host| host.trim_end_matches(":80").to_owned());
            hosts.extend(bare.collect::<Vec<_>>());
        }
        Self::of_hosts("http", hosts)
    }

    /// Those of a socket, over which clients make up a host.
    pub fn of_socket() -> Self {
        Self::of_hosts("http", vec!["localhost".to_owned()])
    }

    /// The one that a proxy has, from an address such as `https://agents.example.org`. Only TLS keeps a token secret.
    pub fn of_public(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        let (Some("https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err("expected https://HOST".to_owned());
        };
        if !matches!(uri.path(), "" | "/")
            || uri.query().is_some()
            || authority.as_str().contains('@')
        {
            return Err("expected https://HOST, and nothing behind it".to_owned());
        }
        let host = authority.as_str().to_ascii_lowercase();
        let host = host.strip_suffix(":443").unwrap_or(&host).to_owned();
        Ok(Self::of_hosts("https", vec![host]))
    }

    fn of_hosts(scheme: &str, hosts: Vec<String>) -> Self {
        let origins = hosts.iter().map(|host| format!("{scheme}://{host}"));
        Self {
            origins: origins.collect(),
            hosts,
        }
    }

    /// The address of our page.
    pub fn url(&self) -> &str {
        self.origins.first().map_or("", String::as_str)
    }

    /// Whether a request names us, in its one Host header and in its target, if that names a host too.
    pub fn is_our_host(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return false;
        };
        let is_ours = |host: &str| {
            let host = host.to_ascii_lowercase();
            self.hosts.contains(&host)
        };
        let target = uri
            .authority()
            .is_none_or(|target| is_ours(target.as_str()));
        target && host.to_str().is_ok_and(is_ours)
    }

    /// Whether a browser says that another site's page sent a request.
    pub fn is_foreign(&self, headers: &HeaderMap) -> bool {
        let is_ours = |origin: &str| self.origins.iter().any(|ours| ours == origin);
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
        origins.any(|origin| !origin.to_str().is_ok_and(is_ours))
            || sites.any(|site| site != "same-origin")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(name.clone(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_one_host_that_is_ours_counts() {
        let ours = Origins::of_address("127.0.0.1:7420".parse().unwrap());
        let plain: Uri = "/api/v1/me".parse().unwrap();
        let asks = |uri: &Uri, hosts: &[&'static str]| {
            let all: Vec<_> = hosts.iter().map(|host| (header::HOST, *host)).collect();
            ours.is_our_host(uri, &headers(&all))
        };
        assert!(asks(&plain, &["127.0.0.1:7420"]));
        assert!(asks(&plain, &["LOCALHOST:7420"]));
        let foreign = [
            "evil.example",
            "evil.example:7420",
            "127.0.0.1",
            "127.0.0.1:7421",
            "[::1]:7420",
            "localhost:7420.evil.example",
            "user@127.0.0.1:7420",
            "",
        ];
        for host in foreign {
            assert!(!asks(&plain, &[host]), "{host}");
        }
        assert!(!asks(&plain, &[]), "missing");
        assert!(!asks(&plain, &["127.0.0.1:7420", "evil.example"]));
        let absolute: Uri = "http://evil.example/api/v1/me".parse().unwrap();
        assert!(!asks(&absolute, &["127.0.0.1:7420"]));
        let absolute: Uri = "http://localhost:7420/".parse().unwrap();
        assert!(asks(&absolute, &["127.0.0.1:7420"]));
    }

    #[test]
    fn an_address_of_ipv6_is_named_in_brackets() {
        let ours = Origins::of_address("[::1]:7420".parse().unwrap());
        let uri = "/".parse().unwrap();
        assert!(ours.is_our_host(&uri, &headers(&[(header::HOST, "[::1]:7420")])));
        assert!(!ours.is_our_host(&uri, &headers(&[(header::HOST, "127.0.0.1:7420")])));
    }

    #[test]
    fn a_browser_must_come_from_our_own_page() {
        let ours = Origins::of_address("127.0.0.1:7420".parse().unwrap());
        let foreign = |all: &[(HeaderName, &'static str)]| ours.is_foreign(&headers(all));
        assert!(!foreign(&[]), "no browser");
        assert!(!foreign(&[
            (header::ORIGIN, "http://127.0.0.1:7420"),
            (SEC_FETCH_SITE, "same-origin")
        ]));
        assert!(foreign(&[(header::ORIGIN, "null")]));
        assert!(foreign(&[(header::ORIGIN, "http://127.0.0.1:7421")]));
        assert!(foreign(&[(header::ORIGIN, "https://127.0.0.1:7420")]));
        for site in ["same-site", "cross-site", "none"] {
            assert!(foreign(&[(SEC_FETCH_SITE, site)]), "{site}");
        }
    }

    #[test]
    fn behind_a_proxy_only_its_address_is_ours() {
        let ours = Origins::of_public("https://Agents.example.org:443/").unwrap();
        assert_eq!(ours.url(), "https://agents.example.org");
        let uri = "/".parse().unwrap();
        assert!(ours.is_our_host(&uri, &headers(&[(header::HOST, "agents.example.org")])));
        assert!(!ours.is_our_host(&uri, &headers(&[(header::HOST, "127.0.0.1:7420")])));
        for url in [
            "http://a.example",
            "https://",
            "a.example",
            "https://a/x",
            "https://u@a",
        ] {
            assert!(Origins::of_public(url).is_err(), "{url}");
        }
    }
}

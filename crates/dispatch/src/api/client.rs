//! Requests to a forge: its token, its limits and its pages.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tenure_core::text;
use tenure_core::time::Timestamp;
use ureq::Agent;
use ureq::http::{Request, Response};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::Access;
use tenure_forges::api::ApiError;

const DEADLINE: Duration = Duration::from_secs(10);
const MAX_ANSWER: u64 = 16 * 1024 * 1024;
/// More pages than the open items of an active repository fill.
const MAX_PAGES: usize = 50;
/// How many seconds to pause if a forge limits requests without naming an end.
const UNNAMED_LIMIT: i64 = 60;
/// Header values below this are a number of seconds left; larger ones are a Unix time.
const LEAST_TIME: i64 = 1_000_000_000;
/// The longest limit that is believed, in seconds.
const MAX_LIMIT: i64 = 3600;

pub(super) struct Client {
    agent: Agent,
    base: String,
    host: String,
    /// The header with the token.
    auth: (&'static str, String),
    now: fn() -> Timestamp,
    limited_until: Mutex<Option<Timestamp>>,
}

pub(super) struct ForgeResponse {
    pub body: Value,
    next: Option<String>,
}

impl Client {
    pub fn new(base: String, header: &'static str, scheme: &str, access: &Access<'_>) -> Self {
        let mut config = Agent::config_builder();
        // Without TLS, only a forge on this machine is contacted, and not through a proxy.
        if !base.starts_with("https://") {
            config = config.proxy(None);
        }
        if let Some(roots) = access.roots.and_then(roots) {
            let roots = RootCerts::new_with_certs(&roots);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        let config = config
            .timeout_global(Some(DEADLINE))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent("tenure")
            .build();
        let host = base.split("://").nth(1).unwrap_or(&base);
        let host = host.split('/').next().unwrap_or(host).to_owned();
        let token = String::from_utf8_lossy(access.token.bytes()).into_owned();
        Self {
            agent: config.into(),
            host,
            base,
            auth: (header, format!("{scheme}{token}")),
            now: access.now,
            limited_until: Mutex::new(None),
        }
    }

    pub fn get(&self, path: &str) -> Result<ForgeResponse, ApiError> {
        self.call("GET", &format!("{}{path}", self.base), None)
    }

    /// The same; `None` if it does not exist.
    pub fn find(&self, path: &str) -> Result<Option<Value>, ApiError> {
        match self.get(path) {
            Ok(answer) => Ok(Some(answer.body)),
            Err(ApiError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All entries of a list, page by page.
    pub fn list(&self, path: &str) -> Result<Vec<Value>, ApiError> {
        self.list_while(path, |_| true)
    }

    /// The same, up to the first entry that is not wanted.
    pub fn list_while(
        &self,
        path: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Value>, ApiError> {
        let mut all = Vec::new();
        let mut next = Some(format!("{}{path}", self.base));
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take() else {
                return Ok(all);
            };
            let answer = self.call("GET", &url, None)?;
            let Value::Array(page) = answer.body else {
                return Err(self.unreadable("it is not a list"));
            };
            for entry in page {
                if !wanted(&entry) {
                    return Ok(all);
                }
                all.push(entry);
            }
            // A link to another server would receive the token.
            next = answer.next.filter(|next| is_below(next, &self.base));
        }
        match next {
            None => Ok(all),
            Some(_) => Err(self.unreadable("the list has too many pages")),
        }
    }

    pub fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, ApiError> {
        let url = format!("{}{path}", self.base);
        let answer = self.call(method, &url, Some(body.to_string()))?;
        Ok(answer.body)
    }

    pub fn unreadable(&self, why: &str) -> ApiError {
        ApiError::Unreadable {
            host: self.host.clone(),
            why: why.to_owned(),
        }
    }

    pub fn missing(&self, what: &str) -> ApiError {
        ApiError::NotFound {
            host: self.host.clone(),
            what: what.to_owned(),
        }
    }

    fn call(
        &self,
        method: &str,
        url: &str,
        body: Option<String>,
    ) -> Result<ForgeResponse, ApiError> {
        self.may_call()?;
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header(self.auth.0, &self.auth.1)
            .header("Accept", "application/json");
        let built = |error: ureq::http::Error| self.unreachable(&error.to_string());
        let sent = match body {
            None => self.agent.run(request.body(()).map_err(built)?),
            Some(body) => {
                let request = request.header("Content-Type", "application/json");
                self.agent.run(request.body(body).map_err(built)?)
            }
        };
        let mut response = sent.map_err(|error| match error {
            ureq::Error::Io(error) => self.unreachable(&error.to_string()),
            other => self.unreachable(&other.to_string()),
        })?;
        self.note_limit(&response);
        let read = response
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER)
            .read_to_vec();
        let bytes = read.map_err(|error| self.unreadable(&error.to_string()))?;
        self.judge(&response, url, &bytes)
    }

    fn judge<B>(
        &self,
        response: &Response<B>,
        url: &str,
        bytes: &[u8],
    ) -> Result<ForgeResponse, ApiError> {
        let (host, status) = (self.host.clone(), response.status().as_u16());
        match status {
            200..=299 if bytes.is_empty() => Ok(ForgeResponse {
                body: Value::Null,
                next: None,
            }),
            200..=299 => {
                let body = serde_json::from_slice(bytes);
                let body = body.map_err(|error| self.unreadable(&error.to_string()))?;
                let next = header(response, "link").and_then(next_page);
                Ok(ForgeResponse { body, next })
            }
            429 => Err(self
                .limited()
                .unwrap_or_else(|| self.limit(header(response, "retry-after")))),
            // GitHub also uses 403 for limits: with a time, or only with a message.
            403 if self.limited().is_some() || says_limit(bytes) => {
                Err(self.limited().unwrap_or_else(|| self.limit(None)))
            }
            401 | 403 => Err(ApiError::Denied { host, status }),
            404 | 410 => {
                let path = url.strip_prefix(&self.base).unwrap_or(url);
                Err(self.missing(path.split('?').next().unwrap_or(path)))
            }
            _ => {
                let told: Value = serde_json::from_slice(bytes).unwrap_or_default();
                let message = told["message"].as_str().unwrap_or("no reason was given");
                let message = text::line(&text::clipped(message, 200)).into_owned();
                Err(ApiError::Failed {
                    host,
                    status,
                    message,
                })
            }
        }
    }

    fn unreachable(&self, why: &str) -> ApiError {
        ApiError::Unreachable {
            host: self.host.clone(),
            why: why.to_owned(),
        }
    }

    /// The error while a limit lasts.
    fn limited(&self) -> Option<ApiError> {
        let until = *self.limited_until.lock().ok()?;
        let until = until.filter(|until| *until > (self.now)())?;
        Some(ApiError::Limited {
            host: self.host.clone(),
            until,
        })
    }

    fn may_call(&self) -> Result<(), ApiError> {
        self.limited().map_or(Ok(()), Err)
    }

    /// Remembers a limit that the answer reports, so that no further request is made until it ends.
    fn note_limit<B>(&self, response: &Response<B>) {
        let status = response.status().as_u16();
        if let Some(after) =
            header(response, "retry-after").filter(|_| matches!(status, 403 | 429 | 503))
        {
            self.limit(Some(after));
            return;
        }
        let named = ["x-ratelimit-", "ratelimit-"].iter().find_map(|prefix| {
            let left = header(response, &format!("{prefix}remaining"))?;
            let reset = header(response, &format!("{prefix}reset"))?;
            (left.trim() == "0")
                .then(|| reset.trim().parse::<i64>().ok())
                .flatten()
        });
        match named {
            // Some forges report the seconds left instead of the time.
            Some(left) if left < LEAST_TIME => drop(self.keep_for(left)),
            Some(reset) => drop(self.keep_until(Timestamp(reset.saturating_mul(1000)))),
            None => {}
        }
    }

    /// Remembers a limit; the error while it lasts.
    fn limit(&self, seconds: Option<&str>) -> ApiError {
        let seconds = seconds.and_then(|text| text.trim().parse::<i64>().ok());
        ApiError::Limited {
            host: self.host.clone(),
            until: self.keep_for(seconds.unwrap_or(UNNAMED_LIMIT)),
        }
    }

    fn keep_for(&self, seconds: i64) -> Timestamp {
        let span = seconds.max(1).saturating_mul(1000);
        self.keep_until(Timestamp((self.now)().0.saturating_add(span)))
    }

    /// Returns when the limit ends.
    fn keep_until(&self, until: Timestamp) -> Timestamp {
        let latest = Timestamp((self.now)().0.saturating_add(MAX_LIMIT * 1000));
        let until = until.min(latest);
        let Ok(mut kept) = self.limited_until.lock() else {
            return until;
        };
        // The longer of two limits counts.
        let until = kept.map_or(until, |before| before.min(latest).max(until));
        *kept = Some(until);
        until
    }
}

/// Whether the message of a refusal describes a limit.
fn says_limit(bytes: &[u8]) -> bool {
    let told: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let message = told["message"].as_str().unwrap_or_default();
    message.to_ascii_lowercase().contains("rate limit")
}

/// The certificates in a PEM text; `None` if there are none, or if one of them cannot be read.
fn roots(pem: &[u8]) -> Option<Vec<Certificate<'static>>> {
    let mut found = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(one) = item.ok()? {
            found.push(one);
        }
    }
    (!found.is_empty()).then_some(found)
}

fn header<'r, B>(response: &'r Response<B>, name: &str) -> Option<&'r str> {
    response.headers().get(name)?.to_str().ok()
}

/// Whether an address is below another one, on the same host, not on a host whose name only begins
/// alike.
fn is_below(url: &str, base: &str) -> bool {
    let rest = url.strip_prefix(base);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// The address of the next page in a `Link` header.
fn next_page(link: &str) -> Option<String> {
    let next = link.split(',').find(|one| one.contains("rel=\"next\""))?;
    let url = next.trim().strip_prefix('<')?.split_once('>')?.0;
    Some(url.to_owned())
}

/// A word, encoded for a path or a query.
pub(super) fn encoded(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for byte in word.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// `OWNER/NAME` as two parts of a path.
pub(super) fn repo_path(repo: &str) -> String {
    let parts: Vec<String> = repo.split('/').map(encoded).collect();
    format!("/repos/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_part_of_a_path() {
        assert_eq!(encoded("a/../b?c#d%"), "a%2F..%2Fb%3Fc%23d%25");
        assert_eq!(repo_path("acme/we b"), "/repos/acme/we%20b");
    }

    #[test]
    fn a_host_that_only_begins_alike_is_another() {
        let base = "https://api.github.com";
        assert!(is_below(
            "https://api.github.com/repositories/1/issues?page=2",
            base
        ));
        assert!(!is_below(
            "https://api.github.com.evil.example/issues",
            base
        ));
        assert!(!is_below(
            "https://api.github.com@evil.example/issues",
            base
        ));
    }

    #[test]
    fn the_next_page_is_the_one_that_is_called_so() {
        let link = "<https://x/?page=1>; rel=\"prev\", <https://x/?page=3>; rel=\"next\"";
        assert_eq!(next_page(link).as_deref(), Some("https://x/?page=3"));
        assert_eq!(next_page("<https://x/?page=3>; rel=\"last\""), None);
        assert_eq!(next_page("rel=\"next\""), None);
    }
}

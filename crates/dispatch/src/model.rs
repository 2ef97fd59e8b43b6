//! The socket through which an agent reaches its model, and nothing else.
//!
//! A wrap without a network gets one unix socket. What arrives there as plain HTTP is sent to the address in the
//! settings, over TLS if that is https, and the answer is passed back as it comes. The key is added here, so the
//! agent has none: a key in what the agent sent is replaced. Redirects are passed back and not followed, because
//! the key would go along.
//!
//! *Crash*: the socket ends with its runner, and so does a wrapped agent.

use std::io::{self, Read};
use std::os::unix::net::UnixListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, header};
use hyper::body::Frame;
use tenure_core::ignore::Ignore;
use tenure_runs::network::ModelTarget;
use tokio::sync::mpsc;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// The longest request: a conversation with pictures.
const MAX_REQUEST: usize = 64 << 20;
const CONNECTS_WITHIN: Duration = Duration::from_secs(30);
/// How much of an answer is passed on at once, and how many of these may wait.
const PIECE: usize = 16 << 10;
const WAITING_PIECES: usize = 16;

/// What concerns one connection only, and what is set anew.
const NOT_PASSED: [HeaderName; 9] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Serves a socket in a thread of its own, as long as this process lives.
pub fn serve(listener: UnixListener, target: ModelTarget) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let model = Arc::new(Model::new(target));
    let serve = move || {
        runtime.block_on(async {
            let Ok(listener) = tokio::net::UnixListener::from_std(listener) else {
                return;
            };
            let router = Router::new().fallback(pass).with_state(model);
            axum::serve(listener, router)
                .await
                .ignore("it serves until the process ends");
        });
    };
    std::thread::Builder::new()
        .name("model".to_owned())
        .spawn(serve)?;
    Ok(())
}

struct Model {
    agent: Agent,
    target: ModelTarget,
}

impl Model {
    fn new(target: ModelTarget) -> Self {
        let mut config = Agent::config_builder();
        let is_encrypted = target.url.starts_with("https://");
        if !is_encrypted {
            config = config.proxy(None);
        }
        if let Some(roots) = target.roots.as_deref().and_then(certificates) {
            let roots = RootCerts::new_with_certs(&roots);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        let config = config
            .timeout_connect(Some(CONNECTS_WITHIN))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .build();
        Self {
            agent: config.into(),
            target,
        }
    }

    /// Sends a request; its answer comes with a body that is still to be read.
    fn send(
        &self,
        method: &axum::http::Method,
        at: &Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response<ureq::Body>, String> {
        let path = at.path_and_query().map_or("/", |path| path.as_str());
        // What names a host is a request to a proxy, which this is not.
        if at.authority().is_some() || !path.starts_with('/') {
            return Err("only a path can be asked for".to_owned());
        }
        let base = self.target.url.trim_end_matches('/');
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            .body(body.to_vec())
            .map_err(|error| error.to_string())?;
        let own = self.key()?;
        for (name, value) in headers {
            if !NOT_PASSED.contains(name) && own.as_ref().is_none_or(|(own, _)| own != name) {
                request.headers_mut().append(name, value.clone());
            }
        }
        if let Some((name, value)) = own {
            if name != header::AUTHORIZATION {
                request.headers_mut().remove(header::AUTHORIZATION);
            }
            request.headers_mut().insert(name, value);
        }
        self.agent.run(request).map_err(|error| error.to_string())
    }

    /// The header with the key, read from its file each time: it may be replaced.
    fn key(&self) -> Result<Option<(HeaderName, HeaderValue)>, String> {
        let Some(key) = &self.target.key else {
            return Ok(None);
        };
        let unusable = || format!("{} is not usable as a header", key.file.display());
        let mut value = HeaderValue::from_bytes(&key.value()?).map_err(|_| unusable())?;
        value.set_sensitive(true);
        let name = HeaderName::from_bytes(key.header.as_bytes()).map_err(|_| unusable())?;
        Ok(Some((name, value)))
    }
}

fn certificates(pem: &[u8]) -> Option<Vec<Certificate<'static>>> {
    let found: Vec<Certificate<'static>> = parse_pem(pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(one)) => Some(one),
            _ => None,
        })
        .collect();
    (!found.is_empty()).then_some(found)
}

async fn pass(State(model): State<Arc<Model>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long");
    };
    let (heads, mut head) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        let answer = model.send(&parts.method, &parts.uri, &parts.headers, &body);
        let (head, mut body) = match answer {
            Ok(answer) => {
                let (head, body) = answer.into_parts();
                (Ok(head), Some(body.into_reader()))
            }
            Err(why) => (Err(why), None),
        };
        let (pieces, read) = mpsc::channel(WAITING_PIECES);
        if heads.blocking_send((head, read)).is_err() {
            return;
        }
        let mut buffer = vec![0; PIECE];
        while let Some(reader) = &mut body {
            let piece = match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => Ok(Bytes::copy_from_slice(&buffer[..read])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_over = piece.is_err();
            if pieces.blocking_send(piece).is_err() || is_over {
                // The agent no longer reads, or the model broke off.
                return;
            }
        }
    });
    match head.recv().await {
        Some((Ok(head), pieces)) => {
            let mut answer = Response::new(Body::new(Pieces(pieces)));
            *answer.status_mut() = head.status;
            for (name, value) in &head.headers {
                if !NOT_PASSED.contains(name) {
                    answer.headers_mut().append(name, value.clone());
                }
            }
            answer
        }
        Some((Err(why), _)) => refused(StatusCode::BAD_GATEWAY, &why),
        None => refused(StatusCode::BAD_GATEWAY, "it was not sent"),
    }
}

fn refused(status: StatusCode, why: &str) -> Response<Body> {
    let text = format!("tenure: the model was not reached: {why}\n");
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    answer
}

/// A body that is passed on piece by piece.
struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

#[cfg(test)]
mod tests;

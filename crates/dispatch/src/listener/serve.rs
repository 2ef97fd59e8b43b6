//! From a connection to an answer.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use crate::endpoints::Endpoints;
use crate::live::LiveConfig;
use crate::receive::{WebhookResponse, check};
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use hyper::body::Body as _;
use serde_json::{Value, json};
use tenure_core::ignore::Ignore;
use tenure_forges::Headers;
use tenure_host::clock;
use tenure_http::{Connection, ConnectionLimits, Listener};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::store_thread::StoreHandle;
use super::{MAX_BODY, MAX_BYTES, MAX_CONNECTIONS, READ_WITHIN, ROOM_WITHIN};

#[derive(Clone)]
struct Webhooks {
    config: LiveConfig,
    endpoints: Endpoints,
    store: StoreHandle,
    /// For bodies that are read or stored, in KiB.
    room: Arc<Semaphore>,
}

/// Answers until `stopped` fires.
pub async fn serve(
    listener: std::net::TcpListener,
    (config, endpoints): (LiveConfig, Endpoints),
    store: StoreHandle,
    stopped: oneshot::Receiver<()>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let router = Router::new()
        .route("/hooks/{name}", post(hook).fallback(unknown))
        .route("/healthz", get(healthy))
        .fallback(any(unknown))
        .with_state(Webhooks {
            config,
            endpoints,
            store,
            room: Arc::new(Semaphore::new(MAX_BYTES / 1024)),
        });
    let limits = ConnectionLimits {
        connections: MAX_CONNECTIONS,
        within: READ_WITHIN,
        reads_within: READ_WITHIN,
        ends_within: READ_WITHIN,
    };
    // A sender that is still sending at the end gets no answer, and may deliver again.
    let stopped = async { stopped.await.ignore("the server was dropped") };
    tenure_http::serve(Listener::Tcp(listener), router, limits, stopped).await;
}

/// Everybody can ask, so the answer has no detail.
async fn healthy(State(state): State<Webhooks>) -> (StatusCode, &'static str) {
    if state.endpoints.is_refusing() {
        (StatusCode::SERVICE_UNAVAILABLE, "refusing\n")
    } else {
        (StatusCode::OK, "ok\n")
    }
}

/// Anything that is not a delivery of a forge gets the same answer, whether such an endpoint exists
/// or not.
async fn unknown() -> Response<Body> {
    answer(&WebhookResponse::unknown_sender())
}

async fn hook(
    State(state): State<Webhooks>,
    Path(name): Path<String>,
    Extension(connection): Extension<Arc<Connection>>,
    headers: HeaderMap,
    request: Request,
) -> Response<Body> {
    let _busy = connection.request();
    let response = receive(&state, &name, headers, request).await;
    let status = response.status().as_u16();
    state.endpoints.answered(&name, status, clock::wall());
    response
}

async fn receive(
    state: &Webhooks,
    name: &str,
    headers: HeaderMap,
    request: Request,
) -> Response<Body> {
    let config = state.config.now();
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let body = request.into_body();
    if length.is_some_and(|length| length > MAX_BODY) {
        pass_over(body).await;
        return too_long();
    }
    if config.forge(name).is_none() {
        pass_over(body).await;
        return unknown().await;
    }
    // Its room is kept until the body is stored.
    let (body, _room) = match read(body, &state.room).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    let headers: Headers = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    let told = match check(&config, name, &headers, body, clock::wall()) {
        Ok(verified) => state.store.receive(verified).await,
        Err(told) => told,
    };
    answer(&told)
}

/// Reads a body. It takes room for what has arrived, not for what its sender claims, so that one who claims much and
/// sends little takes nothing from others.
async fn read(
    body: Body,
    room: &Arc<Semaphore>,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Response<Body>> {
    let until = Instant::now() + READ_WITHIN;
    let mut frames = body;
    let (mut read, mut taken) = (Vec::new(), None::<OwnedSemaphorePermit>);
    loop {
        let next = poll_fn(|cx| Pin::new(&mut frames).poll_frame(cx));
        let data = match timeout_at(until, next).await {
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(None) => return Ok((read, taken)),
            Ok(Some(Err(_))) => {
                let why = "the request cannot be read";
                return Err(failed(StatusCode::BAD_REQUEST, why));
            }
            Err(_) => {
                let why = "the request took too long";
                return Err(failed(StatusCode::REQUEST_TIMEOUT, why));
            }
        };
        if read.len() + data.len() > MAX_BODY {
            drop((read, taken));
            pass_over(frames).await;
            return Err(too_long());
        }
        let needed = (read.len() + data.len()).div_ceil(1024);
        let more = needed - taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        // One that waits keeps what it has, so it must not wait for others that wait for it.
        let more = room.clone().acquire_many_owned(more);
        let Ok(Ok(more)) = timeout(ROOM_WITHIN, more).await else {
            drop((read, taken));
            pass_over(frames).await;
            let why = "too many deliveries at once; deliver it again";
            return Err(failed(StatusCode::SERVICE_UNAVAILABLE, why));
        };
        match &mut taken {
            Some(taken) => taken.merge(more),
            None => taken = Some(more),
        }
        read.extend_from_slice(&data);
    }
}

/// Reads a body and keeps nothing of it, so that its sender gets to the answer.
async fn pass_over(body: Body) {
    let mut frames = body;
    let all = async {
        while let Some(Ok(_)) = poll_fn(|cx| Pin::new(&mut frames).poll_frame(cx)).await {
            // Dropped.
        }
    };
    timeout(READ_WITHIN, all).await.ignore("it gets no answer");
}

fn too_long() -> Response<Body> {
    failed(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long")
}

fn failed(status: StatusCode, why: &str) -> Response<Body> {
    respond(status, &json!({"error": why}))
}

fn answer(told: &WebhookResponse) -> Response<Body> {
    let status = StatusCode::from_u16(told.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    respond(status, &told.body)
}

fn respond(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{body}\n")));
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

//! From a connection to an answer.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::routing::{any, get, post};
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tenure_app::dispatch::Config;
use tenure_app::dispatch::receive::{Told, check};
use tenure_forges::Headers;
use tenure_host::clock;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::store_thread::Desks;
use crate::{LONGEST_BODY, MOST_CONNECTIONS, READ_WITHIN};

#[derive(Clone)]
struct Door {
    config: Arc<Config>,
    desks: Desks,
}

/// Answers until `stopped` fires.
pub async fn serve(
    listener: std::net::TcpListener,
    config: Arc<Config>,
    desks: Desks,
    mut stopped: oneshot::Receiver<()>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let door = Router::new()
        .route("/hooks/{name}", post(hook).fallback(unknown))
        .route("/healthz", get(healthy))
        .fallback(any(unknown))
        .with_state(Door {
            config,
            desks,
        });
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, or the sender gave up: try the next one after a pause.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            continue;
        };
        let mut builder = Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(READ_WITHIN);
        let service = TowerToHyperService::new(door.clone());
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            if watched.await.is_err() {
                // The sender disconnected. An incomplete request is not stored.
            }
            drop(place);
        });
    }
    drop(listener);
    if timeout(READ_WITHIN, graceful.shutdown()).await.is_err() {
        // A sender that is still sending at this point gets no answer, and may deliver again.
    }
}

async fn healthy() -> &'static str {
    "ok\n"
}

/// Anything that is not a delivery of a forge gets the same answer, whether such an endpoint exists
/// or not.
async fn unknown() -> Response<Body> {
    answer(&Told::unknown_sender())
}

async fn hook(
    State(door): State<Door>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Response<Body> {
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > LONGEST_BODY) {
        return too_long();
    }
    let body = match timeout(READ_WITHIN, to_bytes(request.into_body(), LONGEST_BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return too_long(),
        Err(_) => return failed(StatusCode::REQUEST_TIMEOUT, "the request took too long"),
    };
    let headers: Headers = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    let told = match check(&door.config, &name, &headers, body.into(), clock::wall()) {
        Ok(genuine) => door.desks.receive(genuine).await,
        Err(told) => told,
    };
    answer(&told)
}

fn too_long() -> Response<Body> {
    failed(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long")
}

fn failed(status: StatusCode, why: &str) -> Response<Body> {
    respond(status, &json!({"error": why}))
}

fn answer(told: &Told) -> Response<Body> {
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

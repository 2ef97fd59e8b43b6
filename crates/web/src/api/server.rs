//! From a request to an answer.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request, State};
use axum::http::request::Parts as Head;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method as HttpMethod, Response, StatusCode, header,
};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::routing::any;
use serde::Deserialize;
use serde_json::json;
use tenure_core::token::Scope;
use tenure_host::boot;
use tenure_service::answer::Problem;

use super::answer::{Fault, Refusal, RouteAnswer, RouteResult, json as answer};
use super::fleet::Fleet;
use super::request::{ApiCall, Method, of_body, read};
use super::routes::{Route, routes};
use super::state::{Server, wrong};
use super::{events, metrics, openapi, private, run_log, stream, tail};
use crate::page;
use tenure_http::Connection;

/// How long the store may take to say that it is there.
const READY_WITHIN: Duration = Duration::from_secs(2);
/// How many rows the answer to a login has.
const FIRST_ROWS: usize = 100;

const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'; frame-ancestors 'none'";
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// All routes, behind the gate that every request passes.
pub fn router(server: Server) -> Router {
    let mut router = Router::new()
        .route("/healthz", any(healthy))
        .route("/readyz", any(ready))
        .route("/metrics", any(show_metrics))
        .route(openapi::PATH, any(describe))
        .route("/api/v1/login", any(login))
        .route("/api/v1/logout", any(logout))
        .route("/api/v1/me", any(me));
    for route in routes() {
        let path = route.spec.path;
        let route = Arc::new(route);
        let handler =
            move |State(server): State<Server>, params: RawPathParams, request: Request| {
                let route = Arc::clone(&route);
                async move { handle(&server, &route, &params, request).await }
            };
        router = router.route(path, any(handler));
    }
    for (path, kind, bytes) in page::FILES {
        router = router.route(
            path,
            any(
                move |State(server): State<Server>, request: Request| async move {
                    if *path == "/" {
                        server.following().expect();
                    }
                    file(kind, bytes, &request)
                },
            ),
        );
    }
    router
        .fallback(|| async { Fault::from(Refusal::NoRoute).response() })
        .layer(middleware::from_fn_with_state(server.clone(), gate))
        .with_state(server)
}

/// What every request must pass, and what every answer has.
async fn gate(State(server): State<Server>, request: Request, next: Next) -> Response<Body> {
    server.count_request();
    let _busy = request
        .extensions()
        .get::<Arc<Connection>>()
        .map(Connection::request);
    let mut response = if server
        .origins()
        .is_our_host(request.uri(), request.headers())
    {
        next.run(request).await
    } else {
        Fault::from(Refusal::ForeignHost).response()
    };
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (RESOURCE_POLICY, "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let kept = HeaderValue::from_static("no-store");
    headers.entry(header::CACHE_CONTROL).or_insert(kept);
    response
}

/// A file of the dashboard.
fn file(kind: &'static str, bytes: &'static [u8], request: &Request) -> Response<Body> {
    if request.method() != HttpMethod::GET {
        return Fault::from(Refusal::NoMethod { takes: "GET" }).response();
    }
    let tag = tenure_host::digest::sha256(bytes);
    let tag = format!("\"{}\"", &tag[..32.min(tag.len())]);
    let known = request.headers().get(header::IF_NONE_MATCH);
    let is_known = known.is_some_and(|known| known == tag.as_str());
    let mut response = Response::new(Body::from(if is_known { &[][..] } else { bytes }));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// What a request must be before anything in it is read.
fn check_sender(server: &Server, method: Method, request: &Head) -> Result<(), Refusal> {
    let takes = match method {
        Method::Get => "GET",
        Method::Post => "POST",
    };
    if request.method != takes {
        return Err(Refusal::NoMethod { takes });
    }
    let headers = &request.headers;
    let must_be_ours = method == Method::Post || stream::is_wanted(headers);
    if must_be_ours && server.origins().is_foreign(headers) {
        return Err(Refusal::ForeignOrigin);
    }
    if method == Method::Post && !is_json(headers) {
        return Err(Refusal::NotJson);
    }
    Ok(())
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return false;
    };
    let kind = kind.to_str().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

async fn handle(
    server: &Server,
    route: &Route,
    params: &RawPathParams,
    request: Request,
) -> Response<Body> {
    let path: Vec<String> = params.iter().map(|(_, value)| value.to_owned()).collect();
    let answered = carry_out(server, route, path, request).await;
    answered.unwrap_or_else(|fault| fault.response())
}

async fn carry_out(
    server: &Server,
    route: &Route,
    path: Vec<String>,
    request: Request,
) -> Result<Response<Body>, Fault> {
    let spec = route.spec;
    let (parts, body) = request.into_parts();
    check_sender(server, spec.method, &parts)?;
    let access = server.access_for(&parts.headers, spec.scope).await?;
    if stream::is_wanted(&parts.headers) && [events::PATH, run_log::PATH].contains(&spec.path) {
        let connection = parts.extensions.get::<Arc<Connection>>();
        let busy = connection.map(Connection::request);
        let (uri, headers) = (&parts.uri, &parts.headers);
        return match path.into_iter().next() {
            Some(run) => tail::answer(server, access, run, (uri, headers), busy).await,
            None => stream::answer(server, access, uri, headers, busy).await,
        };
    }
    let body = read(body).await?;
    let run = (route.read)(&parts.uri, &body)?;
    let logs = access.has(Scope::Logs);
    let job = move |context: &mut tenure_app::open::Context| -> Result<RouteResult, Problem> {
        let mut call = ApiCall {
            context,
            access: &access,
            path: &path,
        };
        Route::run(run, &mut call)
    };
    let outcome = if spec.is_long {
        server.store().ask_beside(job).await?
    } else {
        server.store().ask(job).await?
    };
    let mut body = outcome?.into_body();
    if !logs {
        private::hide(&mut body);
    }
    Ok(answer(StatusCode::OK, &body))
}

/// Asks nobody.
async fn healthy(method: HttpMethod) -> Response<Body> {
    match is_looked_at(&method) {
        Ok(()) => "ok\n".into_response(),
        Err(refusal) => Fault::from(refusal).response(),
    }
}

/// What asks for health sends no body, and some want none.
fn is_looked_at(method: &HttpMethod) -> Result<(), Refusal> {
    match *method {
        HttpMethod::GET | HttpMethod::HEAD => Ok(()),
        _ => Err(Refusal::NoMethod { takes: "GET" }),
    }
}

async fn ready(State(server): State<Server>, method: HttpMethod) -> Response<Body> {
    if let Err(refusal) = is_looked_at(&method) {
        return Fault::from(refusal).response();
    }
    let asked = server
        .store()
        .ask(|context| Ok(context.service().changes()?));
    match tokio::time::timeout(READY_WITHIN, asked).await {
        Ok(Ok(_)) => (StatusCode::OK, "ready\n").into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response(),
    }
}

async fn show_metrics(State(server): State<Server>, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let shown = async {
        check_sender(&server, Method::Get, &parts)?;
        server.access_for(&parts.headers, Scope::Read).await?;
        let requests = server.requests();
        let followers = server.following().count();
        let text = server
            .store()
            .ask(move |context| metrics::text(context, requests, followers))
            .await?;
        let mut response = Response::new(Body::from(text));
        let kind = HeaderValue::from_static("text/plain; version=0.0.4");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        Ok::<_, Fault>(response)
    };
    shown.await.unwrap_or_else(|fault| fault.response())
}

async fn describe(State(server): State<Server>, request: Request) -> Response<Body> {
    match check_sender(&server, Method::Get, &request.into_parts().0) {
        Ok(()) => answer(StatusCode::OK, &openapi::document()),
        Err(refusal) => Fault::from(refusal).response(),
    }
}

async fn me(State(server): State<Server>, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let shown = async {
        check_sender(&server, Method::Get, &parts)?;
        let access = server.access(&parts.headers).await?;
        let me =
            json!({"name": access.name, "scopes": access.scopes, "expires_at": access.expires_at});
        let own = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "host": boot::host_name(),
            "store": server.location(),
            "started_at": server.started_at(),
        });
        Ok::<_, Fault>(RouteAnswer::new("me", &me).with("server", &own))
    };
    match shown.await {
        Ok(reply) => answer(StatusCode::OK, &reply.into_body()),
        Err(fault) => fault.response(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginBody {
    code: String,
}

async fn login(State(server): State<Server>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let logged_in = async {
        check_sender(&server, Method::Post, &parts)?;
        let body: LoginBody = of_body(&read(body).await?)?;
        let (token, access) = match server.logins().exchange(&body.code) {
            Ok(found) => found,
            Err(refusal) => return Err(wrong(refusal).await),
        };
        // Without a first state it is still a login.
        let first = server
            .store()
            .ask(|context| super::fleet::look(context, &Fleet::default()));
        let first = first.await.ok();
        let first = first.map(|fleet| stream::snapshot(&fleet, FIRST_ROWS, true));
        let first = first.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
        Ok::<_, Fault>(
            RouteAnswer::new("token", &token)
                .with("name", &access.name)
                .with("scopes", &access.scopes)
                .with("expires_at", &access.expires_at)
                .with("first", &first),
        )
    };
    match logged_in.await {
        Ok(reply) => answer(StatusCode::OK, &reply.into_body()),
        Err(fault) => fault.response(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogoutBody {}

async fn logout(State(server): State<Server>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let logged_out = async {
        check_sender(&server, Method::Post, &parts)?;
        let access = server.access(&parts.headers).await?;
        let LogoutBody {} = of_body(&read(body).await?)?;
        if !access.is_login() {
            return Err(Refusal::NotALogin.into());
        }
        server.logins().end(&access);
        Ok::<_, Fault>(RouteAnswer::new("logged_out", &true))
    };
    match logged_out.await {
        Ok(reply) => answer(StatusCode::OK, &reply.into_body()),
        Err(fault) => fault.response(),
    }
}

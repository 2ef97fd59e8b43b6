//! The OpenAPI 3.1 document, from the table of routes and the types of their requests and answers.

use std::collections::BTreeSet;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use tenure_core::hint::Hint;
use tenure_service::error::Error;
use tenure_service::view::NoticeView;

use super::answer::{Refusal, STATUSES};
use super::request::{Method, Parts, Spec};
use super::routes::routes;
use super::{events, run_log};

pub const PATH: &str = "/api/v1/openapi.json";

/// Where shapes are described.
const SHAPES: &str = "/components/schemas";

pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = SHAPES.into();
    settings.meta_schema = None;
    let mut answers = settings.into_generator();
    let mut paths = Map::new();
    for route in routes() {
        let mut settings = SchemaSettings::draft2020_12().for_deserialize();
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        let mut asked = settings.into_generator();
        let asks = (route.asks)(&mut asked);
        let parts = (route.answers)(&mut answers);
        let described = operation(&route.spec, &asks, parts);
        let (path, method) = place(&route.spec);
        let at = paths.entry(path).or_insert_with(|| json!({}));
        at[method] = described;
    }
    for (path, described) in others() {
        paths.insert(path.to_owned(), described);
    }
    let notice = answers.subschema_for::<NoticeView>();
    let hint = answers.subschema_for::<Hint>();
    let mut shapes = answers.take_definitions(true);
    shapes.insert("Failure".into(), failure(&hint));
    shapes.insert("Notices".into(), json!({"type": "array", "items": notice}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tenure",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Every answer has the shape of the command that answers the same, with --json.",
        },
        "paths": paths,
        "components": {
            "schemas": shapes,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn place(spec: &Spec) -> (String, &'static str) {
    let method = match spec.method {
        Method::Get => "get",
        Method::Post => "post",
    };
    (spec.path.to_owned(), method)
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#{SHAPES}/{name}")})
}

fn operation(spec: &Spec, asks: &Schema, parts: Parts) -> Value {
    let asks = asks.as_value();
    let mut parameters = path_parameters(spec.path);
    let mut described = json!({
        "summary": spec.about,
        "operationId": operation_id(spec),
        "security": [{"token": [spec.scope.as_str()]}],
        "responses": responses(parts, [events::PATH, run_log::PATH].contains(&spec.path)),
    });
    match spec.method {
        Method::Get => parameters.extend(query_parameters(asks)),
        Method::Post => {
            described["requestBody"] =
                json!({"required": true, "content": {"application/json": {"schema": asks}}});
        }
    }
    if [events::PATH, run_log::PATH].contains(&spec.path) {
        parameters.push(json!({
            "name": "Last-Event-ID", "in": "header", "required": false,
            "description": "For the stream: go on after this cursor.", "schema": {"type": "string", "pattern": "^[0-9]+$"},
        }));
    }
    described["parameters"] = json!(parameters);
    described
}

/// `get_api_v1_sessions_session`.
fn operation_id(spec: &Spec) -> String {
    let (path, method) = place(spec);
    let words = path.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!("{method}_{}", words.join("_"))
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}}))
        .collect()
}

fn query_parameters(asks: &Value) -> Vec<Value> {
    let properties = asks["properties"].as_object().cloned().unwrap_or_default();
    let named = properties.into_iter();
    named
        .map(|(name, mut schema)| {
            let about = schema["description"].take();
            if let Some(schema) = schema.as_object_mut() {
                schema.remove("description");
                // What is left out is null nowhere else.
                if let Some(Value::Array(kinds)) = schema.get_mut("type") {
                    kinds.retain(|kind| kind != "null");
                    let only = kinds.first().cloned();
                    schema.insert("type".into(), only.unwrap_or_default());
                }
            }
            json!({"name": name, "in": "query", "required": false, "description": about, "schema": schema})
        })
        .collect()
}

fn responses(parts: Parts, streams: bool) -> Value {
    let mut properties = Map::new();
    let mut required = vec!["v", "notices"];
    properties.insert("v".into(), json!({"const": 1}));
    properties.insert("notices".into(), reference("Notices"));
    for (name, schema) in parts {
        properties.insert(name.to_owned(), schema.to_value());
        required.push(name);
    }
    // What could not be read of it.
    properties.insert("error".into(), json!({"type": "object"}));
    let shape = json!({"type": "object", "properties": properties, "required": required});
    let mut content = json!({"application/json": {"schema": shape}});
    if streams {
        content["text/event-stream"] = json!({"schema": {"type": "string"}});
    }
    let mut all = failures(&[400, 401, 403, 405, 408, 413, 415, 421]);
    for (_, status) in STATUSES {
        all.extend(failures(&[status.as_u16()]));
    }
    all.insert(
        "200".into(),
        json!({"description": "The answer.", "content": content}),
    );
    Value::Object(all)
}

fn failures(statuses: &[u16]) -> Map<String, Value> {
    let failure = json!({"application/json": {"schema": reference("Failure")}});
    let described = json!({"description": "Why not.", "content": failure});
    let all = statuses
        .iter()
        .map(|status| (status.to_string(), described.clone()));
    all.collect()
}

fn failure(hint: &Schema) -> Value {
    json!({
        "type": "object",
        "required": ["v", "error", "notices"],
        "properties": {
            "v": {"const": 1},
            "notices": reference("Notices"),
            "error": {
                "type": "object",
                "required": ["kind", "message", "hints"],
                "properties": {
                    "kind": {"anyOf": [{"enum": kinds()}, {"type": "string"}],
                        "description": "For programs. The list has every refusal of this API and every error of a use case."},
                    "message": {"type": "string"},
                    "hints": {"type": "array", "items": hint},
                },
            },
        },
    })
}

/// What programs tell errors apart by.
fn kinds() -> BTreeSet<&'static str> {
    let mut all = Error::all_kinds();
    all.extend(Refusal::KINDS);
    all
}

/// What is no list and no act.
fn others() -> Vec<(&'static str, Value)> {
    let open = |about: &str, kind: &str| {
        json!({"get": {"summary": about, "responses": {
            "200": {"description": "The answer.", "content": {kind: {"schema": {}}}},
            "405": {"description": "Why not."}, "421": {"description": "Why not."}, "503": {"description": "Why not."},
        }}})
    };
    let answered = |about: &str, asks: Option<Value>, parts: &[&str]| {
        let parts: Map<String, Value> = parts
            .iter()
            .map(|name| ((*name).to_owned(), json!({})))
            .collect();
        let shape = json!({"type": "object", "properties": parts});
        let mut all = failures(&[400, 401, 403, 405, 408, 409, 413, 415, 421, 503]);
        all.insert(
            "200".into(),
            json!({"description": "The answer.", "content": {"application/json": {"schema": shape}}}),
        );
        let mut described = json!({"summary": about, "responses": all});
        if let Some(asks) = asks {
            described["requestBody"] =
                json!({"required": true, "content": {"application/json": {"schema": asks}}});
        }
        described
    };
    let code = json!({"type": "object", "additionalProperties": false, "required": ["code"],
        "properties": {"code": {"type": "string"}}});
    let nothing = json!({"type": "object", "additionalProperties": false});
    let token = json!([{"token": []}]);
    let with_token = |mut described: Value| {
        described["security"] = token.clone();
        described
    };
    let login = answered(
        "Exchange the code of a login for a token",
        Some(code),
        &["token", "name", "scopes", "expires_at", "first"],
    );
    let logout = with_token(answered(
        "End the login of a browser",
        Some(nothing),
        &["logged_out"],
    ));
    let me = with_token(answered(
        "Show who calls, and this server",
        None,
        &["me", "server"],
    ));
    let mut metrics = open("Counts for Prometheus", "text/plain");
    metrics["get"]["security"] = token.clone();
    for status in ["401", "403", "500"] {
        metrics["get"]["responses"][status] = json!({"description": "Why not."});
    }
    vec![
        ("/api/v1/login", json!({"post": login})),
        ("/api/v1/logout", json!({"post": logout})),
        ("/api/v1/me", json!({"get": me})),
        ("/metrics", metrics),
        ("/healthz", open("Whether the server runs", "text/plain")),
        ("/readyz", open("Whether the store answers", "text/plain")),
        (PATH, open("This document", "application/json")),
    ]
}

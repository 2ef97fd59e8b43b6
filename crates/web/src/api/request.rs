//! What a request asks for: a typed value of its path, query or body, in which nothing is unknown.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Query;
use axum::http::Uri;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;
use tenure_app::open::Context;
use tenure_core::reason::Reason;
use tenure_core::token::Scope;
use tokio::time::{Instant, timeout_at};

use super::access::Access;
use super::answer::{Fault, Refusal, RouteAnswer, RouteResult};

/// The longest body.
const MAX_BODY: usize = 64 << 10;
/// How long it may take to arrive.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// How many rows a list has unless its reader says otherwise, and at most.
const ROWS: (usize, usize) = (100, 10_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

/// What a route is, for the router and for its description.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    pub method: Method,
    pub path: &'static str,
    /// What its caller must be allowed to do.
    pub scope: Scope,
    pub about: &'static str,
    /// Whether it may take long.
    pub is_long: bool,
}

impl Spec {
    pub const fn get(path: &'static str, about: &'static str) -> Self {
        Self {
            method: Method::Get,
            path,
            scope: Scope::Read,
            about,
            is_long: false,
        }
    }

    pub const fn post(path: &'static str, about: &'static str) -> Self {
        Self {
            method: Method::Post,
            scope: Scope::Act,
            ..Self::get(path, about)
        }
    }
}

/// The parts of an answer, with their shapes.
pub type Parts = Vec<(&'static str, Schema)>;

/// A request of one route.
pub trait Request: DeserializeOwned + JsonSchema + Send + 'static {
    const SPEC: Spec;

    /// What its answer has.
    fn parts(shapes: &mut SchemaGenerator) -> Parts;

    /// Makes the one call.
    fn run(self, call: &mut ApiCall<'_>) -> RouteResult;
}

/// A call that is being answered.
pub struct ApiCall<'a> {
    pub context: &'a mut Context,
    pub access: &'a Access,
    /// The values in the path, in order.
    pub path: &'a [String],
}

impl<'a> ApiCall<'a> {
    /// The first value in the path.
    pub fn name(&self) -> &'a str {
        self.path.first().map_or("", String::as_str)
    }

    /// From now on the caller is its token, which acts for this reason.
    pub fn acts(&mut self, reason: Option<&Reason>) {
        let token = self.access.acts(reason.cloned());
        super::store::act_as(self.context, token);
    }
}

/// A list that is read page by page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageQuery {
    pub limit: usize,
    /// The last row of the page before.
    pub after: Option<String>,
}

impl PageQuery {
    pub fn of(limit: Option<usize>, after: Option<&str>) -> Result<Self, Refusal> {
        let (usual, most) = ROWS;
        let limit = limit.unwrap_or(usual);
        if limit == 0 || limit > most {
            let why = format!("limit must be from 1 to {most}");
            return Err(Refusal::BadValue(why));
        }
        Ok(Self {
            limit,
            after: after.map(str::to_owned),
        })
    }

    /// What to read of a list that goes on from a place in the store: one more row shows whether there are more.
    pub fn one_more(&self) -> usize {
        self.limit + 1
    }

    /// The rows of this page, of those that [`PageQuery::one_more`] read.
    pub fn full<T: serde::Serialize>(
        &self,
        name: &str,
        mut rows: Vec<T>,
        id: impl Fn(&T) -> String,
    ) -> RouteAnswer {
        let more = rows.len() > self.limit;
        rows.truncate(self.limit);
        let next = rows.last().filter(|_| more).map(id);
        RouteAnswer::new(name, &rows)
            .with("more", &usize::from(more))
            .with("more_is_least", &more)
            .with("next", &next)
    }

    /// The rows of this page, from a whole list in which each row has an id.
    pub fn cut<T: serde::Serialize>(
        &self,
        name: &str,
        mut rows: Vec<T>,
        id: impl Fn(&T) -> String,
    ) -> Result<RouteAnswer, Fault> {
        if let Some(after) = &self.after {
            let found = rows.iter().position(|row| id(row) == *after);
            let found = found.ok_or(Refusal::BadCursor)?;
            rows.drain(..=found);
        }
        let more = rows.len().saturating_sub(self.limit);
        rows.truncate(self.limit);
        let next = rows.last().filter(|_| more > 0).map(id);
        Ok(RouteAnswer::new(name, &rows)
            .with("more", &more)
            .with("more_is_least", &false)
            .with("next", &next))
    }
}

/// The shapes of a page.
pub fn page_parts<T: JsonSchema>(name: &'static str, shapes: &mut SchemaGenerator) -> Parts {
    vec![
        (name, shapes.subschema_for::<Vec<T>>()),
        ("more", shapes.subschema_for::<usize>()),
        ("more_is_least", shapes.subschema_for::<bool>()),
        ("next", shapes.subschema_for::<Option<String>>()),
    ]
}

/// Reads the value of a query.
pub fn of_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Refusal> {
    let read = Query::<T>::try_from_uri(uri);
    read.map(|Query(value)| value)
        .map_err(|error| of_field(&error.body_text()))
}

/// Reads the value of a body.
pub fn of_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    // A list would be read as the fields in their order.
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(Refusal::BadValue("expected an object".to_owned()));
    }
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => of_field(&error.to_string()),
        _ => Refusal::BadJson(error.to_string()),
    })
}

fn of_field(why: &str) -> Refusal {
    let why = why
        .strip_prefix("Failed to deserialize query string: ")
        .unwrap_or(why);
    if why.contains("unknown field") {
        Refusal::UnknownField(why.to_owned())
    } else {
        Refusal::BadValue(why.to_owned())
    }
}

/// Reads a body within limits.
pub async fn read(mut body: Body) -> Result<Bytes, Refusal> {
    let until = Instant::now() + READ_WITHIN;
    let mut read = Vec::new();
    loop {
        let next = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let data = match timeout_at(until, next).await {
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(None) => return Ok(read.into()),
            Ok(Some(Err(_))) => return Err(Refusal::BadJson("it ended early".to_owned())),
            Err(_) => return Err(Refusal::TooSlow),
        };
        if read.len() + data.len() > MAX_BODY {
            return Err(Refusal::TooLarge);
        }
        read.extend_from_slice(&data);
    }
}

/// A reason, which every act needs.
pub fn reason(text: &str) -> Result<Reason, Fault> {
    Ok(Reason::parse(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_goes_on_behind_its_last_row() {
        let rows = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let page = |after: Option<&str>| {
            let page = PageQuery::of(Some(2), after).unwrap();
            page.cut("rows", rows(), Clone::clone)
                .map(RouteAnswer::into_body)
        };
        let first = page(None).unwrap();
        assert_eq!(first["rows"], serde_json::json!(["a", "b"]));
        assert_eq!((&first["more"], &first["next"]), (&1.into(), &"b".into()));
        let last = page(Some("b")).unwrap();
        assert_eq!(last["rows"], serde_json::json!(["c"]));
        assert_eq!(last["next"], serde_json::Value::Null);
        assert!(page(Some("x")).is_err(), "a cursor of another store");
        for limit in [0, 10_001] {
            assert!(PageQuery::of(Some(limit), None).is_err());
        }
    }
}

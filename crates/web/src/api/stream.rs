//! Server-sent events: a snapshot, then what changes, and the log by its cursors.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderValue, Response, Uri, header};
use hyper::body::Frame;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tenure_core::token::Scope;
use tokio::sync::{mpsc, watch};

use super::access::Access;
use super::answer::{Fault, Refusal};
use super::fleet::{EventRow, Fleet, FleetRow, Follower, as_text, events_after};
use super::request::of_query;
use super::state::Server;
use super::store::busy;
use tenure_http::ActiveRequest;

/// How often the server says that it is there. A client gives up after two and a half times this.
pub const BEAT: Duration = Duration::from_secs(10);
/// How long the first state may take.
const FIRST_WITHIN: Duration = Duration::from_secs(10);
/// How many rows a stream has unless its reader says otherwise, and at most.
const ROWS: (usize, usize) = (100, 10_000);
/// How many events are read at once for one who is behind.
const PAGE: usize = 500;

pub const LAST_EVENT_ID: &str = "last-event-id";

/// What a follower may ask for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StreamQuery {
    rows: Option<usize>,
}

/// Whether a request asks for the stream.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT);
    let accepted = accepted.and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/event-stream"))
}

/// Answers with a stream that lasts until either side ends it.
pub async fn answer(
    server: &Server,
    access: Access,
    uri: &Uri,
    headers: &HeaderMap,
    busy_connection: Option<ActiveRequest>,
) -> Result<Response<Body>, Fault> {
    let asked: StreamQuery = of_query(uri)?;
    let (usual, most) = ROWS;
    let rows = asked.rows.unwrap_or(usual);
    if rows == 0 || rows > most {
        let why = format!("rows must be from 1 to {most}");
        return Err(Refusal::BadValue(why).into());
    }
    let resumed = last_event(headers)?;
    let followed = server.following().follow(FIRST_WITHIN).await;
    let (follower, first) = followed.ok_or_else(busy)?;
    let (send, response) = open();
    let stream = Stream {
        server: server.clone(),
        logs: access.has(Scope::Logs),
        access,
        rows,
        send,
        cursor: first.cursor,
        shown: Vec::new(),
    };
    tokio::spawn(async move {
        stream.run(follower, first, resumed).await;
        drop(busy_connection);
    });
    Ok(response)
}

/// A stream: where its task sends, and its answer.
pub fn open() -> (mpsc::Sender<Bytes>, Response<Body>) {
    let (send, receive) = mpsc::channel(1);
    let mut response = Response::new(Body::new(Chunks(receive)));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    (send, response)
}

/// Where a reader says that it was.
pub fn last_event(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    let wrong = || Refusal::BadValue("Last-Event-ID is no cursor".to_owned());
    Ok(Some(number.ok_or_else(wrong)?))
}

/// A message of a stream.
pub fn message(event: &str, id: Option<u64>, data: &str) -> Bytes {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    Bytes::from(format!("event: {event}\n{id}data: {data}\n\n"))
}

/// What the task sends, as a body.
struct Chunks(mpsc::Receiver<Bytes>);

impl HttpBody for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.0.poll_recv(cx);
        chunk.map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

/// The reader is gone, or its access is over.
struct Over;

struct Stream {
    server: Server,
    access: Access,
    logs: bool,
    rows: usize,
    send: mpsc::Sender<Bytes>,
    /// The last event that was sent.
    cursor: u64,
    /// The rows that the reader has.
    shown: Vec<Arc<FleetRow>>,
}

impl Stream {
    async fn run(mut self, mut follower: Follower, first: Arc<Fleet>, resumed: Option<u64>) {
        if self.begin(&first, resumed).await.is_err() {
            return;
        }
        let mut had_error = first.error.is_some();
        let mut stopped = self.server.stopped();
        let mut beats = tokio::time::interval(BEAT);
        beats.tick().await;
        loop {
            let step = tokio::select! {
                changed = follower.newest.changed() => match changed {
                    Ok(()) => {
                        let fleet = follower.newest.borrow_and_update().clone();
                        self.tell(&fleet, &mut had_error).await
                    }
                    // Nobody looks any more: the server ends.
                    Err(_) => self.bye().await,
                },
                _ = beats.tick() => self.beat().await,
                () = until_stopped(&mut stopped) => self.bye().await,
            };
            if step.is_err() {
                return;
            }
        }
    }

    async fn bye(&self) -> Result<(), Over> {
        self.say("bye", None, "{}").await?;
        Err(Over)
    }

    async fn begin(&mut self, fleet: &Fleet, resumed: Option<u64>) -> Result<(), Over> {
        self.put(Bytes::from_static(b"retry: 1000\n\n")).await?;
        let mut id = Some(fleet.cursor);
        if let Some(last) = resumed {
            let oldest = self.missed(last, fleet).await?;
            match oldest {
                Some(oldest) => {
                    let reset = json!({"v": 1, "cursor": fleet.cursor, "oldest": oldest});
                    self.say("reset", None, &as_text(&reset)).await?;
                }
                None => {
                    (self.cursor, id) = (last, None);
                }
            }
        }
        if let Some(error) = &fleet.error {
            self.error(error).await?;
        }
        let text = self.snapshot(fleet);
        self.say("snapshot", id, &text).await?;
        self.events(fleet).await
    }

    /// Where the log begins, if it does not go on from a cursor.
    async fn missed(&self, last: u64, fleet: &Fleet) -> Result<Option<Value>, Over> {
        if last > fleet.cursor {
            return Ok(Some(Value::Null));
        }
        let oldest = self.server.store().ask(move |context| {
            let filter = tenure_core::event::EventFilter {
                after: Some(tenure_core::id::Cursor(last)),
                limit: 1,
                ..Default::default()
            };
            Ok(context.service().log_start(&filter, None)?.value.oldest)
        });
        let oldest = oldest.await.map_err(|_| Over)?;
        Ok(oldest.map(|oldest| json!(oldest.0)))
    }

    fn snapshot(&mut self, fleet: &Fleet) -> String {
        self.shown = fleet.rows.iter().take(self.rows).cloned().collect();
        snapshot(fleet, self.rows, self.logs)
    }

    async fn tell(&mut self, fleet: &Fleet, had_error: &mut bool) -> Result<(), Over> {
        if let Some(error) = &fleet.error {
            if !std::mem::replace(had_error, true) {
                self.error(error).await?;
            }
            return Ok(());
        }
        let was_away = std::mem::take(had_error);
        let changed = self.changes(fleet);
        if changed.is_some() || was_away {
            let text = changed.unwrap_or_else(|| self.difference(fleet, ""));
            self.say("fleet", None, &text).await?;
        }
        self.events(fleet).await
    }

    /// What differs from what the reader has; none if nothing does.
    fn changes(&mut self, fleet: &Fleet) -> Option<String> {
        let before: HashMap<&str, &Arc<FleetRow>> =
            self.shown.iter().map(|row| (row.id(), row)).collect();
        let now = &fleet.rows[..fleet.rows.len().min(self.rows)];
        let is_new =
            |row: &&Arc<FleetRow>| before.get(row.id()).is_none_or(|known| !known.is_as(row));
        let changed: Vec<&str> = now
            .iter()
            .filter(is_new)
            .map(|row| row.text(self.logs))
            .collect();
        let is_moved = now.len() != self.shown.len()
            || now
                .iter()
                .zip(&self.shown)
                .any(|(now, before)| now.id() != before.id());
        if changed.is_empty() && !is_moved {
            return None;
        }
        let changed = changed.join(",");
        let text = self.difference(fleet, &changed);
        self.shown = now.to_vec();
        Some(text)
    }

    fn difference(&self, fleet: &Fleet, changed: &str) -> String {
        let order: Vec<&str> = fleet
            .rows
            .iter()
            .take(self.rows)
            .map(|row| row.id())
            .collect();
        let rest = rest(fleet, self.rows);
        format!(
            r#"{{"v":1,"changed":[{changed}],"order":{},{rest}}}"#,
            json!(order)
        )
    }

    /// Sends the events up to this state, from those at hand or from the store.
    async fn events(&mut self, fleet: &Fleet) -> Result<(), Over> {
        while self.cursor < fleet.cursor {
            let is_at_hand = fleet
                .recent
                .first()
                .is_some_and(|first| first.cursor <= self.cursor + 1);
            let after = self.cursor;
            let found: Vec<EventRow> = if is_at_hand {
                let behind = fleet.recent.iter().filter(|event| event.cursor > after);
                behind.cloned().collect()
            } else {
                let read = self
                    .server
                    .store()
                    .ask(move |context| events_after(context, after, PAGE));
                read.await.map_err(|_| Over)?
            };
            let Some(last) = found.last() else {
                // Those that are missing cannot be read, or were removed.
                self.cursor = fleet.cursor;
                return Ok(());
            };
            self.cursor = last.cursor;
            for event in &found {
                let text = event.text(self.logs);
                self.say("event", Some(event.cursor), text).await?;
            }
        }
        Ok(())
    }

    async fn error(&self, error: &Value) -> Result<(), Over> {
        let text = as_text(&json!({"v": 1, "error": error}));
        self.say("error", None, &text).await
    }

    /// Says that the server is there, if the reader still has access.
    async fn beat(&self) -> Result<(), Over> {
        if !self.server.still_has(&self.access).await {
            self.say("login_over", None, "{}").await?;
            return Err(Over);
        }
        self.put(Bytes::from_static(b": beat\n\n")).await
    }

    async fn say(&self, event: &str, id: Option<u64>, data: &str) -> Result<(), Over> {
        self.put(message(event, id, data)).await
    }

    async fn put(&self, bytes: Bytes) -> Result<(), Over> {
        self.send.send(bytes).await.map_err(|_| Over)
    }
}

async fn until_stopped(stopped: &mut watch::Receiver<bool>) {
    if stopped.wait_for(|is_stopped| *is_stopped).await.is_err() {
        // The server is gone.
    }
}

/// The whole state, as the first message has it.
pub fn snapshot(fleet: &Fleet, rows: usize, logs: bool) -> String {
    let shown: Vec<&str> = fleet
        .rows
        .iter()
        .take(rows)
        .map(|row| row.text(logs))
        .collect();
    let (shown, rest) = (shown.join(","), rest(fleet, rows));
    let beat = BEAT.as_millis();
    let cursor = fleet.cursor;
    format!(r#"{{"v":1,"sessions":[{shown}],{rest},"cursor":{cursor},"beat_ms":{beat}}}"#)
}

/// What both messages have beside rows.
fn rest(fleet: &Fleet, rows: usize) -> String {
    let more = fleet.rows.len().saturating_sub(rows);
    let at = json!(fleet.at);
    format!(
        r#""unmanaged":{},"more":{more},"counts":{},"at":{at}"#,
        as_text(&fleet.unmanaged),
        fleet.counts
    )
}

//! The log of a run as server-sent events: each line of its agent, until the run ends.
//!
//! A log is a file that another process appends to. While somebody follows it, it is read again twice a second.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response, Uri};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::access::Access;
use super::answer::Fault;
use super::fleet::as_text;
use super::request::of_query;
use super::run_log::{Part, RunLog, read_part};
use super::state::Server;
use super::stream::{BEAT, last_event, message, open};
use tenure_http::ActiveRequest;

/// How often it looks whether there is more.
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// Answers with a stream that lasts until the run or its reader ends.
pub async fn answer(
    server: &Server,
    access: Access,
    run: String,
    (uri, headers): (&Uri, &HeaderMap),
    busy: Option<ActiveRequest>,
) -> Result<Response<Body>, Fault> {
    let asked: RunLog = of_query(uri)?;
    let from = last_event(headers)?.or(asked.after).unwrap_or(0);
    let first = part(server, &run, from).await?;
    let (send, response) = open();
    let server = server.clone();
    tokio::spawn(async move {
        drop(follow(&server, &access, &run, first, &send).await);
        drop(busy);
    });
    Ok(response)
}

async fn part(server: &Server, run: &str, from: u64) -> Result<Part, Fault> {
    let run = run.to_owned();
    let read = server
        .store()
        .ask(move |context| Ok(read_part(context, &run, from)));
    read.await?
}

/// The reader is gone.
struct Over;

async fn put(send: &mpsc::Sender<Bytes>, bytes: Bytes) -> Result<(), Over> {
    send.send(bytes).await.map_err(|_| Over)
}

async fn follow(
    server: &Server,
    access: &Access,
    run: &str,
    first: Part,
    send: &mpsc::Sender<Bytes>,
) -> Result<(), Over> {
    let mut part_now = first;
    let mut beat_at = Instant::now() + BEAT;
    loop {
        for line in &part_now.lines {
            let data = as_text(&json!({"v": 1, "data": line.data}));
            put(send, message("line", Some(line.end), &data)).await?;
        }
        if part_now.run.state == "ended" && !part_now.more {
            let data = as_text(&json!({"v": 1, "run": part_now.run}));
            return put(send, message("end", None, &data)).await;
        }
        if !part_now.more {
            sleep(LOOKS_EVERY).await;
        }
        if *server.stopped().borrow() {
            return put(send, message("bye", None, "{}")).await;
        }
        if Instant::now() >= beat_at {
            beat_at = Instant::now() + BEAT;
            if !server.still_has(access).await {
                return put(send, message("login_over", None, "{}")).await;
            }
            put(send, Bytes::from_static(b": beat\n\n")).await?;
        }
        let next = part_now.next;
        match part(server, run, next).await {
            Ok(part) => part_now = part,
            Err(fault) => {
                let data = as_text(&fault.body());
                return put(send, message("error", None, &data)).await;
            }
        }
    }
}

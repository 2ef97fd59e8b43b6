//! The bare listener: an axum handler that stores each body with one durable insert and answers 202.
//!
//! `bench-listener DATABASE` prints its address.

use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use rusqlite::Connection;
use tenure_bench::Failed;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "this is how a program complains")]
            {
                eprintln!("bench-listener: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failed> {
    let database = std::env::args().nth(1).ok_or("the database is missing")?;
    let conn = Connection::open(database)?;
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
         CREATE TABLE IF NOT EXISTS deliveries (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    )?;
    let conn = Arc::new(Mutex::new(conn));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let mut out = std::io::stdout();
        writeln!(out, "{}", listener.local_addr()?)?;
        out.flush()?;
        let router = Router::new()
            .route("/hooks/home", post(store))
            .with_state(conn);
        axum::serve(listener, router).await?;
        Ok(())
    })
}

async fn store(State(conn): State<Arc<Mutex<Connection>>>, body: Bytes) -> StatusCode {
    let conn = conn.lock().unwrap_or_else(PoisonError::into_inner);
    let stored = conn
        .prepare_cached("INSERT INTO deliveries (body) VALUES (?1)")
        .and_then(|mut insert| insert.execute([&body[..]]));
    if stored.is_ok() {
        StatusCode::ACCEPTED
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

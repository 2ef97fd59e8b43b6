//! Requests and answers, one per connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::state::{ForgeState, InjectedFault, Sent};
use super::{Dialect, answer, prefix};

/// A request, with its path decoded and split.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// The path below the API's prefix, without the query.
    pub parts: Vec<String>,
    pub query: String,
    pub body: Value,
}

impl Request {
    /// The method with the parts of the path.
    pub(super) fn route(&self) -> (&str, Vec<&str>) {
        let parts = self.parts.iter().map(String::as_str).collect();
        (&self.method, parts)
    }

    /// A text of the body.
    pub(super) fn named(&self, name: &str) -> String {
        self.body[name].as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn text(&self) -> &str {
        self.body["body"].as_str().unwrap_or_default()
    }
}

pub(super) struct FakeResponse {
    pub status: u16,
    pub body: Value,
}

impl FakeResponse {
    pub fn ok(body: Value) -> Option<Self> {
        Some(Self { status: 200, body })
    }

    /// A status with its message.
    pub fn refused(status: u16, message: &str) -> Option<Self> {
        let body = json!({"message": message});
        Some(Self { status, body })
    }

    pub fn made(body: Value) -> Option<Self> {
        Some(Self { status: 201, body })
    }
}

pub(super) fn serve(stream: TcpStream, dialect: Dialect, state: &Mutex<ForgeState>) {
    respond(stream, dialect, state);
    send_again(state);
}

/// Redelivers what was requested, without holding the lock: the receiver may call the forge.
fn send_again(state: &Mutex<ForgeState>) {
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let (again, send) = {
            let mut state = lock();
            let Some(again) = state.again.pop() else {
                return;
            };
            (again, state.redeliver.clone())
        };
        let status = send.map_or(0, |send| send(&again.guid));
        let mut state = lock();
        let id = state.next_id();
        state.deliveries.push(Sent {
            id,
            status,
            ..again
        });
    }
}

fn respond(stream: TcpStream, dialect: Dialect, state: &Mutex<ForgeState>) {
    let mut reader = BufReader::new(stream);
    let Some((request, whole)) = read(&mut reader, dialect, state) else {
        return;
    };
    let mut stream = reader.into_inner();
    let fault = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests.push(whole.clone());
        state.fault(&whole)
    };
    let done = || {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        answer(dialect, &mut state, &request)
    };
    match fault {
        Some(InjectedFault::Dropped) => {}
        Some(InjectedFault::DoneUnanswered) => {
            done();
        }
        Some(InjectedFault::Hang) => hang(&mut stream, state),
        Some(InjectedFault::DoneHang) => {
            done();
            hang(&mut stream, state);
        }
        Some(InjectedFault::Status(status, headers, message)) => {
            write(&mut stream, status, &headers, &json!({"message": message}));
        }
        None => {
            let answer = done().unwrap_or(FakeResponse {
                status: 404,
                body: json!({"message": "Not Found"}),
            });
            write(&mut stream, answer.status, &[], &answer.body);
        }
    }
}

/// Keeps the connection open until the client gives up.
fn hang(stream: &mut TcpStream, state: &Mutex<ForgeState>) {
    let change = |by: isize| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.hanging = state.hanging.saturating_add_signed(by);
    };
    change(1);
    let mut rest = [0];
    stream.read_exact(&mut rest).ok();
    change(-1);
}

fn write(stream: &mut TcpStream, status: u16, headers: &[(&'static str, String)], body: &Value) {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let mut text = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    // The client may have given up.
    stream.write_all(text.as_bytes()).ok();
}

fn read(
    reader: &mut BufReader<TcpStream>,
    dialect: Dialect,
    state: &Mutex<ForgeState>,
) -> Option<(Request, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    };
    let length = header("content-length").and_then(|text| text.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let token = header("authorization").or_else(|| header("private-token"));
    if let Some(token) = token {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tokens.insert(token);
    }
    let mut words = head.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let path = target.strip_prefix(prefix(dialect))?;
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let whole = format!("{method} {path}");
    let parts = path.split('/').filter(|part| !part.is_empty());
    let request = Request {
        method,
        parts: parts.map(decoded).collect(),
        query: query.to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    Some((request, whole))
}

fn decoded(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits: Vec<u8> = rest.by_ref().take(2).collect();
        let digits = String::from_utf8_lossy(&digits).into_owned();
        bytes.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

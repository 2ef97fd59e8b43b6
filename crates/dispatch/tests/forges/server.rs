//! A forge on the loopback that answers what a test expects, in that order.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use serde_json::Value;

/// One request that is expected, and its answer.
pub struct Exchange {
    /// Method and path, `GET /api/v1/user`.
    pub asked: &'static str,
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Value,
}

pub fn answers(asked: &'static str, body: Value) -> Exchange {
    Exchange {
        asked,
        status: 200,
        headers: Vec::new(),
        body,
    }
}

pub fn fails(asked: &'static str, status: u16, headers: &[(&'static str, &str)]) -> Exchange {
    Exchange {
        asked,
        status,
        headers: headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect(),
        body: serde_json::json!({"message": "because"}),
    }
}

/// A request as it came.
#[derive(Debug)]
pub struct Seen {
    pub head: String,
    pub body: String,
}

pub struct Server {
    pub url: String,
    thread: JoinHandle<Vec<Seen>>,
}

impl Server {
    /// Answers these requests and then no more; `{url}` in a header is where it listens.
    pub fn start(script: Vec<Exchange>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let own = url.clone();
        let thread = std::thread::spawn(move || {
            script
                .into_iter()
                .map(|exchange| answer(&listener, &own, &exchange))
                .collect()
        });
        Self { url, thread }
    }

    /// What it was asked.
    #[track_caller]
    pub fn seen(self) -> Vec<Seen> {
        self.thread.join().unwrap()
    }
}

fn answer(listener: &TcpListener, url: &str, exchange: &Exchange) -> Seen {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let length = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length:")?
                .trim()
                .parse()
                .ok()
        })
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    assert!(head.starts_with(&format!("{} ", exchange.asked)), "{head}");
    let mut text = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", exchange.status);
    for (name, value) in &exchange.headers {
        text.push_str(&format!("{name}: {}\r\n", value.replace("{url}", url)));
    }
    let json = exchange.body.to_string();
    text.push_str(&format!("Content-Length: {}\r\n\r\n{json}", json.len()));
    reader.into_inner().write_all(text.as_bytes()).unwrap();
    let body = String::from_utf8(body).unwrap();
    Seen { head, body }
}

//! HTTP by hand: nothing is added that a test did not ask for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::SOON;

/// A request.
pub struct Ask {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    has_host: bool,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub text: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        let read = serde_json::from_str(&self.text);
        read.unwrap_or_else(|error| panic!("{error}: {}\n{}", self.head, self.text))
    }

    /// The kind of its error.
    #[track_caller]
    pub fn kind(&self) -> String {
        crate::text(&self.json()["error"]["kind"])
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Ask {
    pub fn new(method: &str, path: &str) -> Ask {
        Ask {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
            has_host: false,
        }
    }

    pub fn get(path: &str) -> Ask {
        Self::new("GET", path)
    }

    pub fn post(path: &str, body: &str) -> Ask {
        Self::new("POST", path).json(body)
    }

    pub fn json(self, body: &str) -> Ask {
        self.header("Content-Type", "application/json")
            .body(body.as_bytes())
    }

    pub fn body(mut self, body: &[u8]) -> Ask {
        self.body = Some(body.to_vec());
        self
    }

    pub fn token(self, token: &str) -> Ask {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub fn header(mut self, name: &str, value: &str) -> Ask {
        self.has_host |= name.eq_ignore_ascii_case("host");
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without any Host header.
    pub fn hostless(mut self) -> Ask {
        self.has_host = true;
        self
    }

    pub fn bytes(&self, address: &str, ends: bool) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.has_host {
            head.push_str(&format!("Host: {address}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        if ends {
            head.push_str("Connection: close\r\n");
        }
        let mut bytes = format!("{head}\r\n").into_bytes();
        bytes.extend(self.body.iter().flatten());
        bytes
    }

    #[track_caller]
    pub fn send(&self, address: &str) -> Answer {
        let mut stream = connect(address);
        // A server that refuses may close before it has read everything.
        drop(stream.write_all(&self.bytes(address, true)));
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        assert!(read.is_ok() || !bytes.is_empty(), "no answer: {read:?}");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let is_chunked = head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked");
        Answer {
            status: status.unwrap_or_else(|| panic!("no status: {text}")),
            head: head.to_owned(),
            text: if is_chunked {
                whole(body)
            } else {
                body.to_owned()
            },
        }
    }

    /// Opens a stream of events.
    #[track_caller]
    pub fn follow(self, address: &str) -> Events {
        let ask = self.header("Accept", "text/event-stream");
        let mut stream = connect(address);
        stream.write_all(&ask.bytes(address, false)).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Events {
            reader,
            text: String::new(),
        }
    }
}

pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.set_write_timeout(Some(SOON)).unwrap();
    stream
}

fn whole(chunked: &str) -> String {
    let mut rest = chunked;
    let mut text = String::new();
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        text.push_str(&more[..size]);
        rest = more[size..].trim_start_matches("\r\n");
    }
    text
}

/// One message of a stream.
#[derive(Debug, Clone)]
pub struct Event {
    pub name: String,
    pub id: Option<u64>,
    pub data: Value,
}

/// A stream of events, over chunks.
pub struct Events {
    reader: BufReader<TcpStream>,
    text: String,
}

impl Events {
    /// The next message; none if the stream has ended.
    #[track_caller]
    pub fn next(&mut self) -> Option<Event> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let found = event(block);
                self.text = rest.to_owned();
                if found.is_some() {
                    return found;
                }
            }
            let mut size = String::new();
            self.reader.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16)
                .ok()
                .filter(|size| *size > 0)?;
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).unwrap();
            self.text
                .push_str(std::str::from_utf8(&chunk[..size]).unwrap());
        }
    }

    /// The next message with this name.
    #[track_caller]
    pub fn until(&mut self, name: &str) -> Event {
        self.find(name, |_| true)
    }

    /// The next message with this name and data.
    #[track_caller]
    pub fn find(&mut self, name: &str, fits: impl Fn(&Value) -> bool) -> Event {
        loop {
            let event = self.next().unwrap_or_else(|| panic!("no {name}"));
            if event.name == name && fits(&event.data) {
                return event;
            }
        }
    }
}

/// A block of lines; none if it is a comment.
fn event(block: &str) -> Option<Event> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    Some(Event {
        name: field("event")?.to_owned(),
        id: field("id").map(|id| id.parse().unwrap()),
        data: serde_json::from_str(field("data").unwrap()).unwrap(),
    })
}

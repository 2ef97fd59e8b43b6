//! The part of HTTP/1.1 that agents need: requests with a length or in chunks, JSON, and event
//! streams.

use std::io::{self, BufRead, Read, Write};

use serde_json::Value;

/// More than any agent sends.
const MAX_LENGTH: usize = 64 << 20;

/// A request, with header names in lower case.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Reads a request; `None` if the other side closed the connection instead.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Request>> {
        let Some(first) = line(from)? else {
            return Ok(None);
        };
        let mut words = first.split(' ').map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Err(io::Error::other(format!("not a request: {first}")));
        };
        let mut headers = Vec::new();
        loop {
            let text = line(from)?.ok_or_else(cut)?;
            if text.is_empty() {
                break;
            }
            let (name, value) = text.split_once(':').ok_or_else(cut)?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Request {
            method,
            path,
            headers,
            body: Vec::new(),
        };
        request.body = request.read_body(from)?;
        Ok(Some(request))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    fn read_body(&self, from: &mut impl BufRead) -> io::Result<Vec<u8>> {
        if self.header("transfer-encoding") == Some("chunked") {
            return read_chunks(from);
        }
        let length = self.header("content-length").unwrap_or("0");
        exactly(from, length.parse().map_err(io::Error::other)?)
    }
}

fn read_chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(from)?.ok_or_else(cut)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        if size == 0 {
            // Trailers end with an empty line, as headers do.
            while line(from)?.is_some_and(|text| !text.is_empty()) {}
            return Ok(body);
        }
        body.extend(exactly(from, size)?);
        line(from)?;
    }
}

fn exactly(from: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    if length > MAX_LENGTH {
        return Err(io::Error::other(format!("a body of {length} bytes")));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(body)
}

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut text = String::new();
    if from.read_line(&mut text)? == 0 {
        return Ok(None);
    }
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a request that was cut off")
}

pub(super) fn json(
    to: &mut impl Write,
    code: u16,
    headers: &[(&'static str, String)],
    value: &Value,
) -> io::Result<()> {
    let body = value.to_string();
    write!(to, "HTTP/1.1 {code} Mock\r\n")?;
    for (name, value) in headers {
        write!(to, "{name}: {value}\r\n")?;
    }
    write!(
        to,
        "content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    to.flush()
}

/// Begins an event stream, which ends with the connection.
pub(super) fn stream(to: &mut impl Write) -> io::Result<()> {
    write!(
        to,
        "HTTP/1.1 200 Mock\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
         connection: close\r\n\r\n"
    )?;
    to.flush()
}

/// Sends an event; a JSON string is sent as plain text.
pub(super) fn event(to: &mut impl Write, name: Option<&str>, data: &Value) -> io::Result<()> {
    if let Some(name) = name {
        writeln!(to, "event: {name}")?;
    }
    match data {
        Value::String(text) => write!(to, "data: {text}\n\n")?,
        other => write!(to, "data: {other}\n\n")?,
    }
    to.flush()
}

/// Keeps the stream alive, and fails if the other side is gone.
pub(super) fn ping(to: &mut impl Write) -> io::Result<()> {
    to.write_all(b": ping\n\n")?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::Request;

    fn read(text: &str) -> Option<Request> {
        Request::read(&mut text.as_bytes()).unwrap()
    }

    #[test]
    fn bodies_come_with_a_length_or_in_chunks() {
        let plain = read("POST /a?b HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcd").unwrap();
        assert_eq!(
            (plain.method.as_str(), plain.path.as_str()),
            ("POST", "/a?b")
        );
        assert_eq!(plain.body, b"abc");
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunks = read(&format!("{head}2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n")).unwrap();
        assert_eq!(chunks.body, b"abc");
        assert!(read("").is_none());
        assert!(Request::read(&mut "GET / HTTP/1.1\r\n".as_bytes()).is_err());
    }
}

//! The socket against a model on loopback that does what each test says.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc as channel;

use tempfile::TempDir;
use tenure_runs::network::ModelKey;

use super::*;

/// How long anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A socket that leads to a listener of the test.
struct Setting {
    dir: TempDir,
    model: TcpListener,
    socket: PathBuf,
}

impl Setting {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let model = TcpListener::bind("127.0.0.1:0").unwrap();
        let file = dir.path().join("key");
        let setting = Self {
            socket: dir.path().join("s"),
            dir,
            model,
        };
        setting.write_key("the-key\n");
        let target = ModelTarget {
            url: format!("http://{}/", setting.model.local_addr().unwrap()),
            key: Some(ModelKey {
                header: "x-api-key".to_owned(),
                before: String::new(),
                file,
            }),
            roots: None,
        };
        serve(UnixListener::bind(&setting.socket).unwrap(), target).unwrap();
        setting
    }

    fn write_key(&self, key: &str) {
        let file = self.dir.path().join("key");
        fs_err::write(&file, key).unwrap();
        fs_err::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    }

    /// The agent's side: sends these bytes.
    fn send(&self, bytes: &[u8]) -> BufReader<UnixStream> {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(bytes).unwrap();
        BufReader::new(stream)
    }

    /// The model's side: the next request, and the connection to answer on.
    fn accept(&self) -> (Message, TcpStream) {
        let (stream, _) = self.model.accept().unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let message = Message::read(&mut BufReader::new(&stream));
        (message, stream)
    }
}

/// A request or an answer: its lines, and as many bytes as it names.
#[derive(Debug)]
struct Message {
    lines: Vec<String>,
    body: Vec<u8>,
}

impl Message {
    fn read(from: &mut impl BufRead) -> Self {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let mut message = Self {
            lines,
            body: Vec::new(),
        };
        let length = message.header("content-length");
        let length = length.map_or(0, |length| length.parse().unwrap());
        message.body.resize(length, 0);
        from.read_exact(&mut message.body).unwrap();
        message
    }

    fn header(&self, name: &str) -> Option<&str> {
        let pairs = self.lines.iter().filter_map(|line| line.split_once(": "));
        let mut found = pairs.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let (_, value) = found.next()?;
        assert!(found.next().is_none(), "{name} comes twice: {self:?}");
        Some(value)
    }
}

/// A piece of a body in pieces, as it is on the wire.
fn piece(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

const BEGIN: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const WHOLE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwhole";
const ASK: &[u8] = b"GET /v1/models HTTP/1.1\r\nHost: model\r\n\r\n";

/// Reads until the text has come.
fn read_until(from: &mut impl BufRead, text: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(text) {
        let mut byte = [0];
        from.read_exact(&mut byte)
            .unwrap_or_else(|error| panic!("{error} after {:?}", String::from_utf8_lossy(&seen)));
        seen.extend(byte);
    }
    String::from_utf8(seen).unwrap()
}

#[test]
fn a_request_arrives_as_it_was_sent_but_with_the_key_of_the_file() {
    let setting = Setting::new();
    let body: Vec<u8> = (0..300_000_u32)
        .map(|number| number.to_le_bytes()[0])
        .collect();
    let head = format!(
        "POST /v1/messages?beta=true HTTP/1.1\r\nHost: model\r\nanthropic-version: 2023-06-01\r\n\
         x-api-key: added-outside\r\nAuthorization: Bearer of-the-agent\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut agent = setting.send(&[head.as_bytes(), &body].concat());
    let (asked, mut model) = setting.accept();
    assert_eq!(asked.lines[0], "POST /v1/messages?beta=true HTTP/1.1");
    assert!(asked.body == body, "the bytes are the same");
    assert_eq!(asked.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(asked.header("x-api-key"), Some("the-key"));
    assert_eq!(asked.header("authorization"), None);
    let address = setting.model.local_addr().unwrap().to_string();
    assert_eq!(asked.header("host"), Some(address.as_str()));
    // A key that was replaced counts for the next request.
    setting.write_key("another");
    model.write_all(WHOLE.as_bytes()).unwrap();
    let told = Message::read(&mut agent);
    assert_eq!(told.lines[0], "HTTP/1.1 200 OK");
    agent.get_mut().write_all(ASK).unwrap();
    assert_eq!(setting.accept().0.header("x-api-key"), Some("another"));
}

#[test]
fn an_answer_is_passed_on_as_it_comes() {
    let setting = Setting::new();
    let mut agent = setting.send(ASK);
    let (_, mut model) = setting.accept();
    model.write_all(BEGIN.as_bytes()).unwrap();
    model.write_all(piece("first").as_bytes()).unwrap();
    // The model has more to say and waits.
    let told = read_until(&mut agent, "first");
    assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
    assert!(
        told.contains("content-type: text/event-stream\r\n"),
        "{told}"
    );
    model.write_all(piece("second").as_bytes()).unwrap();
    read_until(&mut agent, "second");
    model.write_all(b"0\r\n\r\n").unwrap();
    read_until(&mut agent, "0\r\n\r\n");
}

#[test]
fn several_connections_are_served_at_once() {
    let setting = Setting::new();
    let mut agents: Vec<_> = (0..8).map(|_| setting.send(ASK)).collect();
    let mut models: Vec<_> = (0..8).map(|_| setting.accept().1).collect();
    // All wait; the last one that asked is answered first.
    for model in models.iter_mut().rev() {
        model.write_all(WHOLE.as_bytes()).unwrap();
    }
    for agent in &mut agents {
        read_until(agent, "whole");
    }
}

#[test]
fn an_agent_that_hangs_up_ends_its_request_and_no_other() {
    let setting = Setting::new();
    let mut agent = setting.send(ASK);
    let (_, mut model) = setting.accept();
    model.write_all(BEGIN.as_bytes()).unwrap();
    model.write_all(piece("first").as_bytes()).unwrap();
    read_until(&mut agent, "first");
    drop(agent);
    // The model sends on until its connection is closed.
    model.set_write_timeout(Some(LONG)).unwrap();
    let more = piece(&"x".repeat(16 << 10));
    let error = loop {
        if let Err(error) = model.write_all(more.as_bytes()) {
            break error.kind();
        }
    };
    let closed = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
    assert!(closed.contains(&error), "{error}");
    // So is one that ends in the middle of its request.
    drop(
        setting
            .send(b"POST /v1/messages HTTP/1.1\r\nHost: model\r\nContent-Length: 10\r\n\r\nhalf"),
    );
    let mut next = setting.send(ASK);
    let (asked, mut model) = setting.accept();
    assert_eq!(
        asked.lines[0], "GET /v1/models HTTP/1.1",
        "half a request is not sent"
    );
    model.write_all(WHOLE.as_bytes()).unwrap();
    read_until(&mut next, "whole");
}

#[test]
fn a_model_that_hangs_up_in_its_answer_is_not_taken_for_one_that_finished() {
    let setting = Setting::new();
    let mut agent = setting.send(ASK);
    let (_, mut model) = setting.accept();
    model.write_all(BEGIN.as_bytes()).unwrap();
    model.write_all(piece("first").as_bytes()).unwrap();
    // What has not been passed on when the model hangs up may be lost with the connection.
    read_until(&mut agent, "first");
    drop(model);
    let mut told = Vec::new();
    // Whether the broken connection is an end or an error is the kernel's choice.
    agent.read_to_end(&mut told).ok();
    let told = String::from_utf8_lossy(&told);
    assert!(
        !told.ends_with("0\r\n\r\n"),
        "the end of a whole answer: {told}"
    );
}

#[test]
fn a_model_that_is_away_and_a_key_that_cannot_be_read_are_named() {
    let setting = Setting::new();
    fs_err::remove_file(setting.dir.path().join("key")).unwrap();
    let mut agent = setting.send(ASK);
    let told = Message::read(&mut agent);
    assert_eq!(told.lines[0], "HTTP/1.1 502 Bad Gateway");
    setting.model.set_nonblocking(true).unwrap();
    assert!(
        setting.model.accept().is_err(),
        "nothing is sent without the key"
    );
    setting.write_key("the-key");
    let Setting { dir, model, socket } = setting;
    drop(model);
    let mut agent = UnixStream::connect(&socket).unwrap();
    agent.set_read_timeout(Some(LONG)).unwrap();
    agent.write_all(ASK).unwrap();
    let told = Message::read(&mut BufReader::new(agent));
    assert_eq!(told.lines[0], "HTTP/1.1 502 Bad Gateway");
    let told = String::from_utf8(told.body).unwrap();
    assert!(
        told.starts_with("tenure: the model was not reached: "),
        "{told}"
    );
    assert!(!told.contains("the-key"), "{told}");
    drop(dir);
}

#[test]
fn the_socket_leads_to_the_model_and_nowhere_else() {
    let setting = Setting::new();
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = elsewhere.local_addr().unwrap();
    let (contacts, contacted) = channel::channel();
    std::thread::spawn(move || {
        let accepted = elsewhere.accept();
        contacts.send(accepted.is_ok()).ok();
    });
    // As a proxy would be asked.
    let ask = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let told = Message::read(&mut setting.send(ask.as_bytes()));
    assert_eq!(told.lines[0], "HTTP/1.1 502 Bad Gateway");
    // A redirect is the agent's business; following it would give the key away.
    let mut agent = setting.send(ASK);
    let (_, mut model) = setting.accept();
    let moved = format!(
        "HTTP/1.1 307 Moved\r\nLocation: http://{address}/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    );
    model.write_all(moved.as_bytes()).unwrap();
    let told = Message::read(&mut agent);
    assert_eq!(told.lines[0], "HTTP/1.1 307 Temporary Redirect");
    assert_eq!(
        told.header("location"),
        Some(format!("http://{address}/").as_str())
    );
    assert!(contacted.try_recv().is_err(), "something called");
}

//! A signed delivery from here to the dispatcher's own address.
//!
//! It has no effect: without a repository, it is verified and then dropped before it reaches the
//! store or a rule. The secret itself is never sent, because another program may be listening at
//! the address.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tenure_core::time::Span;
use tenure_forges::TestDelivery;
use tenure_host::{clock, pause};
use tenure_service::answer::{Class, Hint, Problem};

use super::config::Config;
use super::forge_config::ForgeConfig;
use super::given::which;
use super::receive::WebhookResponse;
use tenure_app::dispatchers;
use tenure_app::open::Context;

/// How long connecting may take, and then the whole answer.
const WITHIN: Duration = Duration::from_secs(10);
/// How long to wait before trying again whether something listens.
const AGAIN: Duration = Duration::from_millis(50);
const MAX_LENGTH: u64 = 64 << 10;

/// A ping that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pinged {
    pub forge: String,
    pub address: SocketAddr,
    pub endpoint: String,
    /// How many secrets were tried; each was accepted.
    pub secrets: usize,
    pub status: u16,
    pub verdict: String,
    pub why: String,
}

/// Where the dispatcher of this configuration listens: the given address, or that of a running
/// dispatcher with this file, or the one in the file.
fn address(context: &Context, config: &Config, given: Option<SocketAddr>) -> SocketAddr {
    let runs = || {
        let mut all = dispatchers::find(context).into_iter();
        let file = dispatchers::whole(&config.file);
        let is_this = |one: &dispatchers::RunningDispatcher| one.config.as_ref() == Some(&file);
        all.find_map(|one| one.address.filter(|_| is_this(&one)))
    };
    let mut address = given.or_else(runs).unwrap_or(config.listen);
    // An unspecified address is reached on this machine.
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

/// Sends one delivery for each secret of a forge; waits at most this long until something listens.
pub fn ping(
    context: &Context,
    config: &Config,
    forge: Option<&str>,
    given: Option<SocketAddr>,
    patience: Duration,
) -> Result<Pinged, Problem> {
    let forge = which(config, forge)?;
    let until = clock::instant() + patience;
    loop {
        let pinged = send_all(forge, address(context, config, given));
        let is_early = |problem: &Problem| problem.kind == "nothing_listens";
        if !pinged.as_ref().is_err_and(is_early) || clock::instant() >= until {
            return pinged;
        }
        pause::sleep(AGAIN);
    }
}

fn send_all(forge: &ForgeConfig, address: SocketAddr) -> Result<Pinged, Problem> {
    let endpoint = format!("/hooks/{}", forge.name);
    let mut pinged = Pinged {
        forge: forge.name.clone(),
        address,
        endpoint: endpoint.clone(),
        secrets: 0,
        status: 0,
        verdict: String::new(),
        why: String::new(),
    };
    for secret in &forge.secrets {
        let answer = one(
            &forge.row.test_delivery(secret, clock::wall()),
            &endpoint,
            address,
        );
        let (status, body) = answer.map_err(|error| not_reached(address, &error))?;
        let verdict = body["verdict"].as_str().filter(|_| status == 200);
        let Some(verdict) = verdict else {
            return Err(not_accepted(&pinged, forge.secrets.len(), status, &body));
        };
        pinged.secrets += 1;
        pinged.status = status;
        verdict.clone_into(&mut pinged.verdict);
        body["why"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut pinged.why);
    }
    Ok(pinged)
}

/// Sends a delivery; returns the status and the body of the answer. An answer that is not HTTP has
/// status 0.
fn one(sent: &TestDelivery, path: &str, address: SocketAddr) -> io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect_timeout(&address, WITHIN)?;
    stream.set_write_timeout(Some(WITHIN))?;
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n",
        sent.body.len()
    );
    for (name, value) in &sent.headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    request.push_str(sent.body);
    stream.write_all(request.as_bytes())?;
    let answer = receive(&mut stream, WITHIN)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.strip_prefix("HTTP/1.").and_then(|rest| {
        let code = rest.split(' ').nth(1)?;
        code.parse().ok()
    });
    let body = serde_json::from_str(body.trim()).unwrap_or_default();
    Ok((status.unwrap_or(0), body))
}

/// Reads to the end, up to a time and a length limit.
fn receive(stream: &mut TcpStream, within: Duration) -> io::Result<Vec<u8>> {
    let until = clock::instant() + within;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let left = until.saturating_duration_since(clock::instant());
        if left.is_zero() || answer.len() as u64 > MAX_LENGTH {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(answer),
            Ok(count) => answer.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // What arrived before the connection broke counts.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset && !answer.is_empty() => {
                return Ok(answer);
            }
            Err(error) => return Err(error),
        }
    }
}

fn not_reached(address: SocketAddr, error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            let message = format!("nothing listens at {address}");
            let hint = Hint::verb(
                "dispatch",
                "to start the dispatcher, or pass its address with --listen",
            );
            Problem::new(Class::NotFound, "nothing_listens", message, hint)
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            let message = format!("{address} did not answer within {}", Span(WITHIN));
            let hint = Hint::step(format!(
                "see which program listens there: ss -ltnp 'sport = :{}'",
                address.port()
            ));
            Problem::new(Class::TimedOut, "no_answer", message, hint)
        }
        _ => other_program(address, &error.to_string()),
    }
}

fn other_program(address: SocketAddr, said: &str) -> Problem {
    let message = format!("what listens at {address} is not tenure: {said}");
    let hint = Hint::step(format!(
        "see which program it is: ss -ltnp 'sport = :{}'; or let tenure listen elsewhere with --listen",
        address.port()
    ));
    Problem::new(Class::Invalid, "other_program", message, hint)
}

fn not_accepted(pinged: &Pinged, secrets: usize, status: u16, body: &Value) -> Problem {
    let Pinged { forge, address, .. } = pinged;
    let said = body["error"].as_str();
    let is_refusal = status == 401 && *body == WebhookResponse::unknown_sender().body;
    if is_refusal {
        let which = match secrets {
            1 => "its secret".to_owned(),
            more => format!("secret {} of {more}", pinged.secrets + 1),
        };
        let message = format!(
            "the dispatcher at {address} does not accept {which} for forge {forge} (status 401): it was started with \
             another dispatch.toml, or before the secret was changed"
        );
        let hint = Hint::run("dispatch", ["stop"], "then start it again");
        return Problem::new(Class::Refused, "not_accepted", message, hint);
    }
    if let Some(said) = said.filter(|_| status >= 500) {
        let message = format!("the dispatcher at {address} failed (status {status}): {said}");
        let hint = Hint::step("see what the dispatcher printed");
        return Problem::new(Class::Refused, "not_accepted", message, hint);
    }
    let said = match status {
        0 => "it does not answer in HTTP".to_owned(),
        status => format!("it answered with status {status}"),
    };
    other_program(*address, &said)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_program_that_never_answers_is_told_from_one_that_is_not_there() {
        // The kernel accepts the connection; nobody reads it.
        let silent = TcpListener::bind("127.0.0.1:0").expect("the loopback is there");
        let address = silent.local_addr().expect("it is bound");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let error = receive(&mut stream, Duration::from_millis(20)).expect_err("nobody answers");
        assert_eq!(not_reached(address, &error).kind, "no_answer");
        drop(silent);
        let error = TcpStream::connect(address).expect_err("nobody listens");
        assert_eq!(not_reached(address, &error).kind, "nothing_listens");
    }
}

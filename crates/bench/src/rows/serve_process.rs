//! A running `tenure serve` that is measured.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tenure_core::ignore::Ignore;

use super::Bench;
use crate::Failed;
use crate::program::Surroundings;

/// For anything that must happen.
const SOON: Duration = Duration::from_secs(60);

/// A running server, ended with this.
pub(super) struct ServeProcess {
    process: Child,
    /// Its output stays open.
    _said: BufReader<ChildStdout>,
    pub address: String,
    pub token: String,
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).ignore("it has ended");
        self.process.wait().ignore("only its end matters");
    }
}

impl ServeProcess {
    pub fn start(bench: &Bench, around: &Surroundings) -> Result<Self, Failed> {
        let words = ["token", "new", "bench", "--scope", "read,logs", "--json"];
        let mut made = around.call(&bench.programs.tenure, words).command()?;
        let made: Value = serde_json::from_slice(&made.stdout(Stdio::piped()).output()?.stdout)?;
        let token = made["secret"].as_str().ok_or("there is no token")?;
        let words = ["serve", "--listen", "127.0.0.1:0", "--json"];
        let mut command = around.call(&bench.programs.tenure, words).command()?;
        let mut process = command.stdout(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(process.stdout.take().ok_or("it has no output")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        let line: Value = serde_json::from_str(&line)?;
        let url = line["serving"]["url"].as_str().ok_or("it does not serve")?;
        Ok(Self {
            process,
            _said: said,
            address: url.trim_start_matches("http://").to_owned(),
            token: token.to_owned(),
        })
    }

    pub fn ask(&self, path: &str, more: &str) -> Result<TcpStream, Failed> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(SOON))?;
        let (address, token) = (&self.address, &self.token);
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
        );
        stream.write_all(head.as_bytes())?;
        Ok(stream)
    }

    /// A whole answer; how long it took, and its length.
    pub fn timed(&self, path: &str) -> Result<(Duration, usize), Failed> {
        let began = Instant::now();
        let mut answer = Vec::new();
        self.ask(path, "Connection: close\r\n")?
            .read_to_end(&mut answer)?;
        let took = began.elapsed();
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&answer[..answer.len().min(400)]).into());
        }
        Ok((took, answer.len()))
    }

    /// What it holds in memory that no other process has.
    pub fn memory(&self) -> Result<f64, Failed> {
        let path = format!("/proc/{}/smaps_rollup", self.process.id());
        let text = fs_err::read_to_string(path)?;
        let parts = text
            .lines()
            .filter(|line| line.starts_with("Private_Clean") || line.starts_with("Private_Dirty"));
        let parts = parts.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        Ok(parts.sum::<f64>() / 1024.0)
    }
}

//! A process that claims and releases one key as often as it can, beside others that do the same.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::key::Key;
use tenure_service::error::Error;
use tenure_service::{ActFor, ClaimRequest, Pick, ReleaseRequest};
use tenure_store::sqlite::SqliteStore;

use crate::Failed;
use crate::place::BenchStore;
use crate::sample::Sample;

/// What can hold a key.
pub trait Contender {
    /// Claims; false where another holds it.
    fn claim(&mut self, key: &str) -> Result<bool, Failed>;

    fn release(&mut self, key: &str) -> Result<(), Failed>;
}

/// tenure's own use cases, in process.
pub struct Ours {
    place: BenchStore,
    store: SqliteStore,
}

impl Ours {
    /// This process as a session.
    pub fn register(place: BenchStore) -> Result<Self, Failed> {
        let mut store = place.store()?;
        place.register(&mut store)?;
        Ok(Self { place, store })
    }
}

/// A plain claim of one key.
pub fn request(key: Key) -> ClaimRequest {
    ClaimRequest {
        keys: vec![key],
        pick: Pick::All,
        request: None,
        once: false,
        reopen: false,
        note: None,
        require_quiet: false,
    }
}

impl Contender for Ours {
    fn claim(&mut self, key: &str) -> Result<bool, Failed> {
        let request = request(Key::parse(key)?);
        let mut service = self.place.service(&mut self.store);
        match service.claim(&ActFor::default(), &request) {
            Ok(_) => Ok(true),
            Err(failure) => match failure.error {
                Error::Held { .. } => Ok(false),
                other => Err(other.to_string().into()),
            },
        }
    }

    fn release(&mut self, key: &str) -> Result<(), Failed> {
        let request = ReleaseRequest {
            key: Key::parse(key)?,
            epoch: None,
            done: false,
        };
        let mut service = self.place.service(&mut self.store);
        let released = service.release(&ActFor::default(), &request);
        released.map_err(|failure| failure.error.to_string())?;
        Ok(())
    }
}

/// How long to go on.
#[derive(Debug, Clone, Copy)]
pub enum WorkLimit {
    /// For this long, once the driver says so on stdin.
    Over(Duration),
    /// For so many pairs, at once.
    Pairs(u64),
}

impl WorkLimit {
    /// `30` pairs, or `2.5s`.
    pub fn parse(text: &str) -> Result<Self, Failed> {
        Ok(match text.strip_suffix('s') {
            Some(seconds) => WorkLimit::Over(Duration::try_from_secs_f64(seconds.parse()?)?),
            None => WorkLimit::Pairs(text.parse()?),
        })
    }
}

/// Claims and releases, and says on stdout what it came to.
pub fn contend(contender: &mut dyn Contender, key: &str, until: WorkLimit) -> Result<(), Failed> {
    if matches!(until, WorkLimit::Over(_)) {
        say("ready")?;
        std::io::stdin().lock().read_line(&mut String::new())?;
    }
    let began = Instant::now();
    let mut refused: u64 = 0;
    let mut times = Vec::new();
    loop {
        let enough = match until {
            WorkLimit::Over(length) => began.elapsed() >= length,
            WorkLimit::Pairs(count) => times.len() as u64 >= count,
        };
        if enough {
            break;
        }
        let at = Instant::now();
        if !contender.claim(key)? {
            refused += 1;
            continue;
        }
        contender.release(key)?;
        times.push(at.elapsed());
    }
    let seconds = began.elapsed().as_secs_f64();
    let pairs = times.len();
    let times = Sample::of(times);
    let tally: Value = json!({
        "pairs": pairs,
        "refused": refused,
        "seconds": seconds,
        "p99_us": times.p99(),
        "longest_us": times.max(),
    });
    say(&tally.to_string())
}

fn say(line: &str) -> Result<(), Failed> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

//! A PostgreSQL server for a run, and everything that happens to it and to the way there: it is killed and started
//! again, its connections are ended, the link is cut, delayed and frozen, its pooler is stopped.
//!
//! After the run its rows are copied into a file of SQLite, with the tables that the checks read. So one judge serves
//! both backends, and judges again what a run has left.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use tenure_core::ignore::Ignore;
use tenure_core::store::{ClaimFilter, Store, TxMode};
use tenure_postgres::PostgresStore;
use tenure_postgres::migrate;
use tenure_store::server::{Access, PostgresUrl};
use tenure_testkit::postgres::{Asker, Bouncer, PoolMode, PostgresServer, Proxy};

use super::dice::Dice;
use super::hosts::NAMES;
use super::record::{Disturbance, Log, monotonic};

/// How many connections the pooler has to the server.
const POOL: usize = 3;
/// The longest that anything of this lasts, so that what was sent before has arrived by then.
pub const MAX_TIME: Duration = Duration::from_secs(4);

/// The log of what was done to the server and the links.
pub const WEATHER: &str = "weather.log";

/// What was done to the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Storms {
    pub restarts: u64,
    pub terminations: u64,
    pub cuts: u64,
    /// Commits whose answers were kept back.
    pub unanswered: u64,
    pub delays: u64,
    pub freezes: u64,
    pub stopped_poolers: u64,
    /// Rows of claims that were locked for a while.
    pub locked_rows: u64,
}

/// A kind of harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    EndConnections,
    Restart,
    Cut,
    KeepAnswers,
    Delay,
    LockRow,
    Freeze,
    /// A freeze, if there is no pooler.
    StopPooler,
}

/// Every kind, as often as it comes in a round, so that none is left out of a run that lasts a few minutes. What happens
/// between two messages of a transaction happens most often on a slow link.
const ROUND: [Blow; 21] = {
    use Blow::{Cut, Delay, EndConnections, Freeze, KeepAnswers, LockRow, Restart, StopPooler};
    [
        EndConnections,
        EndConnections,
        EndConnections,
        EndConnections,
        Restart,
        Restart,
        Cut,
        Cut,
        KeepAnswers,
        KeepAnswers,
        Delay,
        Delay,
        Delay,
        Delay,
        Delay,
        LockRow,
        LockRow,
        Freeze,
        Freeze,
        StopPooler,
        StopPooler,
    ]
};

/// The next of a round in random order; a new round follows the last of one.
fn next_blow(deck: &mut Vec<Blow>, dice: &mut Dice) -> Blow {
    if deck.is_empty() {
        deck.extend(ROUND);
        dice.shuffle(deck);
    }
    deck.pop().unwrap_or(Blow::Delay)
}

/// A server, the way to it, and who harms both.
pub struct Weather {
    /// The URLs for workers, through everything that is harmed: one for each host.
    pub urls: Vec<String>,
    schema: String,
    over: Arc<AtomicBool>,
    calmed: Receiver<Storm>,
    /// The thread that started a server stays until this is dropped, because the server ends with it.
    _stays: Sender<()>,
}

struct Storm {
    server: PostgresServer,
    schema: String,
    bouncer: Option<Bouncer>,
    /// The link of each host.
    proxies: Vec<Proxy>,
    /// What happens next, from the end.
    deck: Vec<Blow>,
    dice: Dice,
    log: Log,
    over: Arc<AtomicBool>,
    done: Storms,
}

pub fn access(url: &str) -> Result<Access, Box<dyn std::error::Error>> {
    let url = PostgresUrl::parse(url).map_err(|bad| format!("{bad:?}"))?;
    Ok(Access {
        password: url.password.clone(),
        url,
        root_certificates: None,
        through: None,
    })
}

/// Opens a store as a process that nothing else is named like.
pub fn open(url: &str) -> Result<PostgresStore, Box<dyn std::error::Error>> {
    let mut name = [0; 16];
    name[..4].copy_from_slice(&std::process::id().to_be_bytes());
    name[4..12].copy_from_slice(&monotonic().to_be_bytes());
    Ok(PostgresStore::open(access(url)?, name, None)?)
}

impl Weather {
    /// Starts a server with an empty store, and links to it for so many hosts.
    pub fn begin(is_pooled: bool, links: usize, seed: u64, dir: &Path) -> io::Result<Self> {
        let server = PostgresServer::own(&[]);
        let schema = server.new_schema();
        let failed = |error: Box<dyn std::error::Error>| io::Error::other(error.to_string());
        let direct = access(&server.url(&schema)).map_err(failed)?;
        migrate(&direct).map_err(io::Error::other)?;
        let bouncer = is_pooled.then(|| Bouncer::start(&server, PoolMode::Transaction, POOL));
        let (port, url) = match &bouncer {
            Some(bouncer) => (bouncer.port(), bouncer.url(&schema)),
            None => (
                server.port(),
                server.tcp_url(Some(server.password()), &schema),
            ),
        };
        let proxies: Vec<Proxy> = (0..links).map(|_| Proxy::start(port)).collect();
        let through = |proxy: &Proxy| {
            let (own, other) = (format!(":{port}/"), format!(":{}/", proxy.port()));
            url.replace(&own, &other)
        };
        let urls = proxies.iter().map(through).collect();
        let over = Arc::new(AtomicBool::new(false));
        let mut storm = Storm {
            server,
            schema: schema.clone(),
            bouncer,
            proxies,
            deck: Vec::new(),
            dice: Dice::new(seed, 3),
            log: Log::open(&dir.join(WEATHER))?,
            over: Arc::clone(&over),
            done: Storms::default(),
        };
        let (calms, calmed) = channel();
        let (stays, leaves) = channel::<()>();
        std::thread::spawn(move || {
            while !storm.over.load(Ordering::SeqCst) {
                storm.something();
            }

            if calms.send(storm).is_ok() {
                // Only the end of the other side is waited for.
                leaves.recv().ignore("the other side is gone");
            }
        });
        Ok(Self {
            urls,
            schema,
            over,
            calmed,
            _stays: stays,
        })
    }

    /// Ends the harm, so that the store can be read.
    pub fn calm(&self) -> io::Result<Calm> {
        self.over.store(true, Ordering::SeqCst);
        let storm = self.calmed.recv().map_err(io::Error::other)?;
        Ok(Calm {
            schema: self.schema.clone(),
            storm,
        })
    }
}

impl Storm {
    fn sleep(&mut self, from: u64, to: u64) {
        let length = self.dice.between(from, to);
        tenure_host::pause::sleep(Duration::from_millis(length));
    }

    fn something(&mut self) {
        self.sleep(300, 4000);
        let from = monotonic();
        let link = self.link();
        self.happens(&link);
        let host = match link[..] {
            [only] if self.proxies.len() > 1 => NAMES.get(only).map(|name| (*name).to_owned()),
            _ => None,
        };
        let trouble = Disturbance {
            from,
            until: monotonic(),
            host,
            is_keeper: false,
        };
        self.log
            .write(&trouble)
            .ignore("the checks then expect more of the store than it can give, and fail");
    }

    /// The link of one host, or all of them.
    fn link(&mut self) -> Vec<usize> {
        let all: Vec<usize> = (0..self.proxies.len()).collect();
        if self.dice.percent(50) {
            self.dice.pick(&all).copied().into_iter().collect()
        } else {
            all
        }
    }

    fn each(&self, link: &[usize], act: impl Fn(&Proxy)) {
        link.iter()
            .filter_map(|one| self.proxies.get(*one))
            .for_each(act);
    }

    fn happens(&mut self, link: &[usize]) {
        match next_blow(&mut self.deck, &mut self.dice) {
            Blow::EndConnections => {
                let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                     WHERE pid <> pg_backend_pid() AND datname = 'tenure'";
                self.server.ask(sql);
                self.done.terminations += 1;
            }
            Blow::Restart => {
                self.wait_for_waiters();
                self.server.stop(true);
                self.sleep(0, 800);
                self.server.start();
                self.done.restarts += 1;
            }
            Blow::Cut => {
                self.each(link, Proxy::cut);
                self.done.cuts += 1;
            }
            Blow::KeepAnswers => self.keep_answers(link),
            Blow::Delay => {
                let delay = self.dice.between(5, 120);
                self.each(link, |proxy| proxy.delay(Duration::from_millis(delay)));
                self.sleep(500, 4000);
                self.each(link, |proxy| proxy.delay(Duration::ZERO));
                self.done.delays += 1;
            }
            Blow::LockRow => self.lock_row(),
            Blow::Freeze => self.freeze(link),
            Blow::StopPooler => match self.bouncer.as_ref().map(Bouncer::pid) {
                Some(pooler) => self.stop_pooler(pooler),
                None => self.freeze(link),
            },
        }
    }

    /// Keeps the answers of the next few commits, and waits a while for the first of them.
    fn keep_answers(&mut self, link: &[usize]) {
        let count = self.dice.between(1, 4);
        self.each(link, |proxy| proxy.leave_commits_unanswered(count));
        self.sleep(200, 1000);
        let mut kept: u64 = 0;
        for _ in 0..60 {
            let proxies = link.iter().filter_map(|one| self.proxies.get(*one));
            kept = proxies.map(|proxy| count - proxy.unanswered_left()).sum();
            if kept > 0 {
                break;
            }
            tenure_host::pause::sleep(Duration::from_millis(50));
        }
        self.done.unanswered += kept;
        self.each(link, |proxy| proxy.leave_commits_unanswered(0));
    }

    /// Waits until somebody is in line, but not for long.
    fn wait_for_waiters(&self) {
        let count = format!("SELECT count(*) FROM {}.waiters", self.schema);
        for _ in 0..20 {
            if self.server.ask(&count) != ["0"] {
                return;
            }
            tenure_host::pause::sleep(Duration::from_millis(50));
        }
    }

    /// Locks a row that the workers fight for, a claim's or a job's, as a transaction does that is stuck.
    fn lock_row(&mut self) {
        let mut asker = self.server.asker();
        asker.ask("BEGIN");
        let schema = &self.schema;
        // A queue has no claims, and at first there is no row at all.
        let is_locked = [("claims", "key"), ("jobs", "id")]
            .iter()
            .any(|(table, key)| {
                let row = format!("SELECT {key} FROM {schema}.{table} ORDER BY random() LIMIT 1");
                let lock =
                    format!("SELECT {key} FROM {schema}.{table} WHERE {key} = ({row}) FOR UPDATE");
                !asker.ask(&lock).is_empty()
            });
        if is_locked {
            self.sleep(200, 2_500);
            self.done.locked_rows += 1;
        }
        asker.ask("ROLLBACK");
    }

    /// Some for a moment, some for longer than a command waits.
    fn length(&mut self) -> (u64, u64) {
        let longest = u64::try_from(MAX_TIME.as_millis()).unwrap_or(u64::MAX);
        if self.dice.percent(60) {
            (10, 700)
        } else {
            (2_000, longest)
        }
    }

    fn freeze(&mut self, link: &[usize]) {
        let (from, to) = self.length();
        self.each(link, |proxy| proxy.freeze(true));
        self.sleep(from, to);
        self.each(link, |proxy| proxy.freeze(false));
        self.done.freezes += 1;
    }

    /// The kernel goes on accepting what is sent to it.
    fn stop_pooler(&mut self, pooler: u32) {
        let pid = i32::try_from(pooler).ok().and_then(Pid::from_raw);
        let Some(pid) = pid else { return };
        let (from, to) = self.length();
        // It is our child and not reaped, so the pid is its own.
        if kill_process(pid, Signal::STOP).is_ok() {
            self.sleep(from, to);
            kill_process(pid, Signal::CONT).ignore("it has exited");
            self.done.stopped_poolers += 1;
        }
    }
}

/// A server that is left alone.
pub struct Calm {
    schema: String,
    storm: Storm,
}

/// What the checks read, for each table: its columns, and how they are selected.
const TABLES: &[(&str, &str, &str)] = &[
    ("claims", "key, epoch", "epoch > 0"),
    (
        "holds",
        "key, epoch, session, means, note, ended_by",
        "true",
    ),
    (
        "events",
        "id, kind, key, epoch, evidence, reason, session, at",
        "true",
    ),
    ("jobs", "id, root, item, rule, state", "true"),
    ("job_events", "id, job, summary", "true"),
    ("undecided_deliveries", "delivery_id", "true"),
];

impl Calm {
    pub fn storms(&self) -> Storms {
        self.storm.done
    }

    /// Copies the rows into a new database of SQLite; returns what differs from what the product reads.
    pub fn copy(&self, database: &Path) -> Result<Option<String>, Box<dyn std::error::Error>> {
        let mut asker = self.storm.server.asker();
        let conn = Connection::open(database)?;
        for (table, columns, which) in TABLES {
            conn.execute_batch(&format!("CREATE TABLE {table} ({columns})"))?;
            self.copy_table(&mut asker, &conn, (table, columns, which))?;
        }
        self.reads_alike(&mut asker)
    }

    fn copy_table(
        &self,
        asker: &mut Asker,
        conn: &Connection,
        (table, columns, which): (&str, &str, &str),
    ) -> Result<(), Box<dyn std::error::Error>> {
        let schema = &self.schema;
        let rows = asker.ask(&format!(
            "SELECT json_build_array({columns})::text FROM {schema}.{table} WHERE {which}"
        ));
        let marks = vec!["?"; columns.split(',').count()].join(", ");
        let mut insert = conn.prepare(&format!("INSERT INTO {table} VALUES ({marks})"))?;
        for row in rows {
            let cells: Vec<serde_json::Value> = serde_json::from_str(&row)?;
            let cells = cells.into_iter().map(|cell| match cell {
                serde_json::Value::Number(number) => number.as_i64().into(),
                serde_json::Value::String(text) => rusqlite::types::Value::Text(text),
                _ => rusqlite::types::Value::Null,
            });
            insert.execute(rusqlite::params_from_iter(cells))?;
        }
        Ok(())
    }

    fn reads_alike(&self, asker: &mut Asker) -> Result<Option<String>, Box<dyn std::error::Error>> {
        let schema = &self.schema;
        let mut store = open(&self.storm.server.url(schema))?;
        let filter = ClaimFilter {
            free_too: true,
            ..ClaimFilter::default()
        };
        let records = store.begin(TxMode::Read)?.list_claims(&filter)?;
        let read = records.iter();
        let read: Vec<String> = read
            .map(|one| format!("{} {}", one.key, one.epoch.0))
            .collect();
        let stored = asker.ask(&format!(
            "SELECT key || ' ' || epoch FROM {schema}.claims WHERE epoch > 0 ORDER BY key"
        ));
        Ok((read != stored)
            .then(|| format!("the store reads {read:?}, and its tables have {stored:?}")))
    }

    /// The URL of the store, past everything that was harmed.
    pub fn url(&self) -> String {
        self.storm.server.url(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_kind_of_harm_is_left_out_of_a_round() {
        for seed in 0..50 {
            let mut dice = Dice::new(seed, 3);
            let mut deck = Vec::new();
            for round in 0..3 {
                let mut blows = ROUND.map(|_| next_blow(&mut deck, &mut dice));
                assert!(deck.is_empty(), "seed {seed}, round {round}");
                for kind in ROUND {
                    assert!(
                        blows.contains(&kind),
                        "seed {seed}, round {round}: {kind:?}"
                    );
                }
                blows.reverse();
                assert_ne!(blows, ROUND, "seed {seed}: not shuffled");
            }
        }
    }
}

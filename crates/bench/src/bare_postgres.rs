//! Claim and release on PostgreSQL by hand: the statements that ours sends, over the same socket, in the same round
//! trips, and nothing around them.

use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row};

use crate::Failed;

/// Who claims, as the rows name it.
#[derive(Debug, Clone)]
pub struct Claimer {
    pub session: String,
    pub life: i64,
    pub pids: Vec<i64>,
    pub host: String,
    pub boot: String,
    pub boot_private: bool,
    pub pid_ns: i64,
}

/// A connection.
#[derive(Debug)]
pub struct BarePostgres {
    runtime: Runtime,
    client: Client,
    schema: String,
    who: Claimer,
    commits: u64,
}

enum SqlParameter {
    Text(String),
    Number(i64),
    Nothing,
    Texts(Vec<String>),
    Numbers(Vec<i64>),
}

impl SqlParameter {
    fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            SqlParameter::Text(text) => (text, Type::TEXT),
            SqlParameter::Number(number) => (number, Type::INT8),
            SqlParameter::Nothing => (&None::<String>, Type::TEXT),
            SqlParameter::Texts(texts) => (texts, Type::TEXT_ARRAY),
            SqlParameter::Numbers(numbers) => (numbers, Type::INT8_ARRAY),
        }
    }
}

fn text(text: &str) -> SqlParameter {
    SqlParameter::Text(text.to_owned())
}

type Statement = (String, Vec<SqlParameter>);

fn plain(sql: impl Into<String>) -> Statement {
    (sql.into(), Vec::new())
}

const NOW: &str = "SELECT at, greatest(last, least(at + off, last + $1)), at + off - last \
     FROM clock, LATERAL (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at OFFSET 0) server";
const SESSION: &str = "SELECT id, handle, agent, native_id, fork_of, parent_id, parent_life, twin_of, title, \
     dir, repo, branch, hosted, life, host_id, boot_id, boot_private, pid_ns, pid, \
     start_ticks, start_shifted, activity, activity_since, started_at, seen_at, lease_era, \
     lease_era_private, lease_at, closed_at, closed_by, closed_why, revision, end_kind, \
     dismissed_at, title_by, headless, flags, asks, attended_at, daemon_pid, daemon_ticks, daemon_shifted \
     FROM sessions ";
const AT: &str = "WHERE pid = ANY($1) AND boot_id = $2 AND pid_ns = $3 AND host_id = $4 AND boot_private = $5 \
     AND closed_at IS NULL ORDER BY array_position($1, pid), started_at DESC, id DESC";
const LIVES: &str = "SELECT session, life, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted \
     FROM lives WHERE pid = ANY($1) AND boot_id = $2 AND pid_ns = $3 AND host_id = $4 AND boot_private = $5 \
     ORDER BY array_position($1, pid), at DESC, session DESC, life DESC";
const NOTICES: &str = "SELECT 1 FROM notices WHERE recipient = $1 AND delivered_at IS NULL LIMIT 1";
const DOUBTS: &str = "SELECT 1 FROM doubts WHERE asker = $1 LIMIT 1";
const HOLD: &str = "h.key, h.epoch, h.session, h.life, h.request, h.means, h.note, h.granted_at, \
     h.taken_from, h.ended_at, h.ended_by, h.home, h.home_mark";
const MAKE: &str = "INSERT INTO claims (key, epoch) SELECT key, 0 FROM unnest($1) WITH ORDINALITY AS k (key, at) \
     ORDER BY at ON CONFLICT (key) DO NOTHING";
const LOCK: &str = "SELECT count(*) FROM \
     (SELECT 1 FROM claims WHERE key = ANY($1) ORDER BY key FOR NO KEY UPDATE) locked";
const LOCK_SESSION: &str = "SELECT 1 FROM sessions WHERE id = $1 FOR NO KEY UPDATE";
const TOUCH: &str = "WITH changed AS (UPDATE sessions SET seen_at = $3, lease_at = greatest(lease_at, $3) \
     WHERE id = $1 AND life = $2 AND closed_at IS NULL RETURNING 1) SELECT 1 / count(*) FROM changed";
const RAISE: &str = "WITH changed AS (INSERT INTO claims (key, epoch) VALUES ($1, $2) ON CONFLICT (key) \
     DO UPDATE SET epoch = excluded.epoch WHERE claims.epoch = $2 - 1 RETURNING 1) SELECT 1 / count(*) FROM changed";
const GRANT: &str = "WITH changed AS (INSERT INTO holds (key, epoch, session, life, means, granted_at) \
     VALUES ($1, $2, $3, $4, 'claim', $5) ON CONFLICT DO NOTHING RETURNING 1) SELECT 1 / count(*) FROM changed";
const END: &str = "WITH changed AS (UPDATE holds SET ended_at = $3, ended_by = 'release' \
     WHERE key = $1 AND epoch = $2 AND ended_at IS NULL RETURNING 1) SELECT 1 / count(*) FROM changed";
const EVENT: &str = "INSERT INTO events (at, kind, session, key, epoch, mechanism, evidence, reason) \
     VALUES ($1, $2, $3, $4, $5, 'claim', 'it was free', $6)";
const REMEMBER: &str = "INSERT INTO commits (id, at) \
     VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

impl BarePostgres {
    pub fn connect(socket: &Path, port: u16, schema: &str, who: Claimer) -> Result<Self, Failed> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut config = Config::new();
        config
            .host_path(socket)
            .port(port)
            .user("tenure")
            .dbname("tenure");
        let client = runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            Ok::<_, tokio_postgres::Error>(client)
        })?;
        Ok(Self {
            runtime,
            client,
            schema: schema.to_owned(),
            who,
            commits: 0,
        })
    }

    /// Sends statements together and waits for all answers; those without parameters are sent as text.
    fn exchange(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, Failed> {
        let sent = statements.iter().map(|(sql, cells)| async move {
            if cells.is_empty() && !sql.starts_with("SELECT") {
                self.client.batch_execute(sql).await?;
                return Ok(Vec::new());
            }
            let cells: Vec<_> = cells.iter().map(SqlParameter::typed).collect();
            self.client.query_typed(sql, &cells).await
        });
        let answers = self.runtime.block_on(all(sent));
        let answers: Result<Vec<Vec<Row>>, tokio_postgres::Error> = answers.into_iter().collect();
        Ok(answers?)
    }

    fn begin(&self) -> Vec<Statement> {
        let schema = &self.schema;
        let limits = "SET LOCAL lock_timeout = 1500; SET LOCAL statement_timeout = 2000; \
             SET LOCAL idle_in_transaction_session_timeout = 2000";
        vec![
            plain(format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = {schema}; {limits}"
            )),
            (
                format!(
                    "SELECT store.schema, store.min_writer, store.needs, store.epoch_base, store.moved_to, \
                     pg_is_in_recovery(), store.copied_from, store.id, store.news, newest.id, newest.uid, \
                     (SELECT NOT EXISTS (SELECT 1 FROM {schema}.events e WHERE e.id = seen.cursor \
                     AND e.uid = seen.uid) AND coalesce((SELECT min(e.id) FROM {schema}.events e) <= seen.cursor, \
                     true) FROM unnest($1, $2, $3) seen (store, cursor, uid) WHERE seen.store = store.id), \
                     set_config('synchronous_commit', CASE current_setting('synchronous_commit') \
                     WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) FROM {schema}.store \
                     LEFT JOIN LATERAL (SELECT e.id, e.uid FROM {schema}.events e WHERE e.id IS NOT NULL \
                     ORDER BY e.id DESC LIMIT 1) newest ON true"
                ),
                vec![
                    SqlParameter::Texts(Vec::new()),
                    SqlParameter::Numbers(Vec::new()),
                    SqlParameter::Texts(Vec::new()),
                ],
            ),
        ]
    }

    /// The time, and who calls.
    fn who(&self) -> Vec<Statement> {
        let who = &self.who;
        let place = || {
            vec![
                SqlParameter::Numbers(who.pids.clone()),
                text(&who.boot),
                SqlParameter::Number(who.pid_ns),
                text(&who.host),
                SqlParameter::Number(i64::from(who.boot_private)),
            ]
        };
        vec![
            (NOW.to_owned(), vec![SqlParameter::Number(20_000)]),
            (format!("{SESSION}{AT}"), place()),
            (LIVES.to_owned(), place()),
        ]
    }

    /// What is stored about the key and the caller.
    fn facts(&self, key: &str) -> Vec<Statement> {
        let me = || text(&self.who.session);
        let record = format!(
            "SELECT c.key, c.epoch, {HOLD} FROM claims c LEFT JOIN holds h ON h.key = c.key \
             AND h.epoch = (SELECT max(epoch) FROM holds WHERE key = c.key) WHERE c.key = $1"
        );
        let mine = format!(
            "SELECT {HOLD} FROM holds h WHERE h.session = $1 AND h.key = ANY($2) AND h.epoch = \
             (SELECT max(n.epoch) FROM holds n WHERE n.session = $1 AND n.key = h.key) ORDER BY h.key"
        );
        vec![
            (NOTICES.to_owned(), vec![me()]),
            (DOUBTS.to_owned(), vec![me()]),
            (record, vec![text(key)]),
            (mine, vec![me(), SqlParameter::Texts(vec![key.to_owned()])]),
        ]
    }

    /// Reads without locks, and again with them; the key's epoch and the time.
    fn decide(&self, key: &str) -> Result<(i64, i64), Failed> {
        for asked in [self.who(), self.facts(key)] {
            let mut read = self.begin();
            read.extend(asked);
            read.push(plain("ROLLBACK"));
            self.exchange(&read)?;
        }
        let mut second = self.begin();
        let keys = || vec![SqlParameter::Texts(vec![key.to_owned()])];
        second.push((MAKE.to_owned(), keys()));
        second.push((LOCK.to_owned(), keys()));
        second.push((LOCK_SESSION.to_owned(), vec![text(&self.who.session)]));
        second.extend(self.who());
        second.extend(self.facts(key));
        let answers = self.exchange(&second)?;
        let cell = |at: usize, column: usize| -> Result<i64, Failed> {
            let rows = answers.get(at).and_then(|rows| rows.first());
            Ok(rows.ok_or("no row")?.try_get(column)?)
        };
        let (now, record) = (5, 10);
        Ok((cell(record, 1)?, cell(now, 0)?))
    }

    fn finish(
        &mut self,
        mut writes: Vec<Statement>,
        key: &str,
        epoch: i64,
        at: i64,
        kind: &str,
    ) -> Result<(), Failed> {
        self.commits += 1;
        let event = vec![
            SqlParameter::Number(at),
            text(kind),
            text(&self.who.session),
            text(key),
            SqlParameter::Number(epoch),
            SqlParameter::Nothing,
        ];
        writes.push((EVENT.to_owned(), event));
        let name = format!("bare-{}-{}", std::process::id(), self.commits);
        writes.push((REMEMBER.to_owned(), vec![text(&name)]));
        writes.push(plain("COMMIT"));
        let schema = &self.schema;
        writes.push(plain(format!(
            "SELECT id, uid FROM {schema}.events WHERE id IS NOT NULL ORDER BY id DESC LIMIT 1"
        )));
        self.exchange(&writes).map(|_| ())
    }

    pub fn claim(&mut self, key: &str) -> Result<(), Failed> {
        let (epoch, at) = self.decide(key)?;
        let (me, life) = (self.who.session.clone(), self.who.life);
        let touch = vec![
            text(&me),
            SqlParameter::Number(life),
            SqlParameter::Number(at),
        ];
        let next = epoch + 1;
        let raise = vec![text(key), SqlParameter::Number(next)];
        let grant = vec![
            text(key),
            SqlParameter::Number(next),
            text(&me),
            SqlParameter::Number(life),
            SqlParameter::Number(at),
        ];
        let writes = vec![
            (TOUCH.to_owned(), touch),
            (RAISE.to_owned(), raise),
            (GRANT.to_owned(), grant),
        ];
        self.finish(writes, key, next, at, "claim.granted")
    }

    pub fn release(&mut self, key: &str) -> Result<(), Failed> {
        let (epoch, at) = self.decide(key)?;
        let end = vec![
            text(key),
            SqlParameter::Number(epoch),
            SqlParameter::Number(at),
        ];
        self.finish(
            vec![(END.to_owned(), end)],
            key,
            epoch,
            at,
            "claim.released",
        )
    }
}

/// Runs futures together; each is begun before any is waited for.
async fn all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<Pin<Box<_>>> = futures.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = Vec::with_capacity(running.len());
    for future in &mut running {
        let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        done.push(match first {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        });
    }
    let mut answers = Vec::with_capacity(running.len());
    for (future, done) in running.into_iter().zip(done) {
        answers.push(match done {
            Some(value) => value,
            None => future.await,
        });
    }
    answers
}

//! What a lock is here.
//!
//! A lock must also exclude writers that do not lock the row, such as a heartbeat. So for anything
//! with a row of its own (a session, a key, a run, a keeper), that row is locked: FOR NO KEY UPDATE, because
//! FOR UPDATE would block inserts that refer to the row. A key's row is created first if it does
//! not exist. Everything else is changed only by writers that locked it. For that a lock on the
//! name is enough, and it leaves no row behind. These locks end with the transaction, so they work
//! through a transaction pooler. Two names with the same hash can only wait for each other; if that
//! ever causes a deadlock, the server reports it, and the use case runs again.
//!
//! *Crash*: the server releases the locks of a closed connection, and those of an idle one by its
//! time limit.

use tenure_core::key::Key;
use tenure_core::store::Lock;

use super::connection::Statement;
use tenure_store::params;
use tenure_store::value::Value;

pub(super) const MAKE_KEY: &str =
    "INSERT INTO claims (key, epoch) VALUES ($1, 0) ON CONFLICT (key) DO NOTHING";
/// The rows are made in the order of their keys, and locked in it: they are locked after they were sorted.
const MAKE_KEYS: &str = "INSERT INTO claims (key, epoch) SELECT key, 0 FROM unnest($1) WITH ORDINALITY AS k (key, at) \
     ORDER BY at ON CONFLICT (key) DO NOTHING";
const KEYS: &str = "SELECT count(*) FROM \
     (SELECT 1 FROM claims WHERE key = ANY($1) ORDER BY key FOR NO KEY UPDATE) locked";
/// The row of one key.
pub(super) const LOCK_KEY: &str = "SELECT epoch FROM claims WHERE key = $1 FOR NO KEY UPDATE";
const RUN: &str = "SELECT 1 FROM runs WHERE id = $1 FOR NO KEY UPDATE";
const KEEPER: &str = "SELECT 1 FROM keepers WHERE id = $1 FOR NO KEY UPDATE";
const SESSION: &str = "SELECT 1 FROM sessions WHERE id = $1 FOR NO KEY UPDATE";
/// The name contains the schema, because all schemas of a database share one set of lock numbers.
const NAME: &str = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || $1, 0))";

/// The statements that take a lock.
pub(super) fn statements(lock: &Lock) -> Vec<Statement> {
    let named = |kind: &str, parts: &[&str]| {
        let name = format!("\u{1}{kind}\u{1}{}", parts.join("\u{1}"));
        vec![Statement::query(NAME, params![name].to_vec())]
    };
    match lock {
        Lock::Paths(name) => named("paths", &[name]),
        Lock::Key(key) => on_keys(std::slice::from_ref(key)),
        Lock::Conversation(item) => named("conversation", &[item.as_str()]),
        Lock::Queue => named("queue", &[]),
        Lock::Run(id) => vec![Statement::query(RUN, params![id.to_string()].to_vec())],
        Lock::Park(agent, host) => named("park", &[agent.as_str(), host.as_str()]),
        Lock::Mission(id) => named("mission", &[id]),
        Lock::Native(agent, id) => named("native", &[agent.as_str(), id.as_str()]),
        Lock::Transcript(path) => named("transcript", &[path]),
        Lock::Session(id) => vec![Statement::query(SESSION, params![id.to_string()].to_vec())],
        Lock::Ticket(ticket) => named("ticket", &[&ticket.0.to_string()]),
        Lock::Keeper(id) => vec![Statement::query(KEEPER, params![id.to_string()].to_vec())],
    }
}

/// The statements that lock keys, which are in order.
pub(super) fn on_keys(keys: &[Key]) -> Vec<Statement> {
    let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
    vec![
        Statement::execute(MAKE_KEYS, params![names.clone()].to_vec()),
        Statement::query(KEYS, params![names].to_vec()),
    ]
}

/// A key as the parameter of a statement.
pub(super) fn named(key: &Key) -> Vec<Value<'static>> {
    params![key.to_string()].to_vec()
}

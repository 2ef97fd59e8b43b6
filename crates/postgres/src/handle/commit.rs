//! The end of a transaction: its commit, and what became of commits that were never confirmed.
//!
//! The last writes and COMMIT go out together. A connection that breaks after that leaves the outcome unknown, so every
//! write has a request id, by which it is looked up: at once, and by a later transaction of this machine.

use std::time::Instant;

use tenure_core::notice::Notice;
use tenure_core::store::{StoreError, TxMode};

use tenure_store::params;
use tenure_store::rows::notice;
use tenure_store::value::Value;

use super::{PostgresTx, TxState, execute};
use crate::clock;
use crate::connection::{CALL, ServerError, Statement, StatementResult, Wait};
use crate::memory::Unconfirmed;

const REMEMBER: &str = "INSERT INTO commits (id, at) \
     VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

/// Nobody asks about a commit of yesterday; a few at a time, and none that another removes.
const FORGET: &str = "DELETE FROM commits WHERE id IN (SELECT id FROM commits \
     WHERE at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 86400000 \
     ORDER BY at LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/// Adds what became of commits in doubt, once and for all: a commit whose row is added here can no longer happen, and a
/// row that is there was committed. Waits for one that is still going on.
const DECIDE: &str = "INSERT INTO commits (id, at) \
     SELECT id, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM unnest($1) asked (id) ORDER BY id \
     ON CONFLICT DO NOTHING RETURNING id";

impl PostgresTx<'_> {
    /// Finds out what became of commits that were never confirmed, and tells the sessions what they were granted.
    pub(super) fn decide(&mut self) -> Result<(), StoreError> {
        let mine = |one: &&Unconfirmed| one.store == self.about.id;
        let asked: Vec<Unconfirmed> = self
            .store
            .unconfirmed
            .iter()
            .filter(mine)
            .cloned()
            .collect();
        if asked.is_empty() || self.mode != TxMode::Write {
            return Ok(());
        }
        let mut requests: Vec<String> = asked.iter().map(|one| one.request.clone()).collect();
        requests.dedup();
        let ask = Statement::query(DECIDE, vec![Value::Texts(requests.clone())]);
        let rows = self.ask(ask)?.rows();
        let not_made = |request: &str| {
            let mut ids = rows
                .iter()
                .filter_map(|row| row.try_get::<_, String>(0).ok());
            ids.any(|id| id == request)
        };
        let at = self.read_clock()?.wall;
        for one in asked.iter().filter(|one| !not_made(&one.request)) {
            let told = Notice::of_late_grant(one.session, &one.key, one.epoch, at);
            let epoch = i64::try_from(one.epoch.0).ok();
            self.push(execute(notice::ADD, &notice::values(&told, epoch)));
        }
        self.has_written = true;
        self.decided = requests;
        Ok(())
    }

    /// Sends the last writes with COMMIT.
    pub(crate) fn commit_all(&mut self) -> Result<(), StoreError> {
        if self.state == TxState::Over {
            return Err(StoreError::over(&self.store.location));
        }
        self.queue_keys();
        if !self.has_written {
            self.asked.clear();
            self.end();
            return Ok(());
        }
        // Whether the store can be used at all is known before anything is committed.
        if self.state == TxState::Queued {
            self.flush(Vec::new())?;
        }
        if clock::is_old(self.clock_age) {
            let limits = params![clock::JUMP, clock::AGE].to_vec();
            self.queue.push(Statement::execute(FORGET, Vec::new()));
            self.queue.push(Statement::execute(clock::MOVE, limits));
        }
        // Only for writes: after a lost heartbeat, the next one follows anyway.
        let request = (self.mode == TxMode::Write).then(|| self.store.next_request());
        if let Some(request) = &request {
            let row = params![request.clone()].to_vec();
            self.queue.push(Statement::execute(REMEMBER, row));
        }
        self.queue.push(Statement::batch("COMMIT"));
        // Events get their positions in COMMIT.
        let newest = request.as_ref().map(|_| self.store.newest_event());
        let is_asked = newest.is_some();
        self.queue.extend(newest);
        let sent = std::mem::take(&mut self.queue);
        self.state = TxState::Over;
        let until = self.until.min(Instant::now() + CALL);
        self.store.forget_warnings();
        let done = match self.store.exchange(&sent, Wait::until(until), false) {
            Ok(mut replies) => {
                let newest = if is_asked { replies.pop() } else { None };
                self.committed(replies, newest, request.as_deref())
            }
            Err(lost) => match &request {
                Some(request) => self.store.doubt_of_commit(request, &lost, self.until),
                None => Err(self.lost(&lost)),
            },
        };
        match &done {
            Ok(()) => {
                self.asked.clear();
                self.store.settled(&self.decided);
            }
            Err(StoreError::OutcomeUnknown {
                request: Some(request),
                ..
            }) => {
                let grants = std::mem::take(&mut self.grants);
                self.store.doubt(&self.about.id, request, grants);
            }
            Err(_) => {}
        }
        done
    }

    fn committed(
        &mut self,
        replies: Vec<Result<StatementResult, ServerError>>,
        newest: Option<Result<StatementResult, ServerError>>,
        request: Option<&str>,
    ) -> Result<(), StoreError> {
        for reply in replies {
            if let Err(fault) = reply {
                // COMMIT ended the failed transaction without a change.
                return Err(self.fault(&fault));
            }
        }
        if let Some(Ok(newest)) = newest
            && let Some(row) = newest.rows().first()
            && let (Ok(cursor), Ok(uid)) = (row.try_get(0), row.try_get(1))
        {
            self.about.newest = Some((cursor, uid));
            self.store.remember(&self.about);
        }
        self.store.check_replication(request)
    }
}

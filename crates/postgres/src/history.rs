//! A server that lost its newest changes: it failed over to a standby that lacked them, or an older state was brought
//! back.
//!
//! Who remembers an event that is not there any more raises the store's base by [`RAISE`], so that no epoch is granted
//! a second time. It does so in a transaction that excludes every other one: a grant under the old base is either
//! committed before or not made. Many may notice at once, and each remembers another event; the base that was
//! remembered with it tells who is late: a store with a higher one was raised for that loss already. What the store
//! still has goes on under the new numbers, and its holders are told; what it does not have is lost.
//!
//! *Crash*: the rise, its event and its notices are one transaction. *Clock jump*: no clock is compared. *Older
//! version*: the base is part of the first schema.

use std::time::Instant;

use tenure_core::event::EventKind;
use tenure_core::id::{Epoch, SessionId};
use tenure_core::notice::Notice;
use tenure_core::store::{StoreError, TxMode};
use tenure_core::time::Timestamp;

use super::connection::{CALL, ConnectionLoss, Statement, StatementResult, Wait};
use super::handle;
use super::memory::{LastEvent, Unconfirmed};
use super::migrations::{About, DURABLE};
use super::{PostgresStore, error};
use tenure_store::copy::RAISE;
use tenure_store::params;
use tenure_store::rows::notice;
use tenure_store::value::Value;

/// Why a claim has another epoch, for its holder.
const WHY_RAISED: &str = "the store lost its newest changes and every epoch was raised";
/// Positions that are left out after a loss: others may have seen events after the one that is remembered here.
const ROOM: i64 = 1 << 20;

/// Excludes every transaction: each reads this table first.
pub(super) const LOCK: &str = "LOCK TABLE store IN ACCESS EXCLUSIVE MODE";
const RAISED: &str = "UPDATE store SET epoch_base = greatest(epoch_base, $1) + $2, news = $3, \
     news_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint \
     WHERE epoch_base <= $1 AND NOT EXISTS (SELECT 1 FROM events WHERE id = $4 AND uid = $5) RETURNING epoch_base, news_at";
const NUMBERED: &str = "UPDATE counter SET number = greatest(number, $1) + $2";
const RECORDED: &str =
    "INSERT INTO events (at, kind, mechanism, evidence) VALUES ($1, $2, 'remembered', $3)";
const HELD: &str =
    "SELECT session, key, epoch FROM holds WHERE ended_at IS NULL ORDER BY session, key";

impl PostgresStore {
    /// What is remembered, as the first statement of a transaction takes it.
    pub(super) fn remembered(&self) -> Vec<Value<'static>> {
        let all = || self.seen.iter();
        vec![
            Value::Texts(all().map(|seen| seen.store.clone()).collect()),
            Value::Numbers(all().map(|seen| seen.cursor).collect()),
            Value::Texts(all().map(|seen| seen.uid.clone()).collect()),
        ]
    }

    /// What is remembered of a store that lacks it, unless its base was raised since.
    pub(super) fn lost_history(&self, about: &About) -> Option<LastEvent> {
        let known = self.seen.iter().find(|seen| seen.store == about.id)?;
        (about.lacks_event && about.base <= known.base).then(|| known.clone())
    }

    /// Remembers the newest event, and tells a person about an incident that is new here.
    pub(super) fn remember(&mut self, about: &About) {
        let Some(memory) = &self.memory else {
            return;
        };
        let known = self.seen.iter_mut().find(|seen| seen.store == about.id);
        let told = known.as_ref().map_or(about.base, |seen| seen.told);
        let is_news = told < about.base && self.tell.is_some();
        let told = if is_news { about.base } else { told };
        if is_news
            && let Some(tell) = self.tell
            && let Some(news) = &about.news
        {
            tell(news.clone());
        }
        let Some((cursor, uid)) = about.newest.clone() else {
            return;
        };
        let new = LastEvent {
            store: about.id.clone(),
            cursor,
            uid,
            base: about.base,
            told,
        };
        match known {
            Some(seen) if *seen == new => return,
            Some(seen) if (seen.base, seen.cursor) > (new.base, new.cursor) => return,
            Some(seen) => *seen = new.clone(),
            None => self.seen.push(new.clone()),
        }
        memory.see(&new);
    }

    /// Asks for the newest event, outside a transaction.
    pub(super) fn newest_event(&self) -> Statement {
        let schema = &self.access.url.schema;
        let sql = format!(
            "SELECT id, uid FROM {schema}.events WHERE id IS NOT NULL ORDER BY id DESC LIMIT 1"
        );
        Statement::query(sql, Vec::new())
    }

    /// Remembers the grants of a commit that was not confirmed.
    pub(super) fn doubt(
        &mut self,
        store: &str,
        request: &str,
        grants: Vec<(SessionId, String, Epoch)>,
    ) {
        let new: Vec<Unconfirmed> = grants
            .into_iter()
            .map(|(session, key, epoch)| Unconfirmed {
                store: store.to_owned(),
                request: request.to_owned(),
                session,
                epoch,
                key,
            })
            .collect();
        if let Some(memory) = &self.memory {
            memory.doubt(&new);
        }
        self.unconfirmed.extend(new);
    }

    /// Forgets commits that were decided about.
    pub(super) fn settled(&mut self, requests: &[String]) {
        if requests.is_empty() {
            return;
        }
        if let Some(memory) = &self.memory {
            memory.settle(requests);
        }
        self.unconfirmed
            .retain(|one| !requests.contains(&one.request));
    }

    /// Raises the base because an event is not there, unless another client has done so.
    pub(super) fn raise_base(
        &mut self,
        lost: &LastEvent,
        until: Instant,
    ) -> Result<(), StoreError> {
        let news = format!(
            "the store {} lost its newest changes: event {} that was seen here is not there any more; claims and \
             releases since then are unknown; every epoch was raised by {RAISE} to keep old ones from being granted \
             again",
            self.location, lost.cursor
        );
        let raised = [
            Statement::batch(self.begin_text(TxMode::Write, until)),
            Statement::batch(LOCK),
            Statement::query(format!("SELECT {DURABLE}"), Vec::new()),
            Statement::query(
                RAISED,
                params![
                    lost.base,
                    RAISE,
                    news.clone(),
                    lost.cursor,
                    lost.uid.clone()
                ]
                .to_vec(),
            ),
        ];
        let row = self.all_answered(&raised, until)?.pop();
        let Some(row) = row.and_then(|reply| reply.rows().pop()) else {
            self.roll_back();
            return Ok(());
        };
        let number = |index: usize| row.try_get::<_, i64>(index).unwrap_or_default();
        let (base, at) = (number(0), number(1));
        let held = self.all_answered(&[Statement::query(HELD, Vec::new())], until)?;
        let mut last = vec![
            Statement::execute(NUMBERED, params![lost.cursor, ROOM].to_vec()),
            Statement::execute(
                RECORDED,
                params![at, EventKind::StoreRolledBack.as_str(), news].to_vec(),
            ),
        ];
        for row in held.into_iter().flat_map(StatementResult::rows) {
            let text = |index: usize| row.try_get::<_, String>(index).unwrap_or_default();
            let epoch = row.try_get::<_, i64>(2).unwrap_or_default();
            // A row that cannot be read is reported by who reads it for its own sake.
            let (Ok(to), Ok(epoch)) = (SessionId::parse(&text(0)), u64::try_from(epoch + base))
            else {
                continue;
            };
            let told =
                Notice::of_raised_epoch(to, &text(1), Epoch(epoch), WHY_RAISED, Timestamp(at));
            let row = notice::values(&told, Some(epoch.cast_signed()));
            last.push(handle::execute(notice::ADD, &row));
        }
        last.push(Statement::batch("COMMIT"));
        self.all_answered(&last, until)?;
        Ok(())
    }

    /// The answers to statements of which none may fail.
    fn all_answered(
        &mut self,
        statements: &[Statement],
        until: Instant,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let until = until.min(Instant::now() + CALL);
        let location = self.location.clone();
        let replies = self
            .exchange(statements, Wait::until(until), false)
            .map_err(|lost| match lost {
                ConnectionLoss::Late => StoreError::Busy {
                    store: location.clone(),
                },
                ConnectionLoss::Broken { .. } => error::lost(&location, &lost, false),
            })?;
        let mut answers = Vec::with_capacity(replies.len());
        for reply in replies {
            match reply {
                Ok(reply) => answers.push(reply),
                Err(fault) => {
                    self.roll_back();
                    return Err(error::classify(&location, &fault));
                }
            }
        }
        Ok(answers)
    }
}

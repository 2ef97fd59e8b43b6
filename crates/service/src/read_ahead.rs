//! What is stored about the sessions of a list, read for all of them in a few statements.
//!
//! One session is read row by row. A list of very many would ask a dozen questions about each, and on a server each is a
//! round trip. So a list announces its sessions ([`Ctx::read_batch`]), and the questions below answer from what was read.
//! Only a run that writes nothing reads ahead: nothing that it read can be outdated by itself.
//!
//! If a row of the batch cannot be read, none of it is used: the sessions are read one by one, so that the damage is
//! reported where it is and the list goes on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tenure_core::claim::Hold;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::line::Waiter;
use tenure_core::run::Run;
use tenure_core::session::Session;
use tenure_core::store::{LineageEntry, RunFilter, StoreError, TxMode};

use crate::context::{Ctx, Stop};

/// How many sessions are read together, and one by one if a row of theirs is damaged.
const MANY: usize = 1000;

fn conversation(session: &Session) -> Option<(AgentName, NativeId)> {
    Some((session.agent.clone(), session.native_id.clone()?))
}

fn grouped<T>(all: impl IntoIterator<Item = (SessionId, T)>) -> HashMap<SessionId, Vec<T>> {
    let mut groups: HashMap<SessionId, Vec<T>> = HashMap::new();
    for (session, one) in all {
        groups.entry(session).or_default().push(one);
    }
    groups
}

impl Ctx<'_> {
    /// Reads what lists ask about these sessions.
    pub fn read_batch(&mut self, sessions: &[&Session]) -> Result<(), Stop> {
        if self.mode != TxMode::Read {
            return Ok(());
        }
        let is_new = |one: &&Session| !self.batch.sessions.contains_key(&one.id);
        let unread: Vec<&Session> = sessions.iter().copied().filter(is_new).collect();
        if unread.len() < 2 {
            return Ok(());
        }
        for some in unread.chunks(MANY) {
            match self.read_some(some) {
                Ok(()) => {
                    let read = some.iter().map(|one| (one.id, (*one).clone()));
                    self.batch.sessions.extend(read);
                    let known = some.iter().filter_map(|one| conversation(one));
                    self.batch.conversations.extend(known);
                }
                Err(StoreError::Damaged { .. }) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Ok(())
    }

    /// Reads the runs without a recorded end, which decide whether sessions live.
    pub fn read_open_runs(&mut self) -> Result<(), Stop> {
        if self.mode != TxMode::Read || self.batch.open_runs.is_some() {
            return Ok(());
        }
        let open = RunFilter {
            open: true,
            ..RunFilter::default()
        };
        let runs = match self.tx.list_runs(&open) {
            Err(StoreError::Damaged { .. }) => return Ok(()),
            runs => runs?,
        };
        let of_session = |run: Run| Some((run.session?.id, run));
        self.batch.open_runs = Some(runs.into_iter().filter_map(of_session).collect());
        Ok(())
    }

    fn read_some(&mut self, sessions: &[&Session]) -> Result<(), StoreError> {
        let ids: Vec<SessionId> = sessions.iter().map(|one| one.id).collect();
        let (tx, batch) = (&mut *self.tx, &mut self.batch);
        let runs = tx.newest_runs_of_sessions(&ids)?.into_iter();
        batch
            .newest_runs
            .extend(runs.filter_map(|run| Some((run.session?.id, run))));
        batch.lineages.extend(grouped(tx.lineages(&ids)?));
        let by_session = |hold: Hold| (hold.session, hold);
        let open = tx.open_holds_of(&ids)?.into_iter().map(by_session);
        batch.open_holds.extend(grouped(open));
        let newest = tx.newest_holds_of(&ids)?.into_iter().map(by_session);
        batch.newest_holds.extend(grouped(newest));
        let waits = tx.waits_of(&ids)?.into_iter();
        let waits = waits.filter_map(|waiter| Some((waiter.session?.id, waiter)));
        batch.waits.extend(grouped(waits));
        let named = sessions.iter();
        let named = named.filter_map(|one| Some((one.id, one.native_id.clone()?)));
        for known in tx.transcripts_of(&named.collect::<Vec<_>>())? {
            let path = known.file().to_owned();
            let of = (known.session, known.native_id);
            batch.transcripts.insert(of, path);
        }
        let mut natives: BTreeMap<AgentName, BTreeSet<NativeId>> = BTreeMap::new();
        for native in sessions.iter().filter_map(|one| conversation(one)) {
            if !batch.conversations.contains(&native) {
                natives.entry(native.0).or_default().insert(native.1);
            }
        }
        for (agent, natives) in natives {
            let natives: Vec<NativeId> = natives.into_iter().collect();
            for (native_id, session) in tx.in_conversations(&agent, &natives)? {
                let members = batch.members.entry((agent.clone(), native_id));
                members.or_default().push(session);
            }
        }
        Ok(())
    }

    fn has_read(&self, session: SessionId) -> bool {
        self.batch.sessions.contains_key(&session)
    }

    /// The run without a recorded end that a session is in.
    pub fn open_run(&mut self, session: SessionId) -> Result<Option<Run>, Stop> {
        if let Some(runs) = &self.batch.open_runs {
            return Ok(runs.get(&session).cloned());
        }
        Ok(self.tx.open_run_of_session(session)?)
    }

    pub fn newest_run(&mut self, session: SessionId) -> Result<Option<Run>, Stop> {
        if self.has_read(session) {
            return Ok(self.batch.newest_runs.get(&session).cloned());
        }
        Ok(self.tx.newest_run_of_session(session)?)
    }

    pub fn lineage(&mut self, session: SessionId) -> Result<Vec<LineageEntry>, Stop> {
        if self.has_read(session) {
            let known = self.batch.lineages.get(&session);
            return Ok(known.cloned().unwrap_or_default());
        }
        Ok(self.tx.lineage(session)?)
    }

    pub fn open_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, Stop> {
        if self.has_read(session) {
            let known = self.batch.open_holds.get(&session);
            return Ok(known.cloned().unwrap_or_default());
        }
        Ok(self.tx.open_holds(session)?)
    }

    pub fn newest_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, Stop> {
        if self.has_read(session) {
            let known = self.batch.newest_holds.get(&session);
            return Ok(known.cloned().unwrap_or_default());
        }
        Ok(self.tx.newest_holds(session)?)
    }

    pub fn waiters_of(&mut self, session: SessionId) -> Result<Vec<Waiter>, Stop> {
        if self.has_read(session) {
            let known = self.batch.waits.get(&session);
            return Ok(known.cloned().unwrap_or_default());
        }
        Ok(self.tx.waits_of(&[session])?)
    }

    /// The path of the agent's own file of a session's conversation.
    pub fn transcript_path(
        &mut self,
        session: SessionId,
        native_id: &NativeId,
    ) -> Result<Option<String>, Stop> {
        let read = self.batch.sessions.get(&session);
        if read.is_some_and(|read| read.native_id.as_ref() == Some(native_id)) {
            let of = (session, native_id.clone());
            return Ok(self.batch.transcripts.get(&of).cloned());
        }
        let known = self.tx.transcript_of(session, native_id)?;
        Ok(known.map(|known| known.file().to_owned()))
    }

    /// The sessions that visit a conversation, and then its owner.
    pub fn in_conversation(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Vec<Session>, Stop> {
        let native = (agent.clone(), native_id.clone());
        let ids = if self.batch.conversations.contains(&native) {
            let known = self.batch.members.get(&native);
            known.cloned().unwrap_or_default()
        } else {
            let mut ids = self.tx.native_visitors(agent, native_id)?;
            ids.extend(self.tx.native_owner(agent, native_id)?);
            ids
        };
        let mut found = Vec::new();
        for id in ids {
            let read = self.batch.sessions.get(&id).cloned();
            found.push(match read {
                Some(session) => session,
                None => self.session(id)?,
            });
        }
        Ok(found)
    }
}

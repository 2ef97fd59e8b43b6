//! What must be locked before something is written.
//!
//! The ports are implemented by `build.rs`, which passes every call on and first calls what is named after it here:
//! `before_m(..)` with the arguments of `m` that it names. `instead_of_m` takes the place of the call. Writes that need
//! no lock are listed in `build.rs`.
//!
//! A job and a run belong to their conversation: to change one, lock the conversation first.

use tenure_core::claim::{EndedBy, Hold, HoldEnd};
use tenure_core::conversation::{Conversation, ItemState};
use tenure_core::event::EventFilter;
use tenure_core::id::{AgentName, HostId, KeeperId, NativeId, SessionId, SessionToken, Ticket};
use tenure_core::keeper::Keeper;
use tenure_core::key::Key;
use tenure_core::mission::{MissionId, Participant};
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::identity::Identity;
use tenure_core::queue::{Job, JobState};
use tenure_core::run::{Park, Run};
use tenure_core::session::Session;
use tenure_core::spend::DailySpend;
use tenure_core::store::{Lock, StoreError, TxMode, Untold};
use tenure_core::transcript::Transcript;

use super::RecordingTx;

/// How many log entries a writer may read.
const MAX_EVENTS: usize = 64;

/// Sessions and who owns a conversation.
impl RecordingTx<'_> {
    fn before_sessions_at_any(&mut self) {
        self.lookups.update(|count| count + 1);
    }

    fn before_sessions_below_any(&mut self) {
        self.lookups.update(|count| count + 1);
    }

    fn before_lives_at_any(&mut self) {
        self.lookups.update(|count| count + 1);
    }

    fn before_claims(&mut self, keys: &[Key]) {
        for key in keys {
            let is_locked = self.locked.contains(&Lock::Key(key.clone()));
            if self.mode != TxMode::Read && !is_locked && !self.read.insert(key.clone()) {
                self.rereads.update(|count| count + 1);
            }
        }
    }

    fn before_insert_session(&mut self, session: &Session) {
        self.writes("insert_session");
        self.born.push(session.id);
    }

    fn before_update_session(&mut self, session: &Session) {
        self.needs("update_session", [Lock::Session(session.id)]);
    }

    /// A heartbeat alone is one statement; next to other writes, its row must be locked in order.
    fn before_remove_sessions(&mut self, sessions: &[SessionId]) {
        let locks = sessions.iter().map(|id| Lock::Session(*id));
        self.needs("remove_sessions", locks);
    }

    fn before_touch_session(&mut self, token: SessionToken) {
        match self.mode {
            TxMode::Write => self.needs("touch_session", [Lock::Session(token.id)]),
            TxMode::Read | TxMode::Beat => self.beats("touch_session"),
        }
    }

    fn before_note_branch(&mut self, token: SessionToken) {
        match self.mode {
            TxMode::Write => self.needs("note_branch", [Lock::Session(token.id)]),
            TxMode::Read | TxMode::Beat => self.beats("note_branch"),
        }
    }

    fn before_note_request(&mut self, token: SessionToken) {
        match self.mode {
            TxMode::Write => self.needs("note_request", [Lock::Session(token.id)]),
            TxMode::Read | TxMode::Beat => self.beats("note_request"),
        }
    }

    fn before_take_to_wake(&mut self, session: SessionId) {
        self.needs("take_to_wake", [Lock::Session(session)]);
    }

    fn before_note_woken(&mut self, token: SessionToken) {
        match self.mode {
            TxMode::Write => self.needs("note_woken", [Lock::Session(token.id)]),
            TxMode::Read | TxMode::Beat => self.beats("note_woken"),
        }
    }

    fn before_insert_life(&mut self, token: SessionToken) {
        self.needs("insert_life", [Lock::Session(token.id)]);
    }

    fn before_set_spend(&mut self, spend: &DailySpend) {
        self.needs("set_spend", [Lock::Session(spend.session)]);
    }

    fn before_set_metadata(&mut self, session: SessionId) {
        self.needs("set_metadata", [Lock::Session(session)]);
    }

    fn before_set_native_owner(&mut self, agent: &AgentName, native_id: &NativeId) {
        let id = Lock::Native(agent.clone(), native_id.clone());
        self.needs("set_native_owner", [id]);
    }

    fn before_add_visit(&mut self, agent: &AgentName, native_id: &NativeId) {
        let id = Lock::Native(agent.clone(), native_id.clone());
        self.needs("add_visit", [id]);
    }

    fn before_set_transcript(&mut self, transcript: &Transcript) {
        let file = Lock::Transcript(transcript.path.clone());
        self.needs("set_transcript", [file]);
    }

    fn before_quarantine_transcript(&mut self, transcript: &Transcript) {
        let file = Lock::Transcript(transcript.path.clone());
        self.needs("quarantine_transcript", [file]);
    }
}

/// Claims and their lines.
impl RecordingTx<'_> {
    fn before_lock_claims(&mut self, keys: &[Key]) {
        for key in keys {
            self.takes(&Lock::Key(key.clone()));
        }
    }

    /// A grant needs its key, the space around it if it is a path key, and the session that gets it.
    fn before_insert_hold(&mut self, hold: &Hold) {
        let space = hold.key.path_parts();
        let space = space.map(|(name, _)| Lock::Paths(name.to_owned()));
        let (key, session) = (Lock::Key(hold.key.clone()), Lock::Session(hold.session));
        self.needs("insert_hold", space.into_iter().chain([key, session]));
    }

    /// The end of a hold needs its key. If the hold ends because its lease expired, the session must be locked too, so
    /// that it cannot have renewed the lease meanwhile.
    fn before_end_hold(&mut self, key: &Key, end: HoldEnd) -> Result<(), StoreError> {
        self.needs("end_hold", [Lock::Key(key.clone())]);
        if end.by == EndedBy::Lease
            && let Some(hold) = self.tx.claim(key)?.and_then(|record| record.newest)
        {
            self.needs("end_hold by lease", [Lock::Session(hold.session)]);
        }
        Ok(())
    }

    /// Ending everything that a session holds needs the keys, and the session itself, so that it is granted nothing
    /// meanwhile.
    fn before_end_holds_of(&mut self, session: SessionId) -> Result<(), StoreError> {
        let held = self.instead_of_open_holds(session)?.into_iter();
        let keys = held.map(|hold| Lock::Key(hold.key));
        self.needs("end_holds_of", keys.chain([Lock::Session(session)]));
        Ok(())
    }

    fn before_carry_holds(&mut self, to: SessionToken) {
        self.needs("carry_holds", [Lock::Session(to.id)]);
    }

    /// What a session holds; an error if that is set to be unreadable.
    fn instead_of_open_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        let held = self.tx.open_holds(session)?;
        self.unless_unreadable(held)
    }

    /// The same for several sessions.
    fn instead_of_open_holds_of(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<Hold>, StoreError> {
        let held = self.tx.open_holds_of(sessions)?;
        self.unless_unreadable(held)
    }

    fn unless_unreadable(&self, held: Vec<Hold>) -> Result<Vec<Hold>, StoreError> {
        match &self.unreadable {
            Some(key) if held.iter().any(|hold| hold.key == *key) => Err(StoreError::Damaged {
                store: self.store.clone(),
                why: format!("the hold of {key} cannot be read"),
            }),
            _ => Ok(held),
        }
    }

    fn before_join_line(&mut self, keys: &[Key]) {
        self.needs("join_line", keys.iter().cloned().map(Lock::Key));
    }

    fn before_set_turn(&mut self, ticket: Ticket) {
        self.needs("set_turn", [Lock::Ticket(ticket)]);
    }

    fn before_leave_line(&mut self, ticket: Ticket) {
        self.needs("leave_line", [Lock::Ticket(ticket)]);
    }
}

/// The log. A writer may read only a few of the newest entries; with a time limit, the query would read everything that
/// the session ever did.
impl RecordingTx<'_> {
    fn before_count_events(&mut self, filter: &EventFilter) {
        self.before_events(&EventFilter {
            limit: filter.count_to,
            ..filter.clone()
        });
    }

    fn before_first_event(&mut self, filter: &EventFilter) {
        self.before_events(filter);
    }

    fn before_events(&mut self, filter: &EventFilter) {
        let is_bounded = (1..=MAX_EVENTS).contains(&filter.limit) && filter.since.is_none();
        if self.mode != TxMode::Read && !is_bounded {
            self.fail(&format!("a writer reads the log: {filter:?}"));
        }
    }
}

/// Keepers.
impl RecordingTx<'_> {
    fn before_renew_keeper(&mut self, keeper: &Keeper) {
        self.needs("renew_keeper", [Lock::Keeper(keeper.id.clone())]);
    }

    fn before_remove_keeper(&mut self, id: &KeeperId) {
        self.needs("remove_keeper", [Lock::Keeper(id.clone())]);
    }

    fn before_watch_sessions(&mut self, keeper: &KeeperId) {
        self.needs("watch_sessions", [Lock::Keeper(keeper.clone())]);
    }

    fn before_add_untold(&mut self, untold: &Untold) {
        self.needs("add_untold", [Lock::Key(untold.key.clone())]);
    }

    fn before_forget_untold(&mut self, keeper: &KeeperId) {
        self.needs("forget_untold", [Lock::Keeper(keeper.clone())]);
    }
}

/// Missions.
impl RecordingTx<'_> {
    fn before_make_mission(&mut self, id: &MissionId) {
        self.needs("make_mission", [Lock::Mission(id.to_string())]);
    }

    fn before_insert_participant(&mut self, participant: &Participant) {
        let mission = Lock::Mission(participant.mission.to_string());
        let session = Lock::Session(participant.session);
        self.needs("insert_participant", [mission, session]);
    }

    fn before_update_participant(&mut self, participant: &Participant) {
        let mission = Lock::Mission(participant.mission.to_string());
        self.needs("update_participant", [mission]);
    }

    fn before_remove_participant(&mut self, mission: &str, session: SessionId) {
        let locks = [Lock::Mission(mission.to_owned()), Lock::Session(session)];
        self.needs("remove_participant", locks);
    }
}

/// Conversations, runs and the queue.
impl RecordingTx<'_> {
    /// A record that gets a native id needs its item, and the id, so that no session gets the id meanwhile.
    fn writes_conversation(&mut self, what: &str, conversation: &Conversation) {
        let item = Lock::Conversation(conversation.item.clone());
        let current = conversation.current.as_ref();
        let native = current
            .map(|current| Lock::Native(conversation.agent.clone(), current.native_id.clone()));
        self.needs(what, [item].into_iter().chain(native));
    }

    fn before_insert_conversation(&mut self, conversation: &Conversation) {
        self.writes_conversation("insert_conversation", conversation);
    }

    fn before_update_conversation(&mut self, conversation: &Conversation) {
        self.writes_conversation("update_conversation", conversation);
    }

    fn before_add_past_id(&mut self, item: &Key) {
        self.needs("add_past_id", [Lock::Conversation(item.clone())]);
    }

    fn before_end_past_id(&mut self, item: &Key) {
        self.needs("end_past_id", [Lock::Conversation(item.clone())]);
    }

    fn before_set_item_state(&mut self, state: &ItemState) {
        let root = Lock::Conversation(state.root().clone());
        let item = Lock::Conversation(state.item.clone());
        self.needs("set_item_state", [item, root]);
    }

    fn before_insert_run(&mut self, run: &Run) {
        self.needs("insert_run", [Lock::Conversation(run.root.clone())]);
        self.born_runs.push(run.id.clone());
    }

    fn before_update_run(&mut self, run: &Run) {
        self.needs("update_run", [Lock::Run(run.id.clone())]);
    }

    fn before_set_park(&mut self, park: &Park) {
        let lock = Lock::Park(park.agent.clone(), park.host.clone());
        self.needs("set_park", [lock]);
    }

    fn before_clear_park(&mut self, agent: &AgentName, host: &HostId) {
        self.needs("clear_park", [Lock::Park(agent.clone(), host.clone())]);
    }

    fn before_insert_job(&mut self, job: &Job) {
        self.needs("insert_job", [Lock::Conversation(job.root.clone())]);
    }

    fn before_update_job(&mut self, job: &Job) -> Result<(), StoreError> {
        self.needs("update_job", [Lock::Conversation(job.root.clone())]);
        let is_taken = |job: &Job| matches!(job.state, JobState::Starting | JobState::Begun);
        let before = self.tx.job(&job.id)?;
        if is_taken(job) && !before.as_ref().is_some_and(is_taken) {
            self.needs("update_job, which takes it,", [Lock::Queue]);
        }
        Ok(())
    }

    fn before_set_breaker(&mut self, breaker: &Breaker) {
        self.needs("set_breaker", [Lock::Conversation(breaker.item.clone())]);
    }

    fn before_set_identity(&mut self, identity: &Identity) {
        let key = Identity::key(&identity.name);
        self.needs("set_identity", key.map(Lock::Conversation));
    }
}

/// The ports, each call of which is passed on.
mod ports {
    include!(concat!(env!("OUT_DIR"), "/ports.rs"));
}

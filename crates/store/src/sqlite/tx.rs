//! The store's transaction: every call goes to the file of its noun.

use std::collections::BTreeMap;

use tenure_core::claim::{ClaimRecord, Hold, HoldEnd};
use tenure_core::event::{Event, EventFilter, NewEvent};
use tenure_core::id::{
    AgentName, Cursor, Epoch, Handle, NativeId, SessionId, SessionToken, Ticket,
};
use tenure_core::key::Key;
use tenure_core::mirror_failure::MirrorFailure;
use tenure_core::mission::pointer::{Pointer, Scope};
use tenure_core::mission::{Mission, MissionId, Participant, StoredParticipant};
use tenure_core::notice::{Notice, NoticeId, Pending};
use tenure_core::process::Process;
use tenure_core::queue::{NotedTurn, Waiter};
use tenure_core::repository::Home;
use tenure_core::session::{Activity, MetaKey, Session};
use tenure_core::store::{
    ClaimFilter, LineageEntry, Lost, NewWaiter, ProcessPlace, SessionFilter, StoreError, Tx,
};
use tenure_core::time::{Deadline, Now, Timestamp};
use tenure_core::trample::{FileStamp, FileWrite, Tree};
use tenure_core::transcript::Transcript;

use super::handle::SqliteTx;
use super::{
    claim, doubt, event, metadata, mirror, mission, moved, native, notice, process, queue, session,
    transcript, write,
};

impl Tx for SqliteTx<'_> {
    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.commit_all()
    }

    fn now(&mut self) -> Result<Now, StoreError> {
        Ok(self.time())
    }

    fn session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError> {
        session::get(self, id)
    }

    fn lock_session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError> {
        // SQLite has one writer at a time: whoever has begun to write has locked everything.
        session::get(self, id)
    }

    fn session_by_handle(&mut self, handle: &str) -> Result<Option<Session>, StoreError> {
        session::by_handle(self, handle)
    }

    fn match_sessions(
        &mut self,
        part: &str,
        limit: usize,
    ) -> Result<Vec<(SessionId, Handle)>, StoreError> {
        session::matching(self, part, limit)
    }

    fn sessions_at(&mut self, place: ProcessPlace<'_>) -> Result<Vec<Session>, StoreError> {
        session::at(self, place)
    }

    fn lives_at(
        &mut self,
        place: ProcessPlace<'_>,
    ) -> Result<Vec<(SessionToken, Process)>, StoreError> {
        process::lives_at(self, place)
    }

    fn list_sessions(&mut self, filter: &SessionFilter) -> Result<Vec<Session>, StoreError> {
        session::list(self, filter)
    }

    fn insert_session(&mut self, session: &Session) -> Result<(), StoreError> {
        session::insert(self, session)
    }

    fn update_session(&mut self, session: &Session) -> Result<(), StoreError> {
        session::update(self, session)
    }

    fn touch_session(
        &mut self,
        token: SessionToken,
        seen_at: Timestamp,
        lease: &Deadline,
        activity: Option<Activity>,
    ) -> Result<bool, StoreError> {
        session::touch(self, token, seen_at, lease, activity)
    }

    fn insert_life(
        &mut self,
        token: SessionToken,
        process: &Process,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        process::insert_life(self, token, process, at)
    }

    fn native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<SessionId>, StoreError> {
        native::owner(self, agent, native_id)
    }

    fn set_native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        owner: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        native::set_owner(self, agent, native_id, owner, at)
    }

    fn native_visitors(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Vec<SessionId>, StoreError> {
        native::visitors(self, agent, native_id)
    }

    fn add_visit(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        visitor: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        native::add_visit(self, agent, native_id, visitor, at)
    }

    fn lineage(&mut self, session: SessionId) -> Result<Vec<LineageEntry>, StoreError> {
        native::lineage(self, session)
    }

    fn claim(&mut self, key: &Key) -> Result<Option<ClaimRecord>, StoreError> {
        claim::get(self, key)
    }

    fn lock_claim(&mut self, key: &Key) -> Result<ClaimRecord, StoreError> {
        claim::lock(self, key)
    }

    fn count_claims(&mut self, filter: &ClaimFilter) -> Result<usize, StoreError> {
        claim::count(self, filter)
    }

    fn count_sessions(&mut self, filter: &SessionFilter) -> Result<usize, StoreError> {
        session::count(self, filter)
    }

    fn count_events(&mut self, filter: &EventFilter) -> Result<usize, StoreError> {
        event::count(self, filter)
    }

    fn list_claims(&mut self, filter: &ClaimFilter) -> Result<Vec<ClaimRecord>, StoreError> {
        claim::list(self, filter)
    }

    fn insert_hold(&mut self, hold: &Hold, before: Epoch) -> Result<(), StoreError> {
        claim::insert_hold(self, hold, before)
    }

    fn end_hold(&mut self, key: &Key, epoch: Epoch, end: HoldEnd) -> Result<(), StoreError> {
        claim::end_hold(self, key, epoch, end)
    }

    fn newest_hold_of(
        &mut self,
        session: SessionId,
        key: &Key,
    ) -> Result<Option<Hold>, StoreError> {
        claim::newest_hold_of(self, session, key)
    }

    fn open_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        claim::open_holds(self, session)
    }

    fn lost_holds(&mut self, session: SessionId, which: Lost<'_>) -> Result<Vec<Hold>, StoreError> {
        claim::lost_holds(self, session, which)
    }

    fn last_grant(&mut self, session: SessionId) -> Result<Option<Timestamp>, StoreError> {
        claim::last_grant(self, session)
    }

    fn newest_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        claim::newest_holds(self, session)
    }

    fn lock_paths(&mut self, _: &str) -> Result<(), StoreError> {
        // SQLite has one writer at a time: whoever has begun to write has locked everything.
        Ok(())
    }

    fn open_homes(&mut self) -> Result<Vec<Home>, StoreError> {
        claim::open_homes(self)
    }

    fn spellings(&mut self, canonical: &str) -> Result<Vec<Key>, StoreError> {
        claim::spellings(self, canonical)
    }

    fn join_queue(&mut self, keys: &[Key], waiter: &NewWaiter<'_>) -> Result<Ticket, StoreError> {
        queue::join(self, keys, waiter)
    }

    fn queue(&mut self, key: &Key) -> Result<Vec<Waiter>, StoreError> {
        queue::line(self, key)
    }

    fn waits_of(&mut self, session: SessionId) -> Result<Vec<Waiter>, StoreError> {
        queue::of_session(self, session)
    }

    fn waits_at(&mut self, ticket: Ticket) -> Result<Vec<Waiter>, StoreError> {
        queue::at(self, ticket)
    }

    fn set_turn(&mut self, ticket: Ticket, key: &Key, turn: &NotedTurn) -> Result<(), StoreError> {
        queue::set_turn(self, ticket, key, turn)
    }

    fn leave_queue(&mut self, ticket: Ticket) -> Result<(), StoreError> {
        queue::leave(self, ticket)
    }

    fn add_notice(&mut self, notice: &Notice) -> Result<(), StoreError> {
        notice::add(self, notice)
    }

    fn has_notices(&mut self, session: SessionId) -> Result<bool, StoreError> {
        notice::any(self, session)
    }

    fn pending_notices(&mut self, session: SessionId, limit: usize) -> Result<Pending, StoreError> {
        notice::pending(self, session, limit)
    }

    fn mark_delivered(
        &mut self,
        session: SessionId,
        told: &[NoticeId],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        notice::mark(self, session, told, at)
    }

    fn note_model_channel(&mut self, session: SessionToken) -> Result<(), StoreError> {
        notice::add_channel(self, session)
    }

    fn has_model_channel(&mut self, session: SessionToken) -> Result<bool, StoreError> {
        notice::has_channel(self, session)
    }

    fn take_damage(&mut self) -> Vec<String> {
        self.taken_damage()
    }

    fn store_news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError> {
        self.about_store(moved::news)
    }

    fn append_event(&mut self, event: &NewEvent, at: Timestamp) -> Result<Cursor, StoreError> {
        event::append(self, event, at)
    }

    fn events(&mut self, filter: &EventFilter) -> Result<Vec<Event>, StoreError> {
        event::read(self, filter)
    }

    fn metadata(&mut self, session: SessionId) -> Result<BTreeMap<MetaKey, String>, StoreError> {
        metadata::get(self, session)
    }

    fn set_metadata(
        &mut self,
        session: SessionId,
        key: &MetaKey,
        value: Option<&str>,
    ) -> Result<(), StoreError> {
        metadata::set(self, session, key, value)
    }

    fn transcript_of(
        &mut self,
        session: SessionId,
        native_id: &NativeId,
    ) -> Result<Option<Transcript>, StoreError> {
        transcript::of(self, session, native_id)
    }

    fn transcript_owner(&mut self, path: &str) -> Result<Option<SessionId>, StoreError> {
        transcript::owner(self, path)
    }

    fn set_transcript(&mut self, transcript: &Transcript) -> Result<(), StoreError> {
        transcript::set(self, transcript)
    }

    fn quarantine_transcript(
        &mut self,
        transcript: &Transcript,
        why: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        transcript::quarantine(self, transcript, why, at)
    }

    fn quarantined_transcripts(
        &mut self,
        session: SessionId,
    ) -> Result<Vec<(Transcript, String)>, StoreError> {
        transcript::quarantined(self, session)
    }

    fn writers(&mut self, path: &str) -> Result<Vec<FileWrite>, StoreError> {
        write::writers(self, path)
    }

    fn writes_of(
        &mut self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FileWrite>, StoreError> {
        write::of(self, session, limit)
    }

    fn note_write(&mut self, write: &FileWrite) -> Result<(), StoreError> {
        write::note(self, write)
    }

    fn stamp_write(
        &mut self,
        session: SessionId,
        path: &str,
        stamp: Option<FileStamp>,
    ) -> Result<(), StoreError> {
        write::stamp(self, session, path, stamp)
    }

    fn forget_writes(&mut self, session: SessionId, before: Timestamp) -> Result<(), StoreError> {
        write::forget(self, session, before)
    }

    fn tree_of(&mut self, session: SessionId) -> Result<Option<Tree>, StoreError> {
        write::tree(self, session)
    }

    fn set_tree(&mut self, session: SessionId, tree: &Tree) -> Result<(), StoreError> {
        write::set_tree(self, session, tree)
    }

    fn add_doubt(&mut self, asker: SessionId, holder: SessionToken) -> Result<(), StoreError> {
        doubt::add(self, asker, holder)
    }

    fn has_doubts(&mut self, asker: SessionId) -> Result<bool, StoreError> {
        doubt::any(self, asker)
    }

    fn take_doubts(&mut self, asker: SessionId) -> Result<Vec<SessionToken>, StoreError> {
        doubt::take(self, asker)
    }

    fn lock_mission(&mut self, id: &MissionId, at: Timestamp) -> Result<(), StoreError> {
        mission::lock(self, id, at)
    }

    fn list_missions(&mut self) -> Result<Vec<Mission>, StoreError> {
        mission::list(self)
    }

    fn mission(&mut self, id: &str) -> Result<Option<Mission>, StoreError> {
        mission::get(self, id)
    }

    fn participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<Option<StoredParticipant>, StoreError> {
        mission::one(self, mission, session)
    }

    fn participants(&mut self, mission: &str) -> Result<Vec<StoredParticipant>, StoreError> {
        mission::of_mission(self, mission)
    }

    fn participations(&mut self, session: SessionId) -> Result<Vec<StoredParticipant>, StoreError> {
        mission::of_session(self, session)
    }

    fn all_participants(&mut self) -> Result<Vec<StoredParticipant>, StoreError> {
        mission::every(self)
    }

    fn insert_participant(&mut self, participant: &Participant) -> Result<(), StoreError> {
        mission::insert(self, participant)
    }

    fn update_participant(&mut self, participant: &Participant) -> Result<(), StoreError> {
        mission::update(self, participant)
    }

    fn remove_participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<bool, StoreError> {
        mission::remove(self, mission, session)
    }

    fn pointer(&mut self, scope: &Scope) -> Result<Option<Pointer>, StoreError> {
        mission::pointer(self, scope)
    }

    fn set_pointer(
        &mut self,
        scope: &Scope,
        mission: Option<&MissionId>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        mission::set_pointer(self, scope, mission, at)
    }

    fn list_pointers(&mut self) -> Result<Vec<Pointer>, StoreError> {
        mission::list_pointers(self)
    }

    fn mirror_failures(&mut self) -> Result<Vec<MirrorFailure>, StoreError> {
        mirror::failures(self)
    }

    fn set_mirror_failure(&mut self, failure: &MirrorFailure) -> Result<(), StoreError> {
        mirror::set(self, failure)
    }

    fn clear_mirror_failure(&mut self, path: &str) -> Result<(), StoreError> {
        mirror::clear(self, path)
    }
}

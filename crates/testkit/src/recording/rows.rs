//! Every call is passed on; calls that write first declare which locks they need.

use std::collections::BTreeMap;

use tenure_core::claim::{ClaimRecord, Hold, HoldEnd};
use tenure_core::event::{Event, EventFilter, NewEvent};
use tenure_core::id::{
    AgentName, Cursor, Epoch, Handle, KeeperId, Life, NativeId, SessionId, SessionToken, Ticket,
};
use tenure_core::keeper::{Keeper, KeeperPlace};
use tenure_core::key::Key;
use tenure_core::line::{NotedTurn, Waiter};
use tenure_core::mirror_failure::MirrorFailure;
use tenure_core::mission::pointer::{Pointer, Scope};
use tenure_core::mission::{Mission, MissionId, Participant, StoredParticipant};
use tenure_core::notice::{Notice, NoticeId, Pending};
use tenure_core::process::Process;
use tenure_core::repository::Home;
use tenure_core::session::{Activity, MetaKey, Session};
use tenure_core::store::{
    ClaimFilter, ClaimRows, DoubtRows, EventRows, KeeperRows, LineRows, LineageEntry, Lock, Lost,
    MetadataRows, MirrorRows, MissionRows, NativeRows, NewWaiter, NoticeRows, ProcessPlace,
    SessionFilter, SessionRows, StoreError, TranscriptRows, Untold, WatchedHold, WriteRows,
};
use tenure_core::time::{Deadline, Timestamp};
use tenure_core::transcript::Transcript;
use tenure_core::write_conflict::{FileStamp, FileWrite, Tree};

use super::RecordingTx;

impl SessionRows for RecordingTx<'_> {
    fn session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError> {
        self.tx.session(id)
    }

    fn sessions(&mut self, ids: &[SessionId]) -> Result<Vec<Session>, StoreError> {
        self.tx.sessions(ids)
    }

    fn session_by_handle(&mut self, handle: &str) -> Result<Option<Session>, StoreError> {
        self.tx.session_by_handle(handle)
    }

    fn count_sessions(&mut self, filter: &SessionFilter) -> Result<usize, StoreError> {
        self.tx.count_sessions(filter)
    }

    fn match_sessions(
        &mut self,
        part: &str,
        limit: usize,
    ) -> Result<Vec<(SessionId, Handle)>, StoreError> {
        self.tx.match_sessions(part, limit)
    }

    fn sessions_at_any(&mut self, places: &[ProcessPlace<'_>]) -> Result<Vec<Session>, StoreError> {
        self.lookups.update(|count| count + 1);
        self.tx.sessions_at_any(places)
    }

    fn sessions_below_any(
        &mut self,
        places: &[ProcessPlace<'_>],
    ) -> Result<Vec<Session>, StoreError> {
        self.lookups.update(|count| count + 1);
        self.tx.sessions_below_any(places)
    }

    fn list_sessions(&mut self, filter: &SessionFilter) -> Result<Vec<Session>, StoreError> {
        self.tx.list_sessions(filter)
    }

    fn insert_session(&mut self, session: &Session) -> Result<(), StoreError> {
        self.writes("insert_session");
        self.born.push(session.id);
        self.tx.insert_session(session)
    }

    fn update_session(&mut self, session: &Session) -> Result<(), StoreError> {
        self.needs("update_session", [Lock::Session(session.id)]);
        self.tx.update_session(session)
    }

    fn touch_session(
        &mut self,
        token: SessionToken,
        seen_at: Timestamp,
        lease: &Deadline,
        activity: Option<&Activity>,
        attended_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        self.touches(token.id);
        self.tx
            .touch_session(token, seen_at, lease, activity, attended_at)
    }

    fn lives_at_any(
        &mut self,
        places: &[ProcessPlace<'_>],
    ) -> Result<Vec<(SessionToken, Process)>, StoreError> {
        self.lookups.update(|count| count + 1);
        self.tx.lives_at_any(places)
    }

    fn lives_up_to(
        &mut self,
        token: SessionToken,
        most: usize,
    ) -> Result<Vec<(Life, Process)>, StoreError> {
        self.tx.lives_up_to(token, most)
    }

    fn insert_life(
        &mut self,
        token: SessionToken,
        process: &Process,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.needs("insert_life", [Lock::Session(token.id)]);
        self.tx.insert_life(token, process, at)
    }
}

impl NativeRows for RecordingTx<'_> {
    fn native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<SessionId>, StoreError> {
        self.tx.native_owner(agent, native_id)
    }

    fn set_native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        before: Option<SessionId>,
        owner: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.needs(
            "set_native_owner",
            [Lock::Native(agent.clone(), native_id.clone())],
        );
        self.tx
            .set_native_owner(agent, native_id, before, owner, at)
    }

    fn native_visitors(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Vec<SessionId>, StoreError> {
        self.tx.native_visitors(agent, native_id)
    }

    fn add_visit(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        visitor: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.needs(
            "add_visit",
            [Lock::Native(agent.clone(), native_id.clone())],
        );
        self.tx.add_visit(agent, native_id, visitor, at)
    }

    fn lineage(&mut self, session: SessionId) -> Result<Vec<LineageEntry>, StoreError> {
        self.tx.lineage(session)
    }

    fn lineages(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<(SessionId, LineageEntry)>, StoreError> {
        self.tx.lineages(sessions)
    }

    fn in_conversations(
        &mut self,
        agent: &AgentName,
        natives: &[NativeId],
    ) -> Result<Vec<(NativeId, SessionId)>, StoreError> {
        self.tx.in_conversations(agent, natives)
    }
}

impl ClaimRows for RecordingTx<'_> {
    fn claims(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError> {
        self.tx.claims(keys)
    }

    fn lock_claims(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError> {
        for key in keys {
            self.takes(&Lock::Key(key.clone()));
        }
        self.tx.lock_claims(keys)
    }

    fn count_claims(&mut self, filter: &ClaimFilter) -> Result<usize, StoreError> {
        self.tx.count_claims(filter)
    }

    fn list_claims(&mut self, filter: &ClaimFilter) -> Result<Vec<ClaimRecord>, StoreError> {
        self.tx.list_claims(filter)
    }

    fn insert_hold(&mut self, hold: &Hold, before: Epoch) -> Result<(), StoreError> {
        self.grants(hold);
        self.tx.insert_hold(hold, before)
    }

    fn end_hold(&mut self, key: &Key, epoch: Epoch, end: HoldEnd) -> Result<(), StoreError> {
        self.ends(key, end)?;
        self.tx.end_hold(key, epoch, end)
    }

    fn end_holds_of(
        &mut self,
        session: SessionId,
        end: HoldEnd,
    ) -> Result<Vec<(Key, Epoch)>, StoreError> {
        self.ends_all(session)?;
        self.tx.end_holds_of(session, end)
    }

    fn carry_holds(&mut self, to: SessionToken) -> Result<(), StoreError> {
        self.needs("carry_holds", [Lock::Session(to.id)]);
        self.tx.carry_holds(to)
    }

    fn newest_hold_of(
        &mut self,
        session: SessionId,
        key: &Key,
    ) -> Result<Option<Hold>, StoreError> {
        self.tx.newest_hold_of(session, key)
    }

    fn newest_holds_among(
        &mut self,
        session: SessionId,
        keys: &[Key],
    ) -> Result<Vec<Hold>, StoreError> {
        self.tx.newest_holds_among(session, keys)
    }

    fn ungiven_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        self.tx.ungiven_holds(session)
    }

    fn open_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        self.held_by(session)
    }

    fn open_holds_of(&mut self, sessions: &[SessionId]) -> Result<Vec<Hold>, StoreError> {
        let held = self.tx.open_holds_of(sessions)?;
        self.unless_unreadable(held)
    }

    fn newest_holds_of(&mut self, sessions: &[SessionId]) -> Result<Vec<Hold>, StoreError> {
        self.tx.newest_holds_of(sessions)
    }

    fn lost_holds(&mut self, session: SessionId, which: Lost<'_>) -> Result<Vec<Hold>, StoreError> {
        self.tx.lost_holds(session, which)
    }

    fn lost_holds_of(
        &mut self,
        sessions: &[SessionId],
        since: Timestamp,
    ) -> Result<Vec<Hold>, StoreError> {
        self.tx.lost_holds_of(sessions, since)
    }

    fn last_grant(&mut self, session: SessionId) -> Result<Option<Timestamp>, StoreError> {
        self.tx.last_grant(session)
    }

    fn newest_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError> {
        self.tx.newest_holds(session)
    }

    fn open_homes(&mut self) -> Result<Vec<Home>, StoreError> {
        self.tx.open_homes()
    }
}

impl LineRows for RecordingTx<'_> {
    fn join_line(&mut self, keys: &[Key], waiter: &NewWaiter<'_>) -> Result<Ticket, StoreError> {
        self.needs("join_line", keys.iter().cloned().map(Lock::Key));
        self.tx.join_line(keys, waiter)
    }

    fn line(&mut self, key: &Key) -> Result<Vec<Waiter>, StoreError> {
        self.tx.line(key)
    }

    fn waits_of(&mut self, sessions: &[SessionId]) -> Result<Vec<Waiter>, StoreError> {
        self.tx.waits_of(sessions)
    }

    fn waits_at(&mut self, ticket: Ticket) -> Result<Vec<Waiter>, StoreError> {
        self.tx.waits_at(ticket)
    }

    fn set_turn(
        &mut self,
        ticket: Ticket,
        key: &Key,
        before: Option<&NotedTurn>,
        turn: &NotedTurn,
    ) -> Result<(), StoreError> {
        self.needs("set_turn", [Lock::Ticket(ticket)]);
        self.tx.set_turn(ticket, key, before, turn)
    }

    fn leave_line(&mut self, ticket: Ticket) -> Result<(), StoreError> {
        self.needs("leave_line", [Lock::Ticket(ticket)]);
        self.tx.leave_line(ticket)
    }
}

impl NoticeRows for RecordingTx<'_> {
    fn add_notice(&mut self, notice: &Notice) -> Result<(), StoreError> {
        self.writes("add_notice");
        self.tx.add_notice(notice)
    }

    fn has_notices(&mut self, session: SessionId) -> Result<bool, StoreError> {
        self.tx.has_notices(session)
    }

    fn pending_notices(&mut self, session: SessionId, limit: usize) -> Result<Pending, StoreError> {
        self.tx.pending_notices(session, limit)
    }

    fn losses_told(&mut self, session: SessionId, keys: &[Key]) -> Result<Vec<Key>, StoreError> {
        self.tx.losses_told(session, keys)
    }

    fn mark_delivered(
        &mut self,
        session: SessionId,
        told: &[NoticeId],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.writes("mark_delivered");
        self.tx.mark_delivered(session, told, at)
    }

    fn note_model_channel(&mut self, session: SessionToken) -> Result<(), StoreError> {
        self.writes("note_model_channel");
        self.tx.note_model_channel(session)
    }

    fn has_model_channel(&mut self, session: SessionToken) -> Result<bool, StoreError> {
        self.tx.has_model_channel(session)
    }
}

impl EventRows for RecordingTx<'_> {
    fn append_event(&mut self, event: &NewEvent, at: Timestamp) -> Result<(), StoreError> {
        self.writes("append_event");
        self.tx.append_event(event, at)
    }

    fn count_events(&mut self, filter: &EventFilter) -> Result<usize, StoreError> {
        self.reads_log(&EventFilter {
            limit: filter.count_to,
            ..filter.clone()
        });
        self.tx.count_events(filter)
    }

    fn first_event(&mut self, filter: &EventFilter) -> Result<Option<Cursor>, StoreError> {
        self.reads_log(filter);
        self.tx.first_event(filter)
    }

    fn events(&mut self, filter: &EventFilter) -> Result<Vec<Event>, StoreError> {
        self.reads_log(filter);
        self.tx.events(filter)
    }

    fn oldest_event(&mut self) -> Result<Option<Cursor>, StoreError> {
        self.tx.oldest_event()
    }

    fn forget_events(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.writes("forget_events");
        self.tx.forget_events(before, limit)
    }
}

impl MetadataRows for RecordingTx<'_> {
    fn metadata(&mut self, session: SessionId) -> Result<BTreeMap<MetaKey, String>, StoreError> {
        self.tx.metadata(session)
    }

    fn set_metadata(
        &mut self,
        session: SessionId,
        key: &MetaKey,
        value: Option<&str>,
    ) -> Result<(), StoreError> {
        self.needs("set_metadata", [Lock::Session(session)]);
        self.tx.set_metadata(session, key, value)
    }
}

impl TranscriptRows for RecordingTx<'_> {
    fn transcript_of(
        &mut self,
        session: SessionId,
        native_id: &NativeId,
    ) -> Result<Option<Transcript>, StoreError> {
        self.tx.transcript_of(session, native_id)
    }

    fn transcripts_of(
        &mut self,
        conversations: &[(SessionId, NativeId)],
    ) -> Result<Vec<Transcript>, StoreError> {
        self.tx.transcripts_of(conversations)
    }

    fn transcript_owner(&mut self, path: &str) -> Result<Option<SessionId>, StoreError> {
        self.tx.transcript_owner(path)
    }

    fn set_transcript(&mut self, transcript: &Transcript) -> Result<(), StoreError> {
        self.needs(
            "set_transcript",
            [Lock::Transcript(transcript.path.clone())],
        );
        self.tx.set_transcript(transcript)
    }

    fn quarantine_transcript(
        &mut self,
        transcript: &Transcript,
        why: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.needs(
            "quarantine_transcript",
            [Lock::Transcript(transcript.path.clone())],
        );
        self.tx.quarantine_transcript(transcript, why, at)
    }

    fn quarantined_transcripts(
        &mut self,
        session: SessionId,
    ) -> Result<Vec<(Transcript, String)>, StoreError> {
        self.tx.quarantined_transcripts(session)
    }
}

impl WriteRows for RecordingTx<'_> {
    fn writers(&mut self, path: &str) -> Result<Vec<FileWrite>, StoreError> {
        self.tx.writers(path)
    }

    fn writes_of(
        &mut self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FileWrite>, StoreError> {
        self.tx.writes_of(session, limit)
    }

    fn writes_since(
        &mut self,
        sessions: &[SessionId],
        since: Timestamp,
    ) -> Result<Vec<FileWrite>, StoreError> {
        self.tx.writes_since(sessions, since)
    }

    fn note_write(&mut self, write: &FileWrite) -> Result<(), StoreError> {
        self.beats("note_write");
        self.tx.note_write(write)
    }

    fn stamp_write(
        &mut self,
        session: SessionId,
        path: &str,
        stamp: Option<FileStamp>,
    ) -> Result<(), StoreError> {
        self.beats("stamp_write");
        self.tx.stamp_write(session, path, stamp)
    }

    fn forget_writes(&mut self, session: SessionId, before: Timestamp) -> Result<(), StoreError> {
        self.beats("forget_writes");
        self.tx.forget_writes(session, before)
    }

    fn tree_of(&mut self, session: SessionId) -> Result<Option<Tree>, StoreError> {
        self.tx.tree_of(session)
    }

    fn set_tree(&mut self, session: SessionId, tree: &Tree) -> Result<(), StoreError> {
        self.beats("set_tree");
        self.tx.set_tree(session, tree)
    }
}

impl DoubtRows for RecordingTx<'_> {
    fn add_doubt(&mut self, asker: SessionId, holder: SessionToken) -> Result<(), StoreError> {
        self.writes("add_doubt");
        self.tx.add_doubt(asker, holder)
    }

    fn has_doubts(&mut self, asker: SessionId) -> Result<bool, StoreError> {
        self.tx.has_doubts(asker)
    }

    fn take_doubts(&mut self, asker: SessionId) -> Result<Vec<SessionToken>, StoreError> {
        self.writes("take_doubts");
        self.tx.take_doubts(asker)
    }
}

impl KeeperRows for RecordingTx<'_> {
    fn renew_keeper(&mut self, keeper: &Keeper) -> Result<(), StoreError> {
        self.needs("renew_keeper", [Lock::Keeper(keeper.id.clone())]);
        self.tx.renew_keeper(keeper)
    }

    fn remove_keeper(&mut self, id: &KeeperId) -> Result<(), StoreError> {
        self.needs("remove_keeper", [Lock::Keeper(id.clone())]);
        self.tx.remove_keeper(id)
    }

    fn keepers(&mut self) -> Result<Vec<Keeper>, StoreError> {
        self.tx.keepers()
    }

    fn watch_sessions(
        &mut self,
        keeper: &KeeperId,
        sessions: &[SessionToken],
    ) -> Result<(), StoreError> {
        self.needs("watch_sessions", [Lock::Keeper(keeper.clone())]);
        self.tx.watch_sessions(keeper, sessions)
    }

    fn watchers_of(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<(SessionToken, Keeper)>, StoreError> {
        self.tx.watchers_of(sessions)
    }

    fn add_untold(&mut self, untold: &Untold) -> Result<(), StoreError> {
        self.needs("add_untold", [Lock::Key(untold.key.clone())]);
        self.tx.add_untold(untold)
    }

    fn untold(&mut self, keys: &[Key]) -> Result<Vec<(Untold, Keeper)>, StoreError> {
        self.tx.untold(keys)
    }

    fn forget_untold(&mut self, keeper: &KeeperId, before: &Deadline) -> Result<(), StoreError> {
        self.needs("forget_untold", [Lock::Keeper(keeper.clone())]);
        self.tx.forget_untold(keeper, before)
    }

    fn open_sessions_at(&mut self, place: &KeeperPlace) -> Result<Vec<Session>, StoreError> {
        self.tx.open_sessions_at(place)
    }

    fn watched_holds(&mut self, keeper: &KeeperId) -> Result<Vec<WatchedHold>, StoreError> {
        self.tx.watched_holds(keeper)
    }

    fn forget_keepers(&mut self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        self.writes("forget_keepers");
        self.tx.forget_keepers(before, most)
    }
}

impl MissionRows for RecordingTx<'_> {
    fn make_mission(&mut self, id: &MissionId, at: Timestamp) -> Result<(), StoreError> {
        self.needs("make_mission", [Lock::Mission(id.to_string())]);
        self.tx.make_mission(id, at)
    }

    fn list_missions(&mut self) -> Result<Vec<Mission>, StoreError> {
        self.tx.list_missions()
    }

    fn mission(&mut self, id: &str) -> Result<Option<Mission>, StoreError> {
        self.tx.mission(id)
    }

    fn participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<Option<StoredParticipant>, StoreError> {
        self.tx.participant(mission, session)
    }

    fn participants(&mut self, mission: &str) -> Result<Vec<StoredParticipant>, StoreError> {
        self.tx.participants(mission)
    }

    fn participations(&mut self, session: SessionId) -> Result<Vec<StoredParticipant>, StoreError> {
        self.tx.participations(session)
    }

    fn participations_of(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<StoredParticipant>, StoreError> {
        self.tx.participations_of(sessions)
    }

    fn all_participants(&mut self) -> Result<Vec<StoredParticipant>, StoreError> {
        self.tx.all_participants()
    }

    fn insert_participant(&mut self, participant: &Participant) -> Result<(), StoreError> {
        let mission = Lock::Mission(participant.mission.to_string());
        let session = Lock::Session(participant.session);
        self.needs("insert_participant", [mission, session]);
        self.tx.insert_participant(participant)
    }

    fn update_participant(&mut self, participant: &Participant) -> Result<(), StoreError> {
        self.needs(
            "update_participant",
            [Lock::Mission(participant.mission.to_string())],
        );
        self.tx.update_participant(participant)
    }

    fn remove_participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<bool, StoreError> {
        let locks = [Lock::Mission(mission.to_owned()), Lock::Session(session)];
        self.needs("remove_participant", locks);
        self.tx.remove_participant(mission, session)
    }

    fn pointer(&mut self, scope: &Scope) -> Result<Option<Pointer>, StoreError> {
        self.tx.pointer(scope)
    }

    fn set_pointer(
        &mut self,
        scope: &Scope,
        mission: Option<&MissionId>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.writes("set_pointer");
        self.tx.set_pointer(scope, mission, at)
    }

    fn list_pointers(&mut self) -> Result<Vec<Pointer>, StoreError> {
        self.tx.list_pointers()
    }
}

impl MirrorRows for RecordingTx<'_> {
    fn mirror_failures(&mut self) -> Result<Vec<MirrorFailure>, StoreError> {
        self.tx.mirror_failures()
    }

    fn set_mirror_failure(&mut self, failure: &MirrorFailure) -> Result<(), StoreError> {
        self.writes("set_mirror_failure");
        self.tx.set_mirror_failure(failure)
    }

    fn clear_mirror_failure(&mut self, path: &str) -> Result<(), StoreError> {
        self.writes("clear_mirror_failure");
        self.tx.clear_mirror_failure(path)
    }
}

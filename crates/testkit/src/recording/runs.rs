//! Conversations and runs: every call is passed on; calls that write first declare which locks they
//! need.

use tenure_core::conversation::fitness::Left;
use tenure_core::conversation::{Conversation, IdEnd, ItemState, PastId};
use tenure_core::id::{AgentName, HostId, NativeId, RunId, SessionId};
use tenure_core::key::Key;
use tenure_core::process::BootId;
use tenure_core::run::{Park, Run};
use tenure_core::store::{
    ConversationFilter, ConversationRows, CutOff, Lock, RunFilter, RunRows, StoreError,
};

use super::RecordingTx;

impl RecordingTx<'_> {
    /// A record that gets a native id needs its item, and the id, so that no session gets the id
    /// meanwhile.
    #[track_caller]
    fn writes_conversation(&mut self, what: &str, conversation: &Conversation) {
        let item = Lock::Conversation(conversation.item.clone());
        let native = conversation
            .current
            .as_ref()
            .map(|current| Lock::Native(conversation.agent.clone(), current.native_id.clone()));
        self.needs(what, [item].into_iter().chain(native));
    }
}

impl ConversationRows for RecordingTx<'_> {
    fn conversation(
        &mut self,
        agent: &AgentName,
        item: &Key,
    ) -> Result<Option<Conversation>, StoreError> {
        self.tx.conversation(agent, item)
    }

    fn conversation_with(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<Conversation>, StoreError> {
        self.tx.conversation_with(agent, native_id)
    }

    fn conversations_of(&mut self, item: &Key) -> Result<Vec<Conversation>, StoreError> {
        self.tx.conversations_of(item)
    }

    fn list_conversations(
        &mut self,
        filter: &ConversationFilter,
    ) -> Result<Vec<Conversation>, StoreError> {
        self.tx.list_conversations(filter)
    }

    fn count_conversations(&mut self, filter: &ConversationFilter) -> Result<usize, StoreError> {
        self.tx.count_conversations(filter)
    }

    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<(), StoreError> {
        self.writes_conversation("insert_conversation", conversation);
        self.tx.insert_conversation(conversation)
    }

    fn update_conversation(&mut self, conversation: &Conversation) -> Result<(), StoreError> {
        self.writes_conversation("update_conversation", conversation);
        self.tx.update_conversation(conversation)
    }

    fn past_ids(&mut self, agent: &AgentName, item: &Key) -> Result<Vec<PastId>, StoreError> {
        self.tx.past_ids(agent, item)
    }

    fn add_past_id(
        &mut self,
        agent: &AgentName,
        item: &Key,
        id: &PastId,
    ) -> Result<(), StoreError> {
        self.needs("add_past_id", [Lock::Conversation(item.clone())]);
        self.tx.add_past_id(agent, item, id)
    }

    fn end_past_id(
        &mut self,
        agent: &AgentName,
        item: &Key,
        end: &IdEnd,
    ) -> Result<(), StoreError> {
        self.needs("end_past_id", [Lock::Conversation(item.clone())]);
        self.tx.end_past_id(agent, item, end)
    }

    fn item_state(&mut self, item: &Key) -> Result<Option<ItemState>, StoreError> {
        self.tx.item_state(item)
    }

    fn set_item_state(&mut self, state: &ItemState) -> Result<(), StoreError> {
        let root = Lock::Conversation(state.root().clone());
        let item = Lock::Conversation(state.item.clone());
        self.needs("set_item_state", [item, root]);
        self.tx.set_item_state(state)
    }

    fn items_linked_to(&mut self, root: &Key) -> Result<Vec<ItemState>, StoreError> {
        self.tx.items_linked_to(root)
    }
}

impl RunRows for RecordingTx<'_> {
    fn run_by_id(&mut self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.tx.run_by_id(id)
    }

    fn match_runs(&mut self, part: &str, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.tx.match_runs(part, limit)
    }

    fn open_run_of(&mut self, agent: &AgentName, root: &Key) -> Result<Option<Run>, StoreError> {
        self.tx.open_run_of(agent, root)
    }

    fn open_runs_of(&mut self, root: &Key) -> Result<Vec<Run>, StoreError> {
        self.tx.open_runs_of(root)
    }

    fn open_runs_in(&mut self, host: &HostId, dir: &str) -> Result<Vec<Run>, StoreError> {
        self.tx.open_runs_in(host, dir)
    }

    fn open_run_of_session(&mut self, session: SessionId) -> Result<Option<Run>, StoreError> {
        self.tx.open_run_of_session(session)
    }

    fn newest_run_of_session(&mut self, session: SessionId) -> Result<Option<Run>, StoreError> {
        self.tx.newest_run_of_session(session)
    }

    fn newest_runs_of_sessions(&mut self, sessions: &[SessionId]) -> Result<Vec<Run>, StoreError> {
        self.tx.newest_runs_of_sessions(sessions)
    }

    fn runs_cut_off(
        &mut self,
        host: &HostId,
        boot: &BootId,
        place: CutOff<'_>,
    ) -> Result<Vec<Run>, StoreError> {
        self.tx.runs_cut_off(host, boot, place)
    }

    fn list_runs(&mut self, filter: &RunFilter) -> Result<Vec<Run>, StoreError> {
        self.tx.list_runs(filter)
    }

    fn count_runs(&mut self, filter: &RunFilter) -> Result<usize, StoreError> {
        self.tx.count_runs(filter)
    }

    fn insert_run(&mut self, run: &Run) -> Result<(), StoreError> {
        self.needs("insert_run", [Lock::Conversation(run.root.clone())]);
        self.born_runs.push(run.id.clone());
        self.tx.insert_run(run)
    }

    fn update_run(&mut self, run: &Run) -> Result<(), StoreError> {
        self.needs("update_run", [Lock::Run(run.id.clone())]);
        self.tx.update_run(run)
    }

    fn newest_left(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<(RunId, Left)>, StoreError> {
        self.tx.newest_left(agent, native_id)
    }

    fn park(&mut self, agent: &AgentName, host: &HostId) -> Result<Option<Park>, StoreError> {
        self.tx.park(agent, host)
    }

    fn parks(&mut self) -> Result<Vec<Park>, StoreError> {
        self.tx.parks()
    }

    fn set_park(&mut self, before: Option<&Park>, park: &Park) -> Result<(), StoreError> {
        let lock = Lock::Park(park.agent.clone(), park.host.clone());
        self.needs("set_park", [lock]);
        self.tx.set_park(before, park)
    }

    fn clear_park(&mut self, agent: &AgentName, host: &HostId) -> Result<(), StoreError> {
        self.needs("clear_park", [Lock::Park(agent.clone(), host.clone())]);
        self.tx.clear_park(agent, host)
    }
}

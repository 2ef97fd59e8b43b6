//! What a transaction locks, and in which order.
//!
//! Two transactions that take their locks in the same order never wait for each other in a circle. The order is
//! that of the variants below, ascending within each. A transaction locks first, then reads the clock, then
//! reads what it judges, then writes. If it finds only then that it must lock more, the next attempt locks that
//! from the start.

use crate::id::{AgentName, HostId, KeeperId, NativeId, RunId, SessionId, Ticket};
use crate::key::Key;

/// Something that a transaction locks against other writers until it ends. It need not exist yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    /// The paths of repositories with this name: overlapping keys are granted one after the other.
    Paths(String),
    /// A key: its epoch, its holds and the end of its line.
    Key(Key),
    /// An item's conversations, whatever the agent, its link, and that a run may begin in one of them.
    Conversation(Key),
    /// That a job is taken: how many run, in all and in each repository.
    Queue,
    /// A run.
    Run(RunId),
    /// Until when an agent is parked on a host.
    Park(AgentName, HostId),
    /// A mission and its participants.
    Mission(String),
    /// A conversation: who owns and who visits it.
    Native(AgentName, NativeId),
    /// A transcript, by its path.
    Transcript(String),
    /// A session, and its right to be granted something.
    Session(SessionId),
    /// A waiter's position in its lines, and its turns.
    Ticket(Ticket),
    /// A keeper's row: its renewals, and that its host counts as silent.
    Keeper(KeeperId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_in_the_order_in_which_they_are_taken() {
        let key = |text: &str| Lock::Key(Key::stored(text).expect("a key"));
        let agent = AgentName::known("claude");
        let native =
            |id: &str| Lock::Native(agent.clone(), NativeId::parse(id).expect("a native id"));
        let item = |text: &str| Lock::Conversation(Key::stored(text).expect("a key"));
        let ordered = [
            Lock::Paths("a".into()),
            Lock::Paths("b".into()),
            key("wp:B"),
            key("wp:a"),
            key("wp:\u{e9}"),
            item("issue:acme/web#6"),
            item("pr:acme/web#9"),
            Lock::Queue,
            Lock::Run(RunId::mint([0; 16])),
            Lock::Run(RunId::mint([1; 16])),
            Lock::Park(agent.clone(), HostId::new("a")),
            Lock::Park(agent.clone(), HostId::new("b")),
            Lock::Mission("a".into()),
            native("n1"),
            native("n2"),
            Lock::Transcript("/a".into()),
            Lock::Session(SessionId::mint(1, [0; 10])),
            Lock::Session(SessionId::mint(2, [0; 10])),
            Lock::Ticket(Ticket(1)),
            Lock::Keeper(KeeperId::mint([0; 16])),
            Lock::Keeper(KeeperId::mint([1; 16])),
        ];
        assert!(ordered.is_sorted());
    }
}

//! What may be forgotten: sessions that ended long ago, unless something that stays needs them.

use crate::id::stored_enum;

stored_enum! {
    /// What needs a session that is over.
    #[derive(PartialOrd, Ord)]
    Need {
        /// A claim that it still has.
        Claim = "claim",
        /// An item that a process of it still waits for.
        Wait = "wait",
        /// An item that it finished: nobody claims it again by accident.
        Done = "done",
        /// A conversation that it began or that goes on from it.
        Conversation = "conversation",
        /// A mission that it took part in.
        Mission = "mission",
        /// A run.
        Run = "run",
        /// A job of the queue.
        Job = "job",
        /// A session that it started, or whose conversation it shared.
        Kin = "kin",
        /// An event that is kept longer.
        Event = "event",
        /// Something that it told a session that did not read it yet.
        Notice = "notice",
    }
}

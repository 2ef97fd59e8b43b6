//! What people and programs are notified of: the reasons, and those that a person wants without being asked.

use crate::id::stored_enum;

stored_enum! {
    #[derive(PartialOrd, Ord)]
    Reason, "reason" {
        /// A session waits for a person.
        Asks = "asks",
        /// Its turn failed.
        Failed = "failed",
        /// Its provider accepts no requests for a while.
        Limited = "limited",
        /// It died while it held work, or in a conversation that can be resumed.
        Died = "died",
        /// Another session has a claim that it held.
        Lost = "lost",
        /// Another live session writes the same files or works on the same item.
        Collides = "collides",
        /// A run ended.
        Run = "run",
        /// The store does not answer.
        Store = "store",
        /// The keeper of this machine is gone and cannot be started.
        Keeper = "keeper",
        /// An item was claimed.
        Claimed = "claimed",
        /// An item was released by its holder.
        Released = "released",
        /// An item was marked as done.
        Done = "done",
    }
}

impl Reason {
    pub const ALL: &'static [Reason] = &[
        Reason::Asks,
        Reason::Failed,
        Reason::Limited,
        Reason::Died,
        Reason::Lost,
        Reason::Collides,
        Reason::Run,
        Reason::Claimed,
        Reason::Released,
        Reason::Done,
    ];

    /// What a channel reports if it names no reasons: what needs a person. The acts of agents are for programs.
    pub const FOR_A_PERSON: &'static [Reason] = &[
        Reason::Asks,
        Reason::Failed,
        Reason::Limited,
        Reason::Died,
        Reason::Lost,
        Reason::Collides,
        Reason::Run,
        Reason::Store,
        Reason::Keeper,
    ];

    /// Whether it is a fault of tenure itself, which only a process that stays can see.
    pub fn is_outage(self) -> bool {
        matches!(self, Reason::Store | Reason::Keeper)
    }

    /// Whether it comes from the log, not from the state of a session.
    pub fn is_logged(self) -> bool {
        use Reason::{Claimed, Done, Lost, Released, Run};
        matches!(self, Lost | Run | Claimed | Released | Done)
    }
}

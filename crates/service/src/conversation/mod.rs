//! Conversations of agents and items: reading, setting, dropping, linking, closing and reopening.
//!
//! A linked item continues its root's conversations. So every use case looks up the root first, and
//! decides with the item and the root locked. Functions that take a [`Ctx`](crate::context::Ctx)
//! are steps of other use cases, such as those of runs, which change a conversation in their own
//! transaction.

mod change;
mod closing;
mod contamination;
mod drop;
mod import;
mod link;
mod look;
mod own;
mod pointers;
mod record;
pub(crate) mod request;
mod reset;
mod run;
pub mod view;

pub use change::{end_native, set_by_run};
pub use closing::{Closing, Reopened, settle};
pub use drop::{DropRequest, Dropped};
pub use import::{import_conversation, is_another};
pub use link::{LinkRequest, Linked};
pub use look::{History, ListConversations, of_session};
pub use own::Address;
pub use pointers::dead_pointers;
pub use request::SetRequest;
pub use reset::Reset;

//! The shape of all answers: the same for `--json`, HTTP and MCP.
//!
//! Views are derived from records and observations; nothing parses them back. Within one major version of the
//! envelope (`"v": 1`), fields are added, never renamed or removed.

pub use crate::answer::NoticeView;
pub use crate::claim::view::*;
pub use crate::conversation::view::*;
pub use crate::import::view::*;
pub use crate::keeper::KeeperView;
pub use crate::log::EventView;
pub use crate::mission::view::*;
pub use crate::queue::view::*;
pub use crate::run::view::*;
pub use crate::session::view::*;
pub use crate::token::TokenView;
pub use crate::usage::view::*;

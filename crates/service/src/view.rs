//! The shapes in which answers leave tenure: the same for `--json`, HTTP and MCP.
//!
//! Views are derived from records and what was observed; nothing reads them back. Fields are added, never
//! renamed or removed, within one major version of the envelope (`"v": 1`).

pub use crate::answer::NoticeView;
pub use crate::claim::view::*;
pub use crate::log::EventView;
pub use crate::mission::view::*;
pub use crate::session::view::*;

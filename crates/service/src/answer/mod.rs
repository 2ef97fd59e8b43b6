//! The one answer format of every surface: the same JSON body for the command line, HTTP and MCP.
//!
//! A use case returns records or views. A surface wraps them here and prints nothing else for programs. Success
//! is `{"v":1, …parts, "notices":[…]}`, failure is `{"v":1, "error":{…}, "notices":[…]}`. The class of a
//! [`Problem`] decides the exit code, the HTTP status and the MCP code; each surface has one table. Hints are
//! data too ([`Hint`]): a surface shows them in its own form, and only to a reader that may act on them
//! ([`Reader`]).

mod class;
mod notice;
mod problem;
mod reader;

use serde_json::{Map, Value, json};
use tenure_core::notice::Pending;

pub use class::Class;
pub use notice::NoticeView;
pub use problem::Problem;
pub use reader::{Reader, reader_of};
pub use tenure_core::hint::{For, Hint};

pub const VERSION: u32 = 1;

/// Builds the body from its named parts.
pub fn body(parts: Map<String, Value>, notices: &Pending) -> Value {
    let mut object = Map::new();
    object.insert("v".into(), json!(VERSION));
    object.extend(parts);
    let views: Vec<NoticeView> = notices.iter().map(NoticeView::from).collect();
    object.insert("notices".into(), json!(views));
    if notices.more > 0 {
        object.insert("more_notices".into(), json!(notices.more));
    }
    Value::Object(object)
}

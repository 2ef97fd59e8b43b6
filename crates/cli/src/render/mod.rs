//! Text for people and models out of the same views that the JSON shows, a file for each noun. Sessions and their details
//! are in `tenure_views`, which `tenure top` shares.

pub mod brief;
mod claim;
mod conversation;
pub mod job;
mod mission;
pub mod spooled;
pub mod status;
mod written;

pub use tenure_views::details::{add_last_words, add_survivors, events, field, session};
pub use tenure_views::sessions::{counts, flat, holds, noted, people, whereabouts};

pub use self::claim::{claims, grant, why};
pub use self::conversation::conversation;
pub use self::mission::membership;
pub use self::written::written;
use crate::lines::Lines;

/// Adds how many of a list are not shown, and the command that shows them.
pub fn rest(text: &mut Lines, more: usize, is_least: bool, command: &str) {
    let more = match (more, is_least) {
        (0, _) => return,
        (more, true) => format!("more than {more} others"),
        (more, false) => format!("{more} more"),
    };
    text.line(format!("{more}; run `{command}` to see them"));
}

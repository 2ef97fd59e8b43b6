//! What an agent is doing, according to its screen.

use std::fmt;

/// What an agent is doing, as a person at its window sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It works, or its model does.
    Busy,
    /// It asks the person something.
    Waiting,
    /// It is ready for a line.
    Idle,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doing::Busy => "busy",
            Doing::Waiting => "waiting",
            Doing::Idle => "idle",
        })
    }
}

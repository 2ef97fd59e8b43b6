//! What an agent does, as its screen shows it.

use std::fmt;

/// What an agent does, as a person at its window sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It works, or its model does.
    Busy,
    /// It asks the person something.
    Waiting,
    /// It waits for a line.
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

//! Exit codes: one meaning each, documented in `tenure help exit-codes`.

use tenure_service::answer::Class;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(pub u8);

impl Exit {
    pub const DONE: Exit = Exit(0);
    /// Refused, or the answer is no; not a failure.
    pub const REFUSED: Exit = Exit(1);
    /// The command line is wrong.
    pub const USAGE: Exit = Exit(2);
    /// Held by another.
    pub const HELD: Exit = Exit(3);
    /// Not found: no session, no such thing.
    pub const NOT_FOUND: Exit = Exit(4);
    /// Lost: the claim is another's now.
    pub const LOST: Exit = Exit(5);
    /// A check failed, or identity is ambiguous or contradictory.
    pub const INVALID: Exit = Exit(6);
    /// Timed out waiting.
    pub const TIMED_OUT: Exit = Exit(7);
    /// The store is unavailable, damaged or too new.
    pub const STORE: Exit = Exit(8);
    /// Cannot tell: liveness is unknown.
    pub const CANNOT_TELL: Exit = Exit(9);
    /// Our own failure, when any other code is that of a command that we ran.
    pub const OWN_FAILURE: Exit = Exit(125);
    /// The command to run exists but cannot be executed.
    pub const COMMAND_NOT_EXECUTABLE: Exit = Exit(126);
    /// The command to run was not found.
    pub const COMMAND_NOT_FOUND: Exit = Exit(127);
    /// The command line of a hook is wrong; 2 would block the agent's tool.
    pub const HOOK_USAGE: Exit = Exit(64);
    /// An unexpected failure, panics included.
    pub const INTERNAL: Exit = Exit(70);

    /// The table, for help and docs.
    pub const TABLE: &[(Exit, &str)] = &[
        (Exit::DONE, "done"),
        (
            Exit::REFUSED,
            "refused, or the answer is no (done, already held, free, not alive); not a failure",
        ),
        (Exit::USAGE, "usage error: unknown option, malformed value"),
        (Exit::HELD, "held by another session"),
        (
            Exit::NOT_FOUND,
            "not found: no session here, or nothing by that name",
        ),
        (Exit::LOST, "lost: another session has the claim now"),
        (
            Exit::INVALID,
            "invalid: a check failed, or the session is ambiguous",
        ),
        (Exit::TIMED_OUT, "timed out waiting"),
        (Exit::STORE, "store unavailable, damaged or too new"),
        (
            Exit::CANNOT_TELL,
            "unknown: tenure cannot determine whether the session is alive",
        ),
        (Exit::INTERNAL, "unexpected failure, including a panic"),
        (
            Exit::OWN_FAILURE,
            "lock, claim and run with a command: it was not started, or it lost its claim; other codes are the command's own",
        ),
        (
            Exit::COMMAND_NOT_EXECUTABLE,
            "with CMD: it is not executable",
        ),
        (Exit::COMMAND_NOT_FOUND, "with CMD: it was not found"),
    ];

    /// The code of a class of errors.
    pub fn of(class: Class) -> Self {
        match class {
            Class::Refused => Exit::REFUSED,
            Class::Usage => Exit::USAGE,
            Class::Held => Exit::HELD,
            Class::NotFound => Exit::NOT_FOUND,
            Class::Lost => Exit::LOST,
            Class::Invalid => Exit::INVALID,
            Class::TimedOut => Exit::TIMED_OUT,
            Class::Store => Exit::STORE,
            Class::CannotTell => Exit::CANNOT_TELL,
            Class::Internal => Exit::INTERNAL,
        }
    }
}

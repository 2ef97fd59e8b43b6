//! Why something that we waited for or ran did not come to its end.

use tenure_service::answer::Problem;

#[derive(Debug)]
pub struct Unfinished {
    pub problem: Problem,
    pub by: By,
}

/// What ended it, where a surface may have a code of its own for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// What the problem says.
    Problem,
    Signal(i32),
    /// There is no such program.
    MissingProgram,
    /// The program is there and does not start.
    UnusableProgram,
}

impl<T: Into<Problem>> From<T> for Unfinished {
    fn from(problem: T) -> Self {
        Self {
            problem: problem.into(),
            by: By::Problem,
        }
    }
}

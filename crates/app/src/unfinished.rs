//! Why something that we waited for or ran did not finish.

use tenure_service::answer::Problem;

#[derive(Debug)]
pub struct Unfinished {
    pub problem: Problem,
    pub by: By,
}

/// The cause, if a surface may have a special code for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// As the problem describes.
    Problem,
    Signal(i32),
    /// There is no such program.
    MissingProgram,
    /// The program exists but does not start.
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

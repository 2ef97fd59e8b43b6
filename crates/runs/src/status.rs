//! The status of a caller, with what runs left behind.

use tenure_app::attention;
use tenure_app::open::Context;
use tenure_core::run::worktree::Record;
use tenure_service::answer::Problem;
use tenure_service::{ActFor, Answer, ListRequest, Status, WARNED_FOR};

use crate::{result, settle, worktree};

/// The status, with every warning of this machine; and the worktrees that runs left behind.
pub fn status(
    context: &mut Context,
    act_for: &ActFor,
    around: &ListRequest,
) -> Result<(Answer<Status>, Vec<Record>), Problem> {
    let mut answer = context.service().status(act_for, around)?;
    let warnings = &mut answer.value.warnings;
    if let Ok(runs) = settle::warnings(context, WARNED_FOR) {
        warnings.extend(runs);
    }
    warnings.extend(attention::warnings(context));
    let worktrees = worktree::records_left(context.dir());
    warnings.extend(worktree::warnings(&worktrees));
    warnings.extend(result::warnings(context.dir()));
    Ok((answer, worktrees))
}

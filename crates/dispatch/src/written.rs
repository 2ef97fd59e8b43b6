//! What an answer of a forge means for what was to be written there.

use tenure_forges::api::ApiError;
use tenure_service::ReplyAttempt;

/// How an attempt ended, and the error to report.
pub(super) type AttemptOutcome = (ReplyAttempt, Option<ApiError>);

pub(super) fn done() -> ReplyAttempt {
    ReplyAttempt::Said {
        comment: None,
        label: None,
        is_last: true,
    }
}

/// What an answer of the forge means for a reply.
pub(super) fn outcome(answer: Result<ReplyAttempt, ApiError>) -> AttemptOutcome {
    let error = match answer {
        Ok(written) => return (written, None),
        Err(error) => error,
    };
    let why = error.to_string();
    let written = match &error {
        ApiError::Limited { until, .. } => ReplyAttempt::Later {
            why,
            not_before: Some(*until),
        },
        // The item or the comment is gone, or the forge rejects its content.
        ApiError::NotFound { .. } => ReplyAttempt::Never(why),
        ApiError::Failed { status, .. } if (400..500).contains(status) => ReplyAttempt::Never(why),
        _ => ReplyAttempt::Later {
            why,
            not_before: None,
        },
    };
    (written, Some(error))
}

//! What an answer of a forge means for what was to be written there.

use tenure_forges::api::ApiError;
use tenure_service::Written;

/// How an attempt ended, and the error to report.
pub(super) type AttemptOutcome = (Written, Option<ApiError>);

pub(super) fn done() -> Written {
    Written::Said {
        comment: None,
        label: None,
        is_last: true,
    }
}

/// What an answer of the forge means for a reply.
pub(super) fn outcome(answer: Result<Written, ApiError>) -> AttemptOutcome {
    let error = match answer {
        Ok(written) => return (written, None),
        Err(error) => error,
    };
    let why = error.to_string();
    let written = match &error {
        ApiError::Limited { until, .. } => Written::Later {
            why,
            not_before: Some(*until),
        },
        // The item or the comment is gone, or the forge rejects its content.
        ApiError::NotFound { .. } => Written::Never(why),
        ApiError::Failed { status, .. } if (400..500).contains(status) => Written::Never(why),
        _ => Written::Later {
            why,
            not_before: None,
        },
    };
    (written, Some(error))
}

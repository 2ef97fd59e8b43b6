//! What a round of work with a forge found wrong.

use tenure_core::store::StoreError;
use tenure_forges::api::ApiError;

/// What went wrong with a forge, and what the store has that cannot be read.
#[derive(Default)]
pub(super) struct Wrong {
    pub failed: Option<String>,
    pub damaged: Option<String>,
}

impl Wrong {
    pub fn with(failed: Option<&ApiError>, damaged: Option<&StoreError>) -> Self {
        Self {
            failed: failed.map(ToString::to_string),
            damaged: damaged.map(ToString::to_string),
        }
    }

    pub fn or(self, other: Self) -> Self {
        Self {
            failed: self.failed.or(other.failed),
            damaged: self.damaged.or(other.damaged),
        }
    }
}

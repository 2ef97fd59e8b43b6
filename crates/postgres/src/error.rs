//! What an error of the server, or of the connection to it, means for a use case.

use tenure_core::store::StoreError;

use super::connection::{CALL, ConnectionLoss, ServerError};

/// The SQLSTATE of a transaction that waited for another one that waited for it.
pub(super) const DEADLOCK: &str = "40P01";

/// What a driver says that was told to find a server for writes.
pub(super) const NO_WRITES: &str = "database does not allow writes";

/// The trigger that lets only its own role change a row.
const OWN_ROW: &str = "own_row";

fn unavailable(store: &str, why: impl Into<String>) -> StoreError {
    StoreError::Unavailable {
        store: store.to_owned(),
        why: why.into(),
    }
}

/// An error of a statement, which ends its transaction.
pub(super) fn classify(store: &str, fault: &ServerError) -> StoreError {
    let named = || store.to_owned();
    match fault.code.as_str() {
        // A unique constraint, a serialization failure, a deadlock, a queued change of nothing: another was faster.
        "23505" | "40001" | DEADLOCK | "22012" => StoreError::Conflict,
        // A lock or a statement that took longer than its limit; shared memory for locks that is used up.
        "55P03" | "57014" | "53200" => StoreError::Busy { store: named() },
        "53100" => StoreError::Full { store: named() },
        "XX001" | "XX002" => StoreError::Damaged {
            store: named(),
            why: fault.message.clone(),
        },
        // A missing table or column that the schema's number promises.
        "42P01" | "42703" => StoreError::Damaged {
            store: named(),
            why: fault.message.clone(),
        },
        "25006" => unavailable(store, "it is read-only; tenure needs the primary server"),
        "42501" if fault.rule.as_deref() == Some(OWN_ROW) => StoreError::NotOwner {
            whose: fault.message.clone(),
        },
        "42501" => unavailable(
            store,
            format!("the role lacks a privilege ({})", fault.message),
        ),
        code => unavailable(store, format!("{} (SQLSTATE {code})", fault.message)),
    }
}

/// A connection that could not be opened, or that ended before COMMIT was sent: nothing was
/// changed.
pub(super) fn lost(store: &str, lost: &ConnectionLoss, connecting: bool) -> StoreError {
    let why = match lost {
        ConnectionLoss::Late if connecting => format!("it did not accept a connection within {CALL:?}"),
        ConnectionLoss::Late => "it did not answer in time; nothing was changed".to_owned(),
        ConnectionLoss::Broken { why, .. } if why.contains("statement pooling") => {
            "its pooler runs in statement mode, which allows no transactions; set pool_mode = transaction".to_owned()
        }
        ConnectionLoss::Broken { why, .. } if why.ends_with(NO_WRITES) => {
            "no server in its URL allows writes; tenure needs the primary server".to_owned()
        }
        ConnectionLoss::Broken { why, .. } if why == "password missing" => {
            "it asks for a password; set PGPASSWORD, PGPASSFILE or ?password_file=FILE".to_owned()
        }
        ConnectionLoss::Broken { why, .. } if why == "server does not support TLS" => {
            "it does not offer TLS, which sslmode in the store's URL requires".to_owned()
        }
        ConnectionLoss::Broken {
            code: Some(code),
            why,
        } if code == "53300" => format!("it has no free connection ({why})"),
        ConnectionLoss::Broken { why, .. } if connecting => why.clone(),
        ConnectionLoss::Broken { why, .. } => {
            return StoreError::Interrupted {
                store: store.to_owned(),
                why: format!("the connection broke ({why})"),
            };
        }
    };
    unavailable(store, why)
}

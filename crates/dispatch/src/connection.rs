//! The connection to a forge's API: one per forge, shared by everything that reads or writes there.
//!
//! It is shared so that a limit reported to one caller applies to all. The token is read again when
//! its file changes. While the file is unreadable for a moment, because it is being replaced, the
//! previous token stays in use.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::forge::Person;
use tenure_forges::api::{ApiError, ForgeApi};

use crate::api::connect;
use tenure_host::clock;

use tenure_runs::credential;

/// Identifies the version of a file: it changes when the file does.
type Stamp = (u64, i64, i64, u64);

pub struct Connection {
    kind: &'static str,
    url: String,
    token_file: PathBuf,
    roots: Option<Vec<u8>>,
    open: Mutex<Option<(Stamp, Arc<dyn ForgeApi>)>>,
    account: Mutex<Account>,
}

/// The account of the token, if the forge has reported it.
#[derive(Debug, Default)]
struct Account {
    told: Option<Person>,
    /// When the forge was last asked.
    asked_at: Option<Instant>,
}

/// How long to wait before asking a forge again that did not report the token's account.
const ASKS_AGAIN: Duration = Duration::from_secs(60);

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("kind", &self.kind)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(
        kind: &'static str,
        url: &str,
        token_file: PathBuf,
        roots: Option<Vec<u8>>,
    ) -> Self {
        Self {
            kind,
            url: url.to_owned(),
            token_file,
            roots,
            open: Mutex::new(None),
            account: Mutex::default(),
        }
    }

    /// The API, with the current token from its file.
    pub fn api(&self) -> Result<Arc<dyn ForgeApi>, ApiError> {
        let stamp = stamp(&self.token_file);
        let mut open = match self.open.lock() {
            Ok(open) => open,
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some((known, api)) = open.as_ref()
            && stamp.is_none_or(|stamp| stamp == *known)
        {
            return Ok(api.clone());
        }
        let token = credential::secret(&self.token_file);
        let token = match (token, open.as_ref()) {
            (Ok(token), _) => token,
            (Err(_), Some((_, api))) => return Ok(api.clone()),
            (Err(why), None) => return Err(self.no_token(why)),
        };
        let roots = self.roots.as_deref();
        let api = connect(self.kind, &self.url, &token, roots, clock::wall);
        let api = api.expect("every kind in the settings has an API");
        let api: Arc<dyn ForgeApi> = Arc::from(api);
        *self.account() = Account::default();
        *open = stamp.map(|stamp| (stamp, api.clone()));
        Ok(api)
    }

    /// The account of the token, if the forge has reported it.
    pub fn known_account(&self) -> Option<Person> {
        self.account().told.clone()
    }

    /// Asks which account the token belongs to, unless that is known or was just asked. This takes
    /// as long as the forge does.
    pub fn ask_account(&self) {
        let now = clock::instant();
        {
            let mut account = self.account();
            let is_lately = |at: Instant| now.duration_since(at) < ASKS_AGAIN;
            if account.told.is_some() || account.asked_at.is_some_and(is_lately) {
                return;
            }
            account.asked_at = Some(now);
        }
        let told = self.api().and_then(|api| api.own_account());
        *self.account() = Account {
            told: told.ok(),
            asked_at: Some(now),
        };
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn no_token(&self, why: String) -> ApiError {
        let host = self.url.clone();
        ApiError::NoToken { host, why }
    }
}

fn stamp(file: &Path) -> Option<Stamp> {
    let found = fs_err::metadata(file).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

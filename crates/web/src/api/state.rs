//! What every answer needs: where requests come from, who may send them, and the ways to the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use tenure_core::time::Timestamp;
use tenure_core::token::Scope;
use tenure_host::clock;
use tokio::sync::watch;

use super::access::{self, Access, Logins};
use super::answer::{Fault, Refusal};
use super::fleet::Following;
use super::origin::Origins;
use super::store::StoreHandle;

/// How long an answer about a wrong token takes.
const WRONG_TOKEN_TAKES: Duration = Duration::from_millis(500);

/// Everything that an answer needs.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    origins: Origins,
    store: StoreHandle,
    following: Following,
    logins: Logins,
    stopped: watch::Receiver<bool>,
    /// The user whose tokens count.
    user: String,
    location: String,
    started_at: Timestamp,
    requests: AtomicU64,
}

impl Server {
    pub fn new(
        origins: Origins,
        store: StoreHandle,
        following: Following,
        (user, location): (String, String),
        stopped: watch::Receiver<bool>,
    ) -> Self {
        Self(Arc::new(Inner {
            origins,
            store,
            following,
            logins: Logins::default(),
            stopped,
            user,
            location,
            started_at: clock::wall(),
            requests: AtomicU64::new(0),
        }))
    }

    pub fn logins(&self) -> &Logins {
        &self.0.logins
    }

    pub fn origins(&self) -> &Origins {
        &self.0.origins
    }

    pub fn store(&self) -> &StoreHandle {
        &self.0.store
    }

    pub fn following(&self) -> &Following {
        &self.0.following
    }

    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    pub fn stopped(&self) -> watch::Receiver<bool> {
        self.0.stopped.clone()
    }

    pub fn location(&self) -> &str {
        &self.0.location
    }

    pub fn started_at(&self) -> Timestamp {
        self.0.started_at
    }

    pub fn count_request(&self) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub async fn still_has(&self, access: &Access) -> bool {
        access::is_valid(&self.0.logins, &self.0.store, &self.0.user, access).await
    }

    /// Who sent a request.
    pub async fn access(&self, headers: &HeaderMap) -> Result<Access, Fault> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(given), None) = (given.next(), given.next()) else {
            return Err(Refusal::NoToken.into());
        };
        let token = given.to_str().ok().and_then(|given| {
            let (scheme, token) = given.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let found = match token {
            Some(token) => {
                access::check(&self.0.logins, &self.0.store, &self.0.user, token).await?
            }
            None => None,
        };
        match found {
            Some(access) => Ok(access),
            None => Err(wrong(Refusal::BadToken).await),
        }
    }

    pub async fn access_for(&self, headers: &HeaderMap, scope: Scope) -> Result<Access, Fault> {
        let access = self.access(headers).await?;
        if access.has(scope) {
            Ok(access)
        } else {
            Err(Refusal::ScopeNeeded(scope).into())
        }
    }
}

/// Guessing is slow.
pub async fn wrong(refusal: Refusal) -> Fault {
    tokio::time::sleep(WRONG_TOKEN_TAKES).await;
    refusal.into()
}

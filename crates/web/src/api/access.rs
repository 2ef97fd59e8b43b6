//! Who calls: a stored token, or the login of a browser.
//!
//! A login begins with a code in the address that `--open` prints: once, within a minute. The page exchanges it for a
//! token, which ends with this process or after 12 hours. Only digests are kept. *Crash*: every login is over.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::reason::Reason;
use tenure_core::time::Timestamp;
use tenure_core::token::{BROWSER, ByToken, Scope, TokenName};
use tenure_host::digest::sha256;
use tenure_host::{clock, file, random};
use tenure_service::answer::Problem;

use super::answer::Refusal;
use super::store::StoreHandle;

/// How long a code counts.
const CODE_LASTS: Duration = Duration::from_secs(60);
/// How long a login lasts.
const LOGIN_LASTS: Duration = Duration::from_secs(12 * 3600);
/// How many codes and logins there are at once. The oldest make room.
const MAX_LOGINS: usize = 64;
/// How many hexadecimal digits a code has: 128 bits.
const CODE_DIGITS: usize = 32;

/// Who calls, and what they may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    pub name: String,
    pub scopes: Vec<Scope>,
    /// When the login is over; none for a stored token.
    pub expires_at: Option<Timestamp>,
    /// The digest of its token.
    hash: String,
}

impl Access {
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    pub fn is_login(&self) -> bool {
        self.expires_at.is_some()
    }

    /// What is done in its name, for this reason.
    pub fn acts(&self, reason: Option<Reason>) -> Option<ByToken> {
        let name = TokenName::parse(&self.name).ok()?;
        Some(ByToken { name, reason })
    }
}

struct Code {
    hash: String,
    until: Instant,
    /// The page through which the browser gets it.
    file: PathBuf,
}

struct Login {
    hash: String,
    until: Instant,
    expires_at: Timestamp,
}

/// The codes and logins of this process.
#[derive(Default)]
pub struct Logins(Mutex<LoginTable>);

#[derive(Default)]
struct LoginTable {
    codes: Vec<Code>,
    logins: Vec<Login>,
}

impl LoginTable {
    fn tidy(&mut self) {
        let now = clock::instant();
        self.codes.retain(|code| code.is_kept(now));
        self.logins.retain(|login| login.until > now);
        let over = self.logins.len().saturating_sub(MAX_LOGINS);
        self.logins.drain(..over);
    }
}

impl Code {
    fn is_kept(&self, now: Instant) -> bool {
        let is_kept = self.until > now;
        if !is_kept {
            self.forget();
        }
        is_kept
    }

    fn forget(&self) {
        if file::remove(&self.file).is_err() {
            // Its code is worthless by now.
        }
    }
}

impl Logins {
    fn known(&self) -> MutexGuard<'_, LoginTable> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.tidy();
        known
    }

    /// Makes a code. `write` makes the file through which the browser gets it.
    pub fn invite(
        &self,
        write: impl FnOnce(&str) -> std::io::Result<PathBuf>,
    ) -> std::io::Result<(String, PathBuf)> {
        let mut code = random::secret()?;
        code.truncate(CODE_DIGITS);
        let file = write(&code)?;
        let mut known = self.known();
        while known.codes.len() >= MAX_LOGINS {
            known.codes.remove(0).forget();
        }
        known.codes.push(Code {
            hash: sha256(code.as_bytes()),
            until: clock::instant() + CODE_LASTS,
            file: file.clone(),
        });
        Ok((code, file))
    }

    /// Exchanges a code for a token, once.
    pub fn exchange(&self, code: &str) -> Result<(String, Access), Refusal> {
        let hash = sha256(code.as_bytes());
        let mut known = self.known();
        let found = known.codes.iter().position(|one| one.hash == hash);
        let found = found.ok_or(Refusal::BadCode)?;
        known.codes.remove(found).forget();
        let token = random::secret().map_err(|_| Refusal::BadCode)?;
        let login = Login {
            hash: sha256(token.as_bytes()),
            until: clock::instant() + LOGIN_LASTS,
            expires_at: clock::wall().plus(LOGIN_LASTS),
        };
        let access = login.access();
        known.logins.push(login);
        Ok((token, access))
    }

    fn login(&self, hash: &str) -> Option<Access> {
        let known = self.known();
        let found = known.logins.iter().find(|login| login.hash == hash);
        found.map(Login::access)
    }

    /// Ends a login.
    pub fn end(&self, access: &Access) {
        self.known()
            .logins
            .retain(|login| login.hash != access.hash);
    }

    /// Removes the files of codes that nobody used.
    pub fn close(&self) {
        self.known().codes.drain(..).for_each(|code| code.forget());
    }
}

impl Login {
    /// A browser of the person who started this server may do everything.
    fn access(&self) -> Access {
        Access {
            name: BROWSER.to_owned(),
            scopes: Scope::ALL.to_vec(),
            expires_at: Some(self.expires_at),
            hash: self.hash.clone(),
        }
    }
}

/// The access that a token gives; none if it gives none.
pub async fn check(
    logins: &Logins,
    store: &StoreHandle,
    user: &str,
    token: &str,
) -> Result<Option<Access>, Problem> {
    let hash = sha256(token.as_bytes());
    match TokenName::of_text(token) {
        None => Ok(logins.login(&hash)),
        Some(name) => stored(store, user, name, hash).await,
    }
}

/// Whether it still gives access.
pub async fn is_valid(logins: &Logins, store: &StoreHandle, user: &str, access: &Access) -> bool {
    if access.is_login() {
        return logins.login(&access.hash).is_some();
    }
    let Ok(name) = TokenName::parse(&access.name) else {
        return false;
    };
    let found = stored(store, user, name, access.hash.clone()).await;
    match found {
        Ok(found) => found.as_ref() == Some(access),
        // While the store is away, nothing is known to have changed.
        Err(_) => true,
    }
}

async fn stored(
    store: &StoreHandle,
    user: &str,
    name: TokenName,
    hash: String,
) -> Result<Option<Access>, Problem> {
    let user = user.to_owned();
    let found = store
        .ask(move |context| {
            let found = context.service().check_token(&user, &name, &hash)?.value;
            Ok(found.map(|token| Access {
                name: token.name,
                scopes: token.scopes,
                expires_at: None,
                hash,
            }))
        })
        .await?;
    Ok(found)
}

//! The checked forges and repositories of the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::forge::Person;
use tenure_core::spelling;
use tenure_forges::api::count_roots;
use tenure_forges::{FORGES, Forge, Secret, forge};
use tenure_host::git::{self, Worktree};
use tenure_host::git_process::is_fetched;

use super::connection::Connection;
use super::document::{Document, Section};
use super::init::PLACEHOLDER;
use super::raw::{RawForge, RawRepo};
use super::reading::Reading;
use tenure_runs::roots;

/// A forge, and the secrets that tenure shares with it.
#[derive(Debug, Clone)]
pub struct ForgeConfig {
    /// Its webhooks arrive at `/hooks/NAME`.
    pub name: String,
    pub row: &'static Forge,
    /// One or two.
    pub secrets: Vec<Secret>,
    /// The URL of the forge.
    pub url: Option<String>,
    /// The connection to its API; none without a URL and a token.
    pub connection: Option<Arc<Connection>>,
    pub token_file: Option<PathBuf>,
    pub secret_files: Vec<PathBuf>,
    /// The certificates to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Accounts of programs, if the forge does not mark them: logins, or `id:NUMBER`.
    pub bots: Vec<String>,
    /// The account that the token belongs to.
    pub own_account: Option<String>,
    /// The line of its section.
    pub line: usize,
}

impl ForgeConfig {
    /// Whether it has an API that tenure can use.
    pub fn has_api(&self) -> bool {
        self.connection.is_some()
    }

    /// The account that tenure writes as. It has an id once the forge has reported it, because an
    /// account keeps its id when it is renamed.
    pub fn own(&self) -> Option<Person> {
        let known = self.connection.as_ref();
        let known = known.and_then(|connection| connection.known_account());
        known.or_else(|| self.own_account.as_deref().map(Person::named))
    }
}

/// A repository, and where its code is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoConfig {
    /// The canonical name.
    pub name: String,
    pub forge: String,
    /// Where it is fetched from and pushed to; without credentials.
    pub url: String,
    /// Its public address at the forge, as agents are shown it.
    pub origin: String,
    /// Whether its own settings and skills may instruct an agent.
    pub trusted: bool,
    pub concurrency: Option<u32>,
    /// The file with the token that results are pushed with; the forge's token if there is none.
    pub push_credential: Option<PathBuf>,
}

/// Whether a token that is sent to a URL stays secret: over TLS, or on this machine.
pub(super) fn is_secure(url: &str) -> bool {
    let is_local = ["http://127.0.0.1", "http://localhost", "http://[::1]"]
        .iter()
        .any(|local| {
            url.strip_prefix(local)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
        });
    url.starts_with("https://") || is_local
}

fn has_certificates(file: &Path) -> Result<(), String> {
    let pem = roots::of(file).map_err(|error| error.to_string())?;
    match count_roots(&pem) {
        Some(_) => Ok(()),
        None => Err(format!("{} has no certificate in PEM", file.display())),
    }
}

/// A repository with its worktree on this machine.
pub(super) struct RepoCheckout {
    pub end: RepoConfig,
    pub worktree: Option<Worktree>,
}

impl Reading<'_> {
    pub fn forge(&mut self, name: &str, section: &Section<'_>) -> Option<ForgeConfig> {
        let raw: RawForge = section.read(&mut self.faults)?;
        let plain =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
        if name.is_empty() || name.len() > 32 || !name.bytes().all(plain) {
            let why = "its name is part of a URL; use at most 32 of a-z, 0-9, - and _";
            self.faults.push(section.fault("", why));
        }
        let row = forge(&raw.kind);
        if row.is_none() {
            let kinds: Vec<&str> = FORGES.iter().map(|forge| forge.kind).collect();
            let why = format!(
                "{} is unknown; expected one of {}",
                raw.kind,
                kinds.join(", ")
            );
            self.faults.push(section.fault("kind", why));
        }
        if !(1..=2).contains(&raw.secret_files.len()) {
            let why = "expected one file, or two while a secret is being replaced";
            self.faults.push(section.fault("secret_files", why));
        }
        let secrets = raw.secret_files.iter();
        let secrets: Vec<Secret> = secrets
            .filter_map(|file| self.secret(section, "secret_files", file))
            .collect();
        self.api(section, &raw);
        let is_wrong = |bot: &String| bot.trim().is_empty() || bot.starts_with('@');
        if raw.bots.iter().any(is_wrong) {
            let why = "expected logins without @, or id:NUMBER";
            self.faults.push(section.fault("bots", why));
        }
        let connection = row.and_then(|row| self.connection(section, &raw, row.kind));
        Some(ForgeConfig {
            name: name.to_owned(),
            row: row?,
            secrets,
            url: raw.url.map(|url| url.trim_end_matches('/').to_owned()),
            connection,
            token_file: raw.token_file.as_deref().map(|file| self.path(file)),
            secret_files: raw
                .secret_files
                .iter()
                .map(|file| self.path(file))
                .collect(),
            ca_file: raw.ca_file.as_deref().map(|file| self.path(file)),
            bots: raw.bots,
            own_account: raw.own_account,
            line: section.line(""),
        })
    }

    /// Reads the token and the certificates once, to check that they are readable.
    fn connection(
        &mut self,
        section: &Section<'_>,
        raw: &RawForge,
        kind: &'static str,
    ) -> Option<Arc<Connection>> {
        let ca_file = raw.ca_file.as_deref().map(|file| self.path(file));
        if let Some(file) = &ca_file
            && let Err(why) = has_certificates(file)
        {
            self.faults.push(section.fault("ca_file", why));
        }
        let file = raw.token_file.as_deref()?;
        self.secret(section, "token_file", file)?;
        let url = raw.url.as_deref()?.trim_end_matches('/');
        let roots = roots::for_forge(url, ca_file.as_deref());
        let token_file = self.path(file);
        Some(Arc::new(Connection::new(kind, url, token_file, roots)))
    }

    /// Checks that URL, token and account are set together.
    fn api(&mut self, section: &Section<'_>, raw: &RawForge) {
        if raw.url.as_ref().is_some_and(|url| !is_secure(url)) {
            let why =
                "expected an address that begins with https://, so that the token stays secret";
            self.faults.push(section.fault("url", why));
        }
        match (&raw.url, &raw.token_file) {
            (Some(_), None) => {
                let why = "it is missing, but url needs it";
                self.faults.push(section.fault("token_file", why));
            }
            (None, Some(_)) => {
                let why = "it is missing, but token_file needs it";
                self.faults.push(section.fault("url", why));
            }
            _ => {}
        }
        let own = raw.own_account.as_deref().unwrap_or_default();
        if raw.token_file.is_some() && own.trim().is_empty() {
            let why = "name the account of the token, so that what it writes starts no run";
            self.faults.push(section.fault("own_account", why));
        }
    }

    pub fn repo(
        &mut self,
        name: &str,
        section: &Section<'_>,
        document: &Document<'_>,
        forges: &[ForgeConfig],
    ) -> Option<RepoCheckout> {
        let raw: RawRepo = section.read(&mut self.faults)?;
        let plain = spelling::repository_name(name.trim());
        let is_blank = name.trim() == PLACEHOLDER;
        if is_blank || plain.starts_with('/') || plain.split('/').count() < 2 {
            let why = "expected the owner and name that it has on the forge, such as acme/web";
            self.faults.push(section.fault("", why));
        }
        if !document.forges.iter().any(|(forge, _)| *forge == raw.forge) {
            let why = format!("there is no [forge.{}]", raw.forge);
            self.faults.push(section.fault("forge", why));
        }
        if let Some(most) = raw.concurrency {
            self.at_least_one(section, "concurrency", most);
        }
        if let Some(file) = &raw.push_credential {
            self.secret(section, "push_credential", file);
        }
        let dir = raw.dir.as_deref().filter(|dir| !dir.is_empty());
        let dir = dir.map(|dir| self.path(dir));
        let worktree = dir.as_deref().and_then(git::worktree);
        if let Some(dir) = dir.filter(|_| worktree.is_none()) {
            let why = format!("{} is not in a git repository", dir.display());
            self.faults.push(section.fault("dir", why));
        }
        let forge = forges.iter().find(|forge| forge.name == raw.forge);
        let public = forge.and_then(|forge| forge.clone_url(&plain));
        let url = self.url_of(section, &raw, worktree.as_ref(), public.as_deref());
        let end = RepoConfig {
            name: plain,
            forge: raw.forge,
            origin: public.unwrap_or_else(|| url.clone()),
            url,
            trusted: raw.trusted,
            concurrency: raw.concurrency,
            push_credential: raw.push_credential.as_deref().map(|file| self.path(file)),
        };
        Some(RepoCheckout { end, worktree })
    }

    /// Where a repository is fetched from: as the file says, or as its clone does, or from the forge.
    fn url_of(
        &mut self,
        section: &Section<'_>,
        raw: &RawRepo,
        clone: Option<&Worktree>,
        public: Option<&str>,
    ) -> String {
        let of_clone = || git::remote_address(&clone?.common_dir);
        let (key, url) = match (&raw.url, &raw.dir) {
            (Some(url), _) => ("url", Some(self.address(url))),
            (None, Some(_)) => ("dir", of_clone().or_else(|| public.map(str::to_owned))),
            (None, None) => ("url", public.map(str::to_owned)),
        };
        let url = url.unwrap_or_default();
        let why = if url.is_empty() {
            "it is missing; name the address of the repository, or set url of its forge"
        } else if url.split_once("://").is_some_and(|(_, rest)| {
            let server = rest.split('/').next().unwrap_or_default();
            server
                .split_once('@')
                .is_some_and(|(user, _)| user.contains(':'))
        }) {
            "it has a password, which others could read; use token_file of its forge, or ssh"
        } else if !is_fetched(&url) {
            "expected an address of https, http, ssh or git, or an absolute path"
        } else {
            return url;
        };
        self.faults.push(section.fault(key, why.to_owned()));
        url
    }

    /// An address as git takes it: a path is made absolute.
    fn address(&self, text: &str) -> String {
        let before_slash = text.split('/').next().unwrap_or_default();
        if text.is_empty() || before_slash.contains(':') {
            return text.to_owned();
        }
        self.path(text).to_string_lossy().into_owned()
    }
}

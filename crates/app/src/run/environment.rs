//! The environment that an agent is started with.
//!
//! A run that a person starts gets that person's variables, without those by which agents mark what they start
//! ([`tenure_agents::MARKS`]) and without ours. A run that the dispatcher starts gets a list: what programs need to
//! work at all, what the agent's row asks for, and what a rule names; so no secret of the dispatcher gets in by
//! accident. Both get a directory for temporary files of their own, because agents leave conversations there
//! for all to read. Text from outside is never put into a variable.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use tenure_agents::MARKS;
use tenure_agents::run::SET_FOR_EVERY_RUN;
use tenure_host::caller::SESSION_VARIABLE;
use tenure_host::file;

/// The run that a process belongs to.
pub const RUN_VARIABLE: &str = "TENURE_RUN";

/// Where the directories for temporary files are, in the state directory.
const TEMPORARY: &str = "tmp";

/// The variables of a process.
pub type Variables = BTreeMap<OsString, OsString>;

/// Variables that a dispatched run gets from the dispatcher; `*` stands for the rest of a name.
const PASSED: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    // Proxies.
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    // Certificates.
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// What is different about an agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentRow<'a> {
    /// Its keys and directories, which a dispatched run needs; `*` stands for the rest of a name.
    pub passed: &'a [&'a str],
    /// What makes it quiet, or keeps it from what the repository says.
    pub set: &'a [(&'a str, &'a str)],
}

/// What is different about a run.
#[derive(Debug, Clone, Copy)]
pub struct OwnRow<'a> {
    pub run: &'a str,
    pub temporary: &'a Path,
    /// The state directory, and the store where it is elsewhere.
    pub state: &'a Path,
    pub store: Option<&'a str>,
}

/// Who starts a run.
#[derive(Debug, Clone, Copy)]
pub enum StartedBy<'a> {
    Person,
    /// The dispatcher, with what the rule names.
    Dispatcher(&'a Variables),
}

/// The environment of a run, made of the one that its starter has.
pub fn made(
    by: StartedBy<'_>,
    theirs: &Variables,
    agent: &AgentRow<'_>,
    own: &OwnRow<'_>,
) -> Variables {
    let mut all: Variables = match by {
        StartedBy::Person => kept(theirs, |name| {
            !is_in(name, MARKS) && name != SESSION_VARIABLE
        }),
        StartedBy::Dispatcher(rule) => {
            let mut list = kept(theirs, |name| {
                let is_listed = is_in(name, PASSED) || is_in(name, agent.passed);
                is_listed && !is_in(name, MARKS)
            });
            list.insert("TERM".into(), "dumb".into());
            list.extend(rule.clone());
            list
        }
    };
    let mut set = |name: &str, value: &OsStr| all.insert(name.into(), value.to_owned());
    for (name, value) in SET_FOR_EVERY_RUN.iter().chain(agent.set) {
        set(name, value.as_ref());
    }
    set("TMPDIR", own.temporary.as_os_str());
    set("TENURE_HOME", own.state.as_os_str());
    if let Some(store) = own.store {
        set("TENURE_STORE", store.as_ref());
    }
    set(RUN_VARIABLE, own.run.as_ref());
    all
}

fn kept(theirs: &Variables, stays: impl Fn(&str) -> bool) -> Variables {
    // A name that is not text is none of ours and none of an agent's.
    let stays = |name: &OsStr| stays(&name.to_string_lossy());
    let own = theirs.iter().filter(|(name, _)| stays(name));
    own.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn is_in(name: &str, list: &[&str]) -> bool {
    list.iter().any(|known| match known.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == *known,
    })
}

/// The variables of this process.
pub fn here() -> Variables {
    tenure_host::env::all().collect()
}

/// Makes the directory for a run's temporary files, 0700, in the state directory.
pub fn make_temporary(state: &Path, run: &str) -> io::Result<PathBuf> {
    let dir = state.join(TEMPORARY).join(run);
    file::make_dirs(&dir)?;
    fs_err::canonicalize(dir)
}

/// Removes it with all that is in it; it may be gone already.
pub fn remove_temporary(state: &Path, run: &str) -> io::Result<()> {
    match fs_err::remove_dir_all(state.join(TEMPORARY).join(run)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

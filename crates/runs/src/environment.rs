//! The environment that an agent is started with.
//!
//! A run that a person starts gets that person's variables, without those by which agents mark
//! their child processes ([`tenure_agents::MARKS`]) and without ours. A run that the dispatcher
//! starts gets only listed variables: those that programs need to work at all, those in the agent's
//! row, and those that a rule names. So no secret of the dispatcher is passed on by accident. Under a
//! wrap it gets less: nothing that names a file or a key of this user. Otherwise runs
//! get their own directory for temporary files, because agents leave conversations there that
//! others could read. Text from outside is never put into a variable.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use tenure_agents::MARKS;
use tenure_agents::run::SET_FOR_EVERY_RUN;
use tenure_host::caller::{RUN_VARIABLE, SESSION_VARIABLE};
use tenure_host::file;

/// The directory of all temporary directories, in the state directory.
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

/// Variables that a run under a wrap gets: nothing that tells about this user.
const PASSED_TO_WRAP: &[&str] = &["LANG", "LANGUAGE", "LC_*", "PATH", "SHELL", "TZ"];

/// What differs between agents.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentRow<'a> {
    /// Its keys and directories, which a dispatched run needs; `*` stands for the rest of a name.
    pub passed: &'a [&'a str],
    /// Variables that silence it, or keep it from following the repository's instructions.
    pub set: &'a [(&'a str, &'a str)],
}

/// What differs between runs.
#[derive(Debug, Clone, Copy)]
pub struct OwnRow<'a> {
    pub run: &'a str,
    pub temporary: &'a Path,
    /// The state directory, and the store if it is elsewhere.
    pub state: &'a Path,
    pub store: Option<&'a str>,
}

/// Who starts a run.
#[derive(Debug, Clone, Copy)]
pub enum StartedBy<'a> {
    Person,
    /// The dispatcher, with the variables that the rule names.
    Dispatcher(&'a Variables),
    /// The same, under a wrap, with this home. Keys and proxies come from the rule or the wrap.
    Wrap {
        rule: &'a Variables,
        home: &'a Path,
    },
}

/// The environment of a run, made from the starter's.
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
        StartedBy::Wrap { rule, home } => {
            let mut list = kept(theirs, |name| is_in(name, PASSED_TO_WRAP));
            list.insert("TERM".into(), "dumb".into());
            list.insert("HOME".into(), home.into());
            list.extend(rule.clone());
            list
        }
    };
    let mut set = |name: &str, value: &OsStr| all.insert(name.into(), value.to_owned());
    for (name, value) in SET_FOR_EVERY_RUN.iter().chain(agent.set) {
        set(name, value.as_ref());
    }
    if !matches!(by, StartedBy::Wrap { .. }) {
        set("TMPDIR", own.temporary.as_os_str());
        set("TENURE_HOME", own.state.as_os_str());
        if let Some(store) = own.store {
            set("TENURE_STORE", store.as_ref());
        }
    }
    set(RUN_VARIABLE, own.run.as_ref());
    all
}

/// `NAME=VALUE` of what a run sets itself, for `env` inside a wrap that clears the environment. None of it is secret;
/// what the rule names may be.
pub fn set_inside(all: &Variables, rule: &Variables) -> Vec<OsString> {
    let is_ours = |name: &&OsString| {
        let text = name.to_string_lossy();
        text != "HOME" && !is_in(&text, PASSED_TO_WRAP) && !rule.contains_key(*name)
    };
    let own = all.iter().filter(|(name, _)| is_ours(name));
    own.map(|(name, value)| {
        let mut word = name.clone();
        word.push("=");
        word.push(value);
        word
    })
    .collect()
}

fn kept(theirs: &Variables, stays: impl Fn(&str) -> bool) -> Variables {
    // A name that is not UTF-8 is neither ours nor an agent's.
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

/// Creates the directory for a run's temporary files in the state directory, with mode 0700.
pub fn make_temporary(state: &Path, run: &str) -> io::Result<PathBuf> {
    let dir = state.join(TEMPORARY).join(run);
    file::make_dirs(&dir)?;
    fs_err::canonicalize(dir)
}

/// Removes it with its contents; a missing one is not an error.
pub fn remove_temporary(state: &Path, run: &str) -> io::Result<()> {
    match fs_err::remove_dir_all(state.join(TEMPORARY).join(run)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

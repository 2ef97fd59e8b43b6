//! Builds every git process that tenure starts; a structure test refuses any other.
//!
//! A repository's settings can name programs. The ones with a fixed name are pinned here, hooks and background
//! work are off, git's own check of the directory's owner applies, nobody is prompted, missing objects are not
//! fetched, and no protocol is allowed except the one that was asked for. Settings with a name that their author
//! chose (filters, drivers, includes, rewritten URLs) cannot be pinned: a repository that the user does not trust
//! may not have any, see [`foreign_setting`]. *Limit*: a process that changes the settings after that check and
//! before git reads them is not noticed. A repository that an agent writes without the user's trust is never opened
//! at all: the dispatcher has repositories of its own (`GitLocation::Own`), whose git sees no settings but ours.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variables that point git to a repository other than the named one
/// (`git rev-parse --local-env-vars`), or to a program.
const REMOVED_VARIABLES: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
    "SSH_ASKPASS",
];

/// Variables that git takes instead of settings. `:` is a command that does nothing.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_ASKPASS", ""),
    ("GIT_EDITOR", ":"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_PROXY_COMMAND", ""),
    ("GIT_SEQUENCE_EDITOR", ":"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LC_ALL", "C"),
];

/// Settings for every git: no hooks, no background work, no programs of the repository's choice.
const SETTINGS: &[&str] = &[
    "advice.detachedHead=false",
    "commit.gpgSign=false",
    "core.alternateRefsCommand=:",
    "core.askPass=",
    "core.editor=:",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "diff.external=",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "gpg.openpgp.program=:",
    "gpg.program=:",
    "gpg.ssh.defaultKeyCommand=",
    "gpg.ssh.program=:",
    "gpg.x509.program=:",
    "interactive.diffFilter=cat",
    "log.showSignature=false",
    "maintenance.auto=false",
    "merge.verifySignatures=false",
    "sequence.editor=:",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
];

/// The whole environment of git in a repository of tenure's own, besides [`VARIABLES`] and the path: no settings of
/// the user or the machine, and no home, whose files curl and git would read.
const OWN_VARIABLES: &[(&str, &str)] = &[
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("HOME", "/nonexistent"),
];

/// What the user's environment says about servers; passed on only for transfers.
const NETWORK_VARIABLES: &[&str] = &[
    "ALL_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// The programs that git uses to reach a server.
pub(crate) const SSH_COMMAND: &str = "core.sshCommand";
pub(crate) const CREDENTIAL_HELPER: &str = "credential.helper";

/// Names the file with the certificates that a server may prove itself with.
pub(crate) const BELIEVED: &str = ".sslCAInfo=";

/// Where git runs.
#[derive(Debug, Clone)]
pub(crate) enum GitLocation {
    /// The directory that all worktrees of a repository share.
    Repository(PathBuf),
    Worktree(PathBuf),
    /// A bare repository that tenure made and that no agent can write. Git gets an environment that is made.
    Own(PathBuf),
    /// In no repository: only the settings of the user and the machine apply.
    Nowhere,
}

/// What a git command may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Files of this machine only.
    Local,
    /// Servers, by these protocols.
    Remote {
        protocols: String,
        /// Whether objects that a partial clone left out are fetched too.
        missing_objects: bool,
        /// Settings that replace the repository's programs for this.
        programs: Vec<String>,
    },
}

/// Git, without a command yet. This is the only place that starts it.
pub(crate) fn command(place: &GitLocation, reach: &Reach, settings: &[String]) -> Command {
    let mut command = Command::new("git");
    for variable in REMOVED_VARIABLES {
        command.env_remove(variable);
    }
    if matches!(place, GitLocation::Own(_)) {
        make_environment(&mut command, reach);
    }
    command.envs(VARIABLES.iter().copied()).stdin(Stdio::null());
    match place {
        // Found by git itself, which checks the owner; `--git-dir` would skip that.
        GitLocation::Repository(dir) => {
            command.arg("-C").arg(dir).env(CEILING, above(dir));
            // A repository that the caller named is not one that was stumbled upon.
            command.args(["-c", "safe.bareRepository=all"]);
        }
        GitLocation::Worktree(root) => {
            command.arg("-C").arg(root).env(CEILING, above(root));
        }
        GitLocation::Own(dir) => {
            let mut named = OsString::from("--git-dir=");
            named.push(dir);
            command.current_dir("/").arg(named);
        }
        GitLocation::Nowhere => {
            command.current_dir("/").env("GIT_DIR", "/dev/null");
        }
    }
    let mut own = Vec::new();
    let (protocols, lazy) = match reach {
        Reach::Local => {
            own.extend([format!("{SSH_COMMAND}=:"), format!("{CREDENTIAL_HELPER}=")]);
            ("", false)
        }
        Reach::Remote {
            protocols,
            missing_objects,
            programs,
        } => {
            own.extend_from_slice(programs);
            (protocols.as_str(), *missing_objects)
        }
    };
    command
        .env("GIT_ALLOW_PROTOCOL", protocols)
        .env("GIT_NO_LAZY_FETCH", if lazy { "0" } else { "1" });
    if settings.iter().any(|own| own.contains(BELIEVED)) {
        // It would be used instead of the setting.
        command.env_remove("GIT_SSL_CAINFO");
    }
    let own = own.iter().chain(settings).map(String::as_str);
    for setting in SETTINGS.iter().copied().chain(own) {
        command.args(["-c", setting]);
    }
    command
}

fn make_environment(command: &mut Command, reach: &Reach) {
    command.env_clear().envs(OWN_VARIABLES.iter().copied());
    let passed: &[&str] = match reach {
        Reach::Local => &[],
        Reach::Remote { .. } => NETWORK_VARIABLES,
    };
    let passed = passed.iter().copied().chain(["PATH"]);
    command.envs(passed.filter_map(|name| Some((name, crate::env::var(name)?))));
}

/// Git looks for a repository in no directory above the named one.
const CEILING: &str = "GIT_CEILING_DIRECTORIES";

fn above(dir: &Path) -> OsString {
    let parent = dir.parent().map(Path::as_os_str);
    parent.unwrap_or(OsStr::new("/")).to_owned()
}

/// The protocols that git needs for a URL, as `GIT_ALLOW_PROTOCOL` takes them; none for one that names a
/// program of its own.
pub(crate) fn protocols(url: &str) -> Option<&'static str> {
    if let Some((scheme, _)) = url.split_once("://") {
        return match scheme.to_ascii_lowercase().as_str() {
            "https" => Some("https"),
            // A server may send its visitors to https.
            "http" => Some("http:https"),
            "ssh" | "git+ssh" | "ssh+git" => Some("ssh"),
            "git" => Some("git"),
            "file" => Some("file"),
            _ => None,
        };
    }
    let before_slash = url.split('/').next().unwrap_or_default();
    match before_slash.split_once(':') {
        Some((_, path)) if path.starts_with(':') => None,
        Some(_) => Some("ssh"),
        None => Some("file"),
    }
}

/// Whether tenure fetches from a URL.
pub fn is_fetched(url: &str) -> bool {
    let is_relative =
        protocols(url) == Some("file") && !url.starts_with('/') && !url.contains("://");
    protocols(url).is_some() && !is_relative && !url.starts_with('-')
}

/// The longest settings file of a repository that is not trusted.
const MAX_LENGTH: u64 = 1 << 20;

/// Settings below `core` that name no program, or one that is pinned here.
const PLAIN_CORE: &[&str] = &[
    "abbrev",
    "alternaterefscommand",
    "askpass",
    "attributesfile",
    "autocrlf",
    "bare",
    "bigfilethreshold",
    "checkstat",
    "commentchar",
    "compression",
    "createobject",
    "deltabasecachelimit",
    "editor",
    "eol",
    "excludesfile",
    "filemode",
    "filesreflocktimeout",
    "fsmonitor",
    "fsync",
    "fsyncmethod",
    "fsyncobjectfiles",
    "gitproxy",
    "hidedotfiles",
    "hookspath",
    "ignorecase",
    "ignorestat",
    "logallrefupdates",
    "longpaths",
    "loosecompression",
    "multipackindex",
    "notesref",
    "packedgitlimit",
    "packedgitwindowsize",
    "packedrefstimeout",
    "pager",
    "precomposeunicode",
    "prefersymlinkrefs",
    "preloadindex",
    "protecthfs",
    "protectntfs",
    "quotepath",
    "repositoryformatversion",
    "safecrlf",
    "sharedrepository",
    "sparsecheckout",
    "sparsecheckoutcone",
    "splitindex",
    "sshcommand",
    "symlinks",
    "trustctime",
    "untrackedcache",
    "warnambiguousrefs",
    "whitespace",
    "worktree",
];

/// Whether a setting, as git lists it, names no program or one that is pinned here.
fn is_plain(name: &str) -> bool {
    let (Some((section, _)), Some((_, key))) = (name.split_once('.'), name.rsplit_once('.')) else {
        return false;
    };
    let has_subsection = section.len() + 1 + key.len() != name.len();
    match section {
        "core" => !has_subsection && PLAIN_CORE.contains(&key),
        "remote" => has_subsection && matches!(key, "url" | "fetch"),
        "branch" => true,
        "user" => !has_subsection,
        _ => false,
    }
}

/// The first setting of a repository's own file that may name a program with a name of its author's choice.
///
/// The file is read by git, without its includes and outside the repository, so that both read the same.
pub fn foreign_setting(common_dir: &Path) -> io::Result<Option<String>> {
    let file = common_dir.join("config");
    // Git would wait for a pipe.
    if let Err(error) = crate::read::whole(&file, MAX_LENGTH) {
        return if crate::read::is_absent(&error) {
            Ok(None)
        } else {
            Err(error)
        };
    }
    let output = command(&GitLocation::Nowhere, &Reach::Local, &[])
        .args(["config", "--no-includes", "--null", "--list", "--file"])
        .arg(&file)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(said));
    }
    let entries = output.stdout.split(|byte| *byte == 0);
    let names = entries.filter_map(|entry| entry.split(|byte| *byte == b'\n').next());
    let names = names.filter(|name| !name.is_empty());
    let foreign = names.map(String::from_utf8_lossy);
    let foreign = foreign.into_iter().find(|name| !is_plain(name));
    Ok(foreign.map(std::borrow::Cow::into_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_needs_its_own_protocol_and_no_other() {
        for (url, expected) in [
            ("https://github.com/acme/web", Some("https")),
            ("HTTP://github.com/acme/web", Some("http:https")),
            ("ssh://git@github.com/acme/web", Some("ssh")),
            ("git@github.com:acme/web", Some("ssh")),
            ("github-work:acme/web", Some("ssh")),
            ("git://host/acme/web", Some("git")),
            ("/srv/acme/web.git", Some("file")),
            ("../a:b", Some("file")),
            ("file:///srv/web", Some("file")),
            ("ext::sh -c evil", None),
            ("ext::https://x", None),
            ("persistent-https://x/y", None),
        ] {
            assert_eq!(protocols(url), expected, "{url}");
        }
    }

    #[test]
    fn settings_that_may_name_a_program_are_foreign() {
        for name in [
            "core.bare",
            "core.sshcommand",
            "core.hookspath",
            "remote.origin.url",
            "remote.a.b.fetch",
            "branch.main.merge",
            "branch.a.b.remote",
            "user.email",
        ] {
            assert!(is_plain(name), "{name}");
        }
        for name in [
            "core.newcommand",
            "core.x.bare",
            "remote.origin.uploadpack",
            "remote.origin.vcs",
            "remote.origin.proxy",
            "remote.origin.promisor",
            "remote.url",
            "filter.lfs.process",
            "diff.d.textconv",
            "merge.m.driver",
            "include.path",
            "includeif.gitdir:x.path",
            "url.x.insteadof",
            "http.proxy",
            "credential.helper",
            "extensions.worktreeconfig",
            "extensions.partialclone",
            "protocol.ext.allow",
            "alias.x",
            "hook.x.command",
            "user.x.y",
            "core",
            "",
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn the_first_foreign_setting_of_a_repository_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        let ask = |text: &[u8]| {
            fs_err::write(&file, text).unwrap();
            foreign_setting(dir.path())
        };
        assert_eq!(foreign_setting(dir.path()).unwrap(), None, "no file");
        let plain = b"[core]\nbare = false\n[remote \"x\"]\nurl = a\n# [filter]\n";
        assert_eq!(ask(plain).unwrap(), None);
        let foreign = b"[core]\nbare = false\n[Filter \"LFS\"] Process = x\n[include]\npath = y\n";
        assert_eq!(ask(foreign).unwrap().as_deref(), Some("filter.LFS.process"));
        assert_eq!(
            ask(b"[user]\nname = \xff\n[alias]\nx\n")
                .unwrap()
                .as_deref(),
            Some("alias.x")
        );
        assert!(ask(b"[core\n").is_err(), "git cannot read it");
        assert!(ask(&vec![b'#'; 2 << 20]).is_err(), "too long");
    }
}

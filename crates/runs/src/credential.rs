//! How git gets a token: from a tenure command that reads it from its file.
//!
//! A git setting contains the name of the file; the token itself goes through the pipe between git
//! and the command. So it is in no URL, no command line, no environment and no file of git's. Other
//! credential helpers are disabled, because git would give them the token to store.

use std::io;
use std::path::Path;

use tenure_core::queue::code::{Credential, JobCode};
use tenure_core::text;
use tenure_host::{env, git_command};
use tenure_service::answer::{Class, Hint, Problem};

use tenure_app::private_file;
use tenure_forges::Secret;

/// The verb of the command.
pub const VERB: &str = "__credential";
/// The action with which git asks for a credential; other actions report whether one was right.
const GET: &str = "get";

/// The secret in a file that no one else can read, without surrounding white space.
pub fn secret(path: &Path) -> Result<Secret, String> {
    let empty = || format!("{} is empty", path.display());
    Secret::new(private_file::bytes(path)?).ok_or_else(empty)
}

/// Settings that make git use this credential, only for addresses on this server.
pub fn settings(server: &str, credential: &Credential) -> io::Result<Vec<String>> {
    let name = setting(server);
    let program = program(credential)?;
    Ok(vec![format!("{name}="), format!("{name}={program}")])
}

/// The setting that names git's credential helpers.
pub fn setting(server: &str) -> String {
    format!("credential.{server}.helper")
}

/// The command as git starts it, through a shell.
pub fn program(credential: &Credential) -> io::Result<String> {
    let program = env::program()?;
    let words = [
        &*program.to_string_lossy(),
        VERB,
        "--user",
        &credential.user,
        "--file",
        &credential.file,
    ]
    .map(text::shell);
    Ok(format!("!{}", words.join(" ")))
}

/// Whether a credential helper is ours.
pub fn is_ours(program: &str) -> bool {
    program.starts_with('!') && program.contains(VERB)
}

/// The answer that git reads.
pub fn answer(user: &str, file: &Path, action: &str) -> Result<String, Problem> {
    if action != GET {
        return Ok(String::new());
    }
    let token = private_file::bytes(file).map_err(unusable)?;
    let not_text = |_| unusable(format!("{} is not text", file.display()));
    let token = String::from_utf8(token).map_err(not_text)?;
    if token.is_empty() || token.contains(['\n', '\r', '\0']) {
        return Err(unusable(format!("{} is not one line", file.display())));
    }
    Ok(format!("username={user}\npassword={token}\n"))
}

fn unusable(why: String) -> Problem {
    let hint = Hint::step("correct the file that dispatch.toml names");
    Problem::new(Class::Invalid, "credential", why, hint)
}

/// The part of a URL that a credential is for: the scheme, the host and the port. None if git asks
/// for no credential.
pub fn server(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme, "http" | "https") {
        return None;
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // A user name or password in the URL is ignored.
    let host = host.rsplit('@').next().unwrap_or_default();
    (!host.is_empty()).then(|| format!("{scheme}://{host}"))
}

/// Git settings for pushing a result.
pub fn push_settings(code: &JobCode, url: &str) -> Vec<String> {
    let (Some(with), Some(server)) = (&code.push, server(url)) else {
        return Vec::new();
    };
    let mut found = settings(&server, with).unwrap_or_default();
    let ca_file = code
        .forge
        .as_ref()
        .and_then(|forge| forge.ca_file.as_deref());
    found.extend(ca_file.map(|file| git_command::believed(&server, file)));
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_credential_is_for_one_server() {
        let of = |url| server(url).unwrap_or_default();
        assert_eq!(
            of("https://git.example.org/acme/web.git"),
            "https://git.example.org"
        );
        assert_eq!(of("http://me:x@127.0.0.1:81/a"), "http://127.0.0.1:81");
        assert_eq!(of("ssh://git@git.example.org/a"), "");
        assert_eq!(of("git@git.example.org:acme/web.git"), "");
        assert_eq!(of("/srv/web.git"), "");
    }

    #[test]
    fn only_the_name_of_the_file_is_in_the_settings() {
        let credential = Credential {
            user: "bot".to_owned(),
            file: "/etc/my tokens/home".to_owned(),
        };
        let settings = settings("https://h", &credential).unwrap();
        assert_eq!(settings[0], "credential.https://h.helper=");
        let program = settings[1]
            .strip_prefix("credential.https://h.helper=")
            .unwrap();
        let ends = "__credential --user bot --file '/etc/my tokens/home'";
        assert!(program.ends_with(ends), "{program}");
        assert!(is_ours(program) && !is_ours("store"));
    }

    #[test]
    fn a_token_is_told_to_who_asks_and_only_from_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        fs_err::write(&file, "t0ken\n").unwrap();
        let mode = |mode| fs_err::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o600);
        let told = answer("bot", &file, "get").unwrap();
        assert_eq!(told, "username=bot\npassword=t0ken\n");
        assert_eq!(answer("bot", &file, "store").unwrap(), "");
        mode(0o644);
        let error = answer("bot", &file, "get").unwrap_err().message;
        assert!(error.contains("others can read") && !error.contains("t0ken"));
        fs_err::write(&file, "a\nhost=evil\n").unwrap();
        mode(0o600);
        assert!(answer("bot", &file, "get").is_err());
    }
}

//! What is needed to connect to a store on a server: passwords and certificates, from the usual
//! places.
//!
//! A password is taken from the first of these that has one: the URL, `password_file` in the URL
//! (only the password), PGPASSWORD, `passfile` in the URL or PGPASSFILE, `~/.pgpass` (libpq's
//! format). A file that others can read is refused. No message contains a password.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tenure_host::env::var as env;
use tenure_host::read;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_store::server::{Access, PostgresUrl, Secret, passfile};

use crate::private_file;

/// The longest password file or list of certificates.
const MAX_LENGTH: u64 = 1 << 20;

/// Reads the files that a URL refers to.
pub fn access(url: &PostgresUrl) -> Result<Access, Problem> {
    let root_certificates = match &url.root_certificates {
        None => None,
        Some(file) => {
            let read = read::whole(Path::new(file), MAX_LENGTH);
            Some(read.map_err(|error| unusable("sslrootcert", &error.to_string()))?)
        }
    };
    Ok(Access {
        url: url.clone(),
        password: password(url)?,
        root_certificates,
        through: None,
    })
}

fn unusable(part: &str, why: &str) -> Problem {
    let message = format!("the {part} of the store cannot be used: {why}");
    let hint = Hint::run("config", [""; 0], "to see where the store is set");
    Problem::new(Class::Store, "store_unavailable", message, hint)
}

fn password(url: &PostgresUrl) -> Result<Option<Secret>, Problem> {
    let failed = |why: String| unusable("password file", &why);
    if url.password.is_some() {
        return Ok(url.password.clone());
    }
    if let Some(file) = &url.password_file {
        let alone = private_text(Path::new(file)).map_err(failed)?;
        return Ok(Some(Secret::new(alone.trim_end_matches(['\r', '\n']))));
    }
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(password) = set("PGPASSWORD") {
        return Ok(Some(Secret::new(password.to_string_lossy())));
    }
    let named = url.pass_file.clone().map(OsString::from);
    let file = match named.or_else(|| set("PGPASSFILE")) {
        Some(file) => PathBuf::from(file),
        None => {
            let usual = set("HOME").map(|home| PathBuf::from(home).join(".pgpass"));
            match usual.filter(|file| fs_err::symlink_metadata(file).is_ok()) {
                Some(file) => file,
                None => return Ok(None),
            }
        }
    };
    let lines = private_text(&file).map_err(failed)?;
    Ok(passfile::find(&lines, url))
}

/// The text of a file that no one else can read.
fn private_text(path: &Path) -> Result<String, String> {
    let bytes = private_file::whole(path, "password", MAX_LENGTH)?;
    String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8", path.display()))
}

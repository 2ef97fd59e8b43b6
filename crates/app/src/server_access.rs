//! What is needed to connect to a store on a server: passwords and certificates, from the usual
//! places.
//!
//! A password is taken from the first of these that has one: the URL, `password_file` in the URL
//! (only the password), PGPASSWORD, `passfile` in the URL or PGPASSFILE, `~/.pgpass` (libpq's
//! format). A file that others can read is refused. No message contains a password.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tenure_core::text;
use tenure_host::env::var as env;
use tenure_host::read;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_store::postgres::{Access, PostgresUrl, Secret, passfile};

/// The longest password file or list of certificates.
const LONGEST: u64 = 1 << 20;

/// Reads the files that a URL refers to.
pub fn access(url: &PostgresUrl) -> Result<Access, Problem> {
    let root_certificates = match &url.root_certificates {
        None => None,
        Some(file) => {
            let read = read::whole(Path::new(file), LONGEST);
            Some(read.map_err(|error| unusable("sslrootcert", &error.to_string()))?)
        }
    };
    Ok(Access {
        url: url.clone(),
        password: password(url)?,
        root_certificates,
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
    let shown = path.display();
    let file = read::open(path).map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    let (mode, owner) = (found.mode() & 0o777, found.uid());
    let user = rustix::process::geteuid().as_raw();
    if mode & 0o077 != 0 {
        let quoted = text::shell(&shown.to_string());
        return Err(format!(
            "others can read {shown} (mode {mode:04o}); run `chmod 600 {quoted}` and change the password"
        ));
    }
    if owner != user && owner != 0 {
        return Err(format!("{shown} belongs to uid {owner}, not to uid {user}"));
    }
    let mut bytes = Vec::new();
    let read = file.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("{shown} is longer than {LONGEST} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8"))
}

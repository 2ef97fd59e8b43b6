//! The store that only the environment names, written into the user's settings.
//!
//! An agent that is started without TENURE_STORE would use another store, and be granted there what others hold in this
//! one. So setting up hooks or the keeper keeps the store in config.toml too, without its password. The line is marked,
//! and `uninstall --all` removes it; a line that a person wrote stays.

use std::path::{Path, PathBuf};

use tenure_core::ignore::Ignore;
use tenure_host::env::var as env;
use tenure_host::{file, read};
use tenure_service::answer::{Class, Hint, Problem};

use super::{MAX_LENGTH, Settings, user_file};
use crate::location::store_place;
use crate::store_place::StorePlace;

/// The end of the line.
const MARK: &str = " # added by tenure install";

/// What was written, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptStore {
    pub file: PathBuf,
    pub store: String,
    /// Whether the address in the environment has a password, which is not written.
    pub has_password: bool,
}

/// Writes the store into the user's settings if only the environment names it; none if there is nothing to write.
pub fn keep(dry: bool) -> Result<Option<KeptStore>, Problem> {
    let settings = Settings::of_user()?;
    if !settings.is_from_variable || settings.filed_store.is_some() {
        return Ok(None);
    }
    let Some(path) = user_file(&env) else {
        return Ok(None);
    };
    let place = store_place(&settings)?;
    let (store, has_password) = match &place {
        StorePlace::File(file) => (file.display().to_string(), false),
        StorePlace::Server { url, .. } => (url.without_password(), url.password.is_some()),
    };
    let kept = KeptStore {
        file: path,
        store,
        has_password,
    };
    if !dry {
        let text = text_of(&kept.file)?;
        let line = format!(
            "store = {}{MARK}\n",
            toml::Value::String(kept.store.clone())
        );
        // A setting must stand before the first section.
        write(&kept.file, &(line + &text))?;
    }
    Ok(Some(kept))
}

/// Removes what [`keep`] wrote; the file that had it, if one had.
pub fn remove(dry: bool) -> Result<Option<PathBuf>, Problem> {
    let Some(path) = user_file(&env) else {
        return Ok(None);
    };
    let text = text_of(&path)?;
    let is_ours = |line: &str| line.starts_with("store = ") && line.trim_end().ends_with(MARK);
    let rest: String = text
        .split_inclusive('\n')
        .filter(|line| !is_ours(line))
        .collect();
    if rest.len() == text.len() {
        return Ok(None);
    }
    if !dry {
        if rest.is_empty() {
            file::remove(&path).map_err(|error| unwritten(&error))?;
            if let Some(dir) = path.parent() {
                fs_err::remove_dir(dir).ignore("something else is in it");
            }
        } else {
            write(&path, &rest)?;
        }
    }
    Ok(Some(path))
}

fn text_of(path: &Path) -> Result<String, Problem> {
    match read::text(path, MAX_LENGTH) {
        Ok(text) => Ok(text),
        Err(error) if read::is_absent(&error) => Ok(String::new()),
        Err(error) => Err(unwritten(&error)),
    }
}

/// Replaces the file behind a link, not the link.
fn write(path: &Path, text: &str) -> Result<(), Problem> {
    let real = file::resolve(path).unwrap_or_else(|| path.to_owned());
    let dir = real.parent().unwrap_or(Path::new("/"));
    let written = file::make_dirs(dir).and_then(|()| file::write_atomic(&real, text.as_bytes()));
    written.map_err(|error| unwritten(&error))
}

fn unwritten(error: &std::io::Error) -> Problem {
    let message = format!("cannot edit the settings: {error}");
    let hint = Hint::step("add `store` to config.toml by hand, then run the same command again");
    Problem::new(Class::Invalid, "invalid", message, hint)
}

//! dispatch.toml, as a command names it.

use tenure_app::settings::Settings;
use tenure_dispatch::{Checked, Config, default_file};
use tenure_service::answer::{Class, Hint};

use tenure_cli::output::CliError;
use tenure_cli::verbs::dispatch::SettingsFile;

/// Reads and checks it; none where no file is named and there is none at its usual place.
pub fn load_if_any(file: &SettingsFile) -> Result<Option<Checked>, CliError> {
    let is_there = || default_file().is_some_and(|file| file.exists());
    if file.config.is_none() && !is_there() {
        return Ok(None);
    }
    load(file).map(Some)
}

/// Reads and checks it.
pub fn load(file: &SettingsFile) -> Result<Checked, CliError> {
    let path = file.config.clone().or_else(default_file).ok_or_else(|| {
        let hint = Hint::step("set HOME, or name the file with --config");
        CliError::new(Class::Usage, "usage", "HOME is not set", hint)
    })?;
    Ok(Config::load(&path, &Settings::of_user()?)?)
}

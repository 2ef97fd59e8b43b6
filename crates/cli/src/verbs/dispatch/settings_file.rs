use std::path::PathBuf;

use tenure_app::dispatch::{Checked, Config, default_file};
use tenure_app::settings::Settings;
use tenure_service::answer::{Class, Hint};

use crate::output::CliError;

/// The file of settings.
#[derive(Debug, clap::Args)]
pub struct SettingsFile {
    /// File of settings [default: dispatch.toml beside config.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl SettingsFile {
    /// Reads and checks it; none where no file is named and there is none at its usual place.
    pub fn load_if_any(&self) -> Result<Option<Checked>, CliError> {
        let is_there = || default_file().is_some_and(|file| file.exists());
        if self.config.is_none() && !is_there() {
            return Ok(None);
        }
        self.load().map(Some)
    }

    /// Reads and checks it.
    pub fn load(&self) -> Result<Checked, CliError> {
        let file = self.config.clone().or_else(default_file).ok_or_else(|| {
            let hint = Hint::step("set HOME, or name the file with --config");
            CliError::new(Class::Usage, "usage", "HOME is not set", hint)
        })?;
        Ok(Config::load(&file, &Settings::of_user()?)?)
    }
}

use std::path::Path;

use tenure_app::dispatch::{Captured, Config, Given};
use tenure_host::read;
use tenure_service::answer::{Class, Hint};

use super::settings_file::SettingsFile;
use crate::app::App;
use crate::output::CliError;

/// Forges send no more than 25 MB.
const LONGEST: u64 = 26 * 1024 * 1024;

/// The delivery that is meant.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// File with the delivery, or its number (`tenure queue deliveries`)
    #[arg(value_name = "FILE|DELIVERY")]
    what: String,

    /// Forge that sent the file [default: the only one]
    #[arg(long, value_name = "NAME")]
    forge: Option<String>,

    /// Event that the file's header names, such as issues or 'X-GitHub-Event: issues'
    #[arg(long, value_name = "HEADER")]
    event: Option<String>,

    #[command(flatten)]
    pub settings: SettingsFile,
}

impl Source {
    /// Reads it.
    pub fn read(&self, app: &App, config: &Config) -> Result<Given, CliError> {
        if let Some(number) = self.number() {
            if self.forge.is_some() || self.event.is_some() {
                let hint = Hint::step("leave out --forge and --event, or name a file");
                let message = format!("delivery {number} already has a forge and an event");
                return Err(CliError::new(Class::Usage, "usage", message, hint));
            }
            return Ok(Given::of_stored(&mut app.open()?, config, number)?);
        }
        let bytes = read::whole(Path::new(&self.what), LONGEST).map_err(|error| {
            let hint =
                Hint::step("name a file with the body of a delivery, or the number of a delivery");
            let class = if read::is_absent(&error) {
                Class::NotFound
            } else {
                Class::Invalid
            };
            CliError::new(class, "unreadable_file", error.to_string(), hint)
        })?;
        let captured = Captured::parse(&bytes);
        let (forge, event) = (self.forge.as_deref(), self.event.as_deref());
        Ok(Given::of_file(config, captured, forge, event)?)
    }

    /// What consists of digits is the number of a delivery; a file of such a name is `./12`.
    fn number(&self) -> Option<i64> {
        let is_number = self.what.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| self.what.parse().ok())?
    }
}

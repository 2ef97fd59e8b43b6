//! The delivery that a command is about.

use std::path::Path;

use tenure_dispatch::{CapturedDelivery, Config, ReadDelivery};
use tenure_host::read;
use tenure_service::answer::{Class, Hint};

use tenure_cli::app::App;
use tenure_cli::output::CliError;
use tenure_cli::verbs::dispatch::DeliveryArgs;

/// Forges send no more than 25 MB.
const MAX_LENGTH: u64 = 26 * 1024 * 1024;

/// Reads it.
pub fn read(source: &DeliveryArgs, app: &App, config: &Config) -> Result<ReadDelivery, CliError> {
    if let Some(number) = number(source) {
        if source.forge.is_some() || source.event.is_some() {
            let hint = Hint::step("leave out --forge and --event, or name a file");
            let message = format!("delivery {number} already has a forge and an event");
            return Err(CliError::new(Class::Usage, "usage", message, hint));
        }
        return Ok(ReadDelivery::of_stored(&mut app.open()?, config, number)?);
    }
    let bytes = read::whole(Path::new(&source.what), MAX_LENGTH).map_err(|error| {
        let hint =
            Hint::step("name a file with the body of a delivery, or the number of a delivery");
        let class = if read::is_absent(&error) {
            Class::NotFound
        } else {
            Class::Invalid
        };
        CliError::new(class, "unreadable_file", error.to_string(), hint)
    })?;
    let captured = CapturedDelivery::parse(&bytes);
    let (forge, event) = (source.forge.as_deref(), source.event.as_deref());
    Ok(ReadDelivery::of_file(config, captured, forge, event)?)
}

/// What consists of digits is the number of a delivery; a file of such a name is `./12`.
fn number(source: &DeliveryArgs) -> Option<i64> {
    let is_number = source.what.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| source.what.parse().ok())?
}

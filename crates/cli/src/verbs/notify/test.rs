use serde_json::json;
use tenure_app::location::settings_and_store;
use tenure_host::clock;
use tenure_service::answer::{Class, Hint};
use tenure_views::notify::event::{Notification, TEST};
use tenure_views::notify::sender;

use crate::app::App;
use crate::output::{CliError, Outcome, Output};

/// Send a test notification on one channel and report how that went
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The channel's name
    channel: String,
}

pub fn run(args: &Args, _: &App) -> Outcome {
    let channels = settings_and_store()?.0.notify;
    let name = &args.channel;
    if channels.iter().all(|channel| channel.name != *name) {
        let names: Vec<&str> = channels.iter().map(|one| one.name.as_str()).collect();
        let message = match names.as_slice() {
            [] => format!("no channel is named {name:?}; none is configured"),
            names => format!(
                "no channel is named {name:?}; there are {}",
                names.join(", ")
            ),
        };
        let hint = Hint::run("notify", ["--help"], "for an example of a channel");
        return Err(CliError::new(
            Class::NotFound,
            "no_such_channel",
            message,
            hint,
        ));
    }
    let event = Notification::new(TEST, clock::wall(), None);
    sender::test(name, &event).map_err(|why| {
        let message = format!("the channel {name} failed: {why}");
        let hint = Hint::verb("config", "to see where the channel is set");
        CliError::new(Class::Refused, "not_notified", message, hint)
    })?;
    let text = format!("sent a test notification on {name}");
    let notified = json!({"channel": name, "title": event.headline()});
    Ok(Output::new("notified", &notified, text))
}

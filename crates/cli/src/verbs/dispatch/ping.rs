use std::net::SocketAddr;
use std::time::Duration;

use tenure_app::dispatch::ping::{Pinged, ping};
use tenure_core::time::Span;

use super::settings_file::SettingsFile;
use crate::app::App;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Send a signed test delivery to the dispatcher of this machine; it starts nothing
///
/// Shows whether the dispatcher listens and knows the secret that you enter in the forge. Exits with 0 if the
/// delivery was accepted, 1 if the dispatcher refused it, 4 if nothing listens, 6 if another program does, 7 if
/// nothing answered in time. The address is that of the dispatcher that runs with this dispatch.toml, else the one in
/// the file. It does not show whether the forge can reach this machine: for that, use the forge's own test button.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch ping
  tenure dispatch ping home --wait 10s
  tenure dispatch ping --listen 127.0.0.1:7421 --json | jq -r .pinged.verdict")]
pub struct Args {
    /// Forge to send it as [default: the only one]
    #[arg(value_name = "FORGE")]
    forge: Option<String>,

    /// Send it to this address
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Wait this long for a dispatcher that is about to listen, such as 10s
    #[arg(long, value_name = "TIME")]
    wait: Option<Span>,

    #[command(flatten)]
    settings: SettingsFile,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let config = args.settings.load()?.config;
    let context = app.open()?;
    let patience = args.wait.map_or(Duration::ZERO, |Span(wait)| wait);
    let forge = args.forge.as_deref();
    let pinged = ping(&context, &config, forge, args.listen, patience)?;
    Ok(Output::new("pinged", &pinged, text(&pinged)))
}

fn text(pinged: &Pinged) -> Lines {
    let secrets = match pinged.secrets {
        1 => "its secret",
        // There are two at most.
        _ => "both of its secrets",
    };
    let mut text = Lines::default();
    text.line(format!(
        "the dispatcher at http://{}{} accepts {secrets}",
        pinged.address, pinged.endpoint
    ));
    text.line(format!(
        "it answered {}: {}, {}",
        pinged.status, pinged.verdict, pinged.why
    ));
    text
}

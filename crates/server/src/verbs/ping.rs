use std::time::Duration;
use tenure_cli::verbs::dispatch::PingArgs;

use tenure_core::time::Span;
use tenure_dispatch::ping::{Pinged, ping};

use super::settings_file::load;
use tenure_cli::app::App;
use tenure_cli::lines::Lines;
use tenure_cli::output::{Outcome, Output};

pub fn run(args: &PingArgs, app: &App) -> Outcome {
    let config = load(&args.settings)?.config;
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

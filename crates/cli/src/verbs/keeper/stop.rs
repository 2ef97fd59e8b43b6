use tenure_app::keeper::{KeeperStop, report, stop_here};

use crate::app::App;
use crate::output::{Outcome, Output};

/// End the keeper of this machine
///
/// Its sessions then live by their own calls: one that is silent for the setting host_lease can lose its claims to
/// another machine. The next command or hook that needs a keeper starts one.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args, _: &App) -> Outcome {
    let stopped = stop_here()?;
    let text = match stopped {
        KeeperStop::Ended => {
            "stopped the keeper; the next command or hook that needs one starts it again"
        }
        KeeperStop::NotRunning => "no keeper was running here",
    };
    Ok(Output::new("keeper", &report()?, text))
}

//! The verbs that only this program has, one file each.

mod check;
mod explain;
mod init;
mod lines;
mod mcp;
mod ping;
mod replay;
mod serve;
mod settings_file;
mod source;
mod status;
mod stop;
mod work;

use tenure_cli::app::App;
use tenure_cli::output::Outcome;
use tenure_cli::verbs::dispatch::{Act, Args};

pub use mcp::mcp;
pub use serve::serve;

pub fn dispatch(args: &Args, app: &App) -> Outcome {
    match &args.act {
        None => work::run(&args.work, app),
        Some(Act::Init(args)) => init::run(args, app),
        Some(Act::Check(args)) => check::run(args, app),
        Some(Act::Ping(args)) => ping::run(args, app),
        Some(Act::Explain(args)) => explain::run(args, app),
        Some(Act::Replay(args)) => replay::run(args, app),
        Some(Act::Status(args)) => status::run(args, app),
        Some(Act::Stop(args)) => stop::run(args, app),
    }
}

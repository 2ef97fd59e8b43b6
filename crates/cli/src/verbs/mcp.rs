//! The MCP server: `tenure mcp`. Here is only its grammar, for help, completion and manual pages; the program beside this
//! one runs it.

use crate::app::App;
use crate::beside;
use crate::output::Outcome;

/// Serve tenure's tools to a coding agent over MCP (stdin and stdout)
///
/// Agents start it themselves; `tenure install --mcp` adds it to their settings. The tools are status, sessions, claim,
/// release, handoff, why, tell and mission, with the same answers as the commands. The caller is the session of the
/// agent that started it. It ends with that agent, or when its input is closed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure install --mcp             add it to the settings of every agent found
  claude mcp add tenure -- tenure mcp
  tenure mcp                       speak MCP, one JSON message per line")]
pub struct Args {}

/// How the program that has the server runs it.
pub type RunMcp = fn(&Args, &App) -> Outcome;

/// In the program that has none of it.
pub fn run(_: &Args, _: &App) -> Outcome {
    beside::execute()
}

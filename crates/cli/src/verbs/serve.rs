//! The HTTP API and the dashboard: `tenure serve`. Here is only its grammar, for help, completion and manual pages; the
//! program beside this one runs it.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::app::App;
use crate::beside;
use crate::output::Outcome;

/// Serve the dashboard and the HTTP API until stopped
///
/// Every request needs a token (`tenure token new`) or the login of a browser (--open), and a Host header that names
/// this server. There is no TLS: beyond this machine, put a proxy with TLS in front (--behind-proxy --public-url), or
/// listen on a socket (--socket).
///
/// --open starts a browser that is logged in, and prints the address for another one. It works once and for a minute.
/// If a server runs already for this state directory, --open asks that one. A login ends with the server, or after 12
/// hours.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure serve --open
  tenure serve --listen 127.0.0.1:7500
  tenure serve --behind-proxy --public-url https://agents.example.org
  curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:7420/api/v1/sessions

The API describes itself: http://127.0.0.1:7420/api/v1/openapi.json")]
pub struct Args {
    /// Address to listen on [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "socket")]
    pub listen: Option<SocketAddr>,

    /// Listen on a unix socket instead
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,

    /// Open the dashboard in a browser, logged in
    #[arg(long)]
    pub open: bool,

    /// A proxy with TLS is in front: only the host of --public-url is answered
    #[arg(long, requires = "public_url")]
    pub behind_proxy: bool,

    /// The address that browsers know, with its scheme
    #[arg(long, value_name = "URL", requires = "behind_proxy")]
    pub public_url: Option<String>,
}

/// How the program that has the server runs it.
pub type RunServe = fn(&Args, &App) -> Outcome;

/// In the program that has none of it.
pub fn run(_: &Args, _: &App) -> Outcome {
    beside::execute()
}

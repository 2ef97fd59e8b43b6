//! `tenure-server`: the command line of `tenure` with everything that speaks a protocol: the dispatcher, MCP, and stores on
//! PostgreSQL. `tenure` executes it.

mod verbs;

use std::process::ExitCode;

use tenure_cli::verbs::ServerVerbs;
use tenure_postgres::Postgres;
use tenure_runs::network::{self, Network};

fn main() -> ExitCode {
    tenure_app::server_store::link(&Postgres);
    network::link(Network {
        connect: tenure_dispatch::connect,
        serve: tenure_dispatch::model::serve,
        post: tenure_dispatch::notification::post,
    });
    tenure_cli::main(Some(ServerVerbs {
        dispatch: verbs::dispatch,
        mcp: verbs::mcp,
        serve: verbs::serve,
    }))
}

//! `tenure-server`: the same command line with everything that speaks over a network. `tenure` executes it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tenure_cli::main(tenure_cli::Network::linked())
}

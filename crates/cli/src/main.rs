//! `tenure`, without what speaks over a network.

use std::process::ExitCode;

fn main() -> ExitCode {
    tenure_cli::main(None)
}
